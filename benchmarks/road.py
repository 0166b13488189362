"""From a file to calibrated answers, as a stranger would go: python benchmarks/road.py FILE QUESTION ADDED.

QUESTION is ``head,relation`` and ADDED a new fact, ``head,relation,tail``. Runs the program's commands one
after the other, without settings, in a folder of their own, and prints wall seconds and peak memory of each
as JSON. scripts/build_graphs.py makes two graphs for it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def timed(words: list[str], folder: Path) -> dict[str, object]:
    """Run a command; return its wall seconds, its peak memory in GiB and the end of what it printed."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "modulekge", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout
    printed = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    return {
        "command": " ".join(words),
        "seconds": round(time.perf_counter() - started, 1),
        "peak_gib": round(used.ru_maxrss / 2**20, 2),
        "exit": os.waitstatus_to_exitcode(status),
        "printed": printed.splitlines()[-40:],
    }


def main() -> None:
    """Print one JSON line a command."""
    graph, question, added = Path(sys.argv[1]).resolve(), sys.argv[2].split(","), sys.argv[3].split(",")
    head, relation = question
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "new.tsv").write_text("\t".join(added) + "\n", "utf-8")
        asked = ["--head", head, "--relation", relation]
        for words in (
            ["data", "doctor", str(graph)],
            ["train", str(graph), "--out", "run"],
            ["predict", "run", *asked],
            ["relations", "run"],
            ["links", "run", "-k", "10"],
            ["add", "run", "new.tsv", "--out", "more"],
            ["predict", "more", "--head", added[0], "--relation", added[1]],
        ):
            print(json.dumps(timed(words, folder), ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
