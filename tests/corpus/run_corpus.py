"""Run the program on a corpus of malformed inputs, with little memory, and print a line of JSON for each.

``PYTHONPATH=src:tests python tests/corpus/run_corpus.py`` prints how each ended; test_malformed.py judges it.
"""

import faulthandler
import hashlib
import json
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import malformed_data
import malformed_runs
import malformed_texts
import torch
from program import call
from web import API, Client

from modulekge.server.http import make_app
from modulekge.server.service import Service

MEMORY = 3 << 30  # bytes of addresses beyond those that the program has when it starts
SECONDS = 60  # for one input, after which all ends with a traceback
SMALL = [
    word
    for setting in ("model.k=4", "train.epochs=2", "train.eval_every=1", "train.batch=16")
    for word in ("--set", setting)
]


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        good = Path(scratch) / "good"
        good.mkdir()
        (good / "graph.tsv").write_bytes(malformed_data.GOOD["tsv"])
        done = call("train", "graph.tsv", "--out", "run", *SMALL, cwd=good)
        assert done.returncode == 0, done.stderr
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (_addresses() + MEMORY, hard))
        for name, files, command in cases(good / "run"):
            print(json.dumps(tried(Path(scratch) / "here", good, name, files, command)), flush=True)
        for line in bodies(good / "run"):
            print(json.dumps(line), flush=True)


def _addresses() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def cases(run: Path) -> Iterator[tuple[str, dict[str, bytes | None], list[str]]]:
    """Yield what is wrong, the files, and a command that reads them."""
    readers = (
        ["data", "info", "?"],
        ["train", "?", "--out", "new", *SMALL],
        ["data", "doctor", "?"],
        ["add", "run", "?", "--out", "new"],
    )
    for number, (name, files, target) in enumerate(malformed_data.files()):
        yield name, files, [word if word != "?" else target for word in readers[number % len(readers)]]
    for text in malformed_texts.RECIPES:
        yield (
            f"recipe: {text[:40]!r}",
            {"r.toml": text.encode()},
            ["train", "graph.tsv", "--recipe", "r.toml", "--out", "new"],
        )
    for name, files, command in malformed_runs.runs(run):
        yield name, {f"run/{file}": content for file, content in files.items()}, command


def tried(
    here: Path, good: Path, name: str, files: dict[str, bytes | None], command: list[str]
) -> dict[str, object]:
    """Run a command beside a good graph, a good run, and these files; say how it ended."""
    shutil.copytree(good, here)
    try:
        for file, content in files.items():
            (here / file).parent.mkdir(parents=True, exist_ok=True)
            (here / file).unlink(missing_ok=True)
            if content is not None:
                (here / file).write_bytes(content)
        before, started = tree(here), time.perf_counter()
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        done = call(*command, cwd=here)
        faulthandler.cancel_dump_traceback_later()
        return {
            "name": name,
            "command": command,
            "code": done.returncode,
            "error": done.stderr.strip().rpartition("\n")[2][:2000],
            "traceback": "Traceback" in done.stderr + done.stdout,
            "changed": sorted(file for file, _ in before ^ tree(here)),
            "seconds": round(time.perf_counter() - started, 2),
        }
    finally:
        shutil.rmtree(here)


def tree(folder: Path) -> set[tuple[str, str]]:
    """Every file but a lock, and what is in it."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {(str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()) for path in found}


def bodies(run: Path) -> Iterator[dict[str, object]]:
    """Send malformed bodies to every address that takes one."""
    service = Service.open([run], torch.device("cpu"))
    client = Client(make_app(service))
    for address in ("predict", "answer-set", "score", "explain"):
        for body in malformed_texts.BODIES:
            headers = {"content-type": "application/json"}
            answer = client("POST", f"{API}/run/{address}", content=body, headers=headers)
            yield {
                "name": f"{address}: {body[:40]!r}",
                "status": answer.status_code,
                "body": answer.text[:500],
            }
    service.close()


if __name__ == "__main__":
    main()
