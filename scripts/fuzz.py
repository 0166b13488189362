"""Fuzz everything that reads a file, guided by the lines of ours that an input reaches.

``make fuzz`` does so for minutes; the tests, for seconds. An input that reaches a line, or a pair of lines in
turn, that none before it did is kept and changed further. A reader may answer or raise a ModulekgeError, and
nothing else. What it raises otherwise is written to a file, and the program ends with 1.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import modulekge
from modulekge.config import make_config, read_config
from modulekge.data.readers.files import problems, read_file
from modulekge.data.reading import read_dataset
from modulekge.errors import ModulekgeError
from modulekge.run.folder import RunFolder
from modulekge.run.run import load
from modulekge.run.train import train

SOURCE = str(Path(modulekge.__file__).parent)
LINES = "".join(f"e{i % 7}\tr{i % 2}\te{(3 * i + 1) % 7}\n" for i in range(20))
SIGNS = (
    "\t",
    ",",
    ";",
    " ",
    "\n",
    "\r\n",
    "\r",
    '"',
    "'",
    "\\",
    "\0",
    "\ufeff",
    "{",
    "}",
    "[",
    "]",
    ":",
    "=",
    "<",
    ">",
)
WORDS = (
    "_:",
    " .\n",
    "@prefix x: <y:> .\n",
    "null",
    "NaN",
    "-1",
    "1e999",
    "true",
    "\\ud800",
    '["a", "b", "c"]\n',
)
LONG = ("9" * 5000, "[" * 3000, "0x" + "f" * 4000, "head\trelation\ttail\n")
PIECES = (*(text.encode() for text in (*SIGNS, *WORDS, *LONG)), b"\xff", b"\x1f\x8b")


@dataclass(eq=False)
class Target:
    """A reader, the file it reads, and the inputs that reached something new."""

    name: str
    file: Path
    read: Callable[[], object]
    kept: list[bytes]
    reached: set[tuple[str, int, int]] = field(default_factory=set)
    runs: int = 0


def text_targets(folder: Path) -> Iterator[Target]:
    """Yield a reader of files of triples for each format, and one of recipes."""
    rows = [line.split("\t") for line in LINES.splitlines()]
    starts = {
        "tsv": LINES,
        "csv": "head,relation,tail\n" + LINES.replace("\t", ","),
        "txt": LINES.replace("\t", " "),
        "jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "nt": "".join("<x:{}> <x:{}> <x:{}> .\n".format(*row) for row in rows),
        "ttl": "@prefix x: <http://x/> .\n" + "".join("x:{} x:{} x:{} .\n".format(*row) for row in rows),
        "unknown": LINES,
    }
    for kind, text in starts.items():
        file = folder / f"graph.{kind}"
        yield Target(kind, file, lambda file=file: (list(problems(file)), read_file(file)), [text.encode()])
        chosen = ["1", "3", "2"] if kind not in ("nt", "ttl") else None
        yield Target(
            f"{kind} as a graph", file, lambda f=file, c=chosen: read_dataset(f, 0, c), [text.encode()]
        )
    recipe = folder / "recipe.toml"
    good = [path.read_bytes() for path in sorted(Path(SOURCE, "recipes", "WN18RR").glob("*.toml"))[:3]]
    yield Target("recipe", recipe, lambda: make_config([read_config(recipe)], str(recipe)), good)


def run_targets(folder: Path) -> Iterator[Target]:
    """Yield a reader for each file of a run, which stands beside the others as they should be."""
    (folder / "graph.tsv").write_text(LINES)
    settings = {"model.k": 2, "train.epochs": 1, "train.eval_every": 1}
    path = train(read_dataset(folder / "graph.tsv"), "ModulE-HH", settings, folder / "run").folder.path
    run = RunFolder(path)
    readers = {
        "config.toml": lambda: load(path),
        "vocabulary.json": run.dataset,
        "run.json": run.dataset,
        "triples.safetensors": run.dataset,
        "weights.safetensors": lambda: load(path),
        "epochs.jsonl": run.records,
    }
    for name, read in readers.items():
        yield Target(name, path / name, read, [(path / name).read_bytes()])


def layout_target(folder: Path) -> Target:
    """Return a reader of a folder of numbered names, whose numbers are changed."""
    (folder / "numbered").mkdir()
    ids = folder / "numbered" / "entity2id.txt"
    (folder / "numbered" / "relation2id.txt").write_text("2\nr0\t0\nr1\t1\n")
    for name, text in (("train", "2\n0 1 0\n1 2 1\n"), ("valid", "1\n0 2 0\n"), ("test", "1\n0 3 0\n")):
        (folder / "numbered" / f"{name}2id.txt").write_text(text)
    good = b"4\na\t0\nb\t1\nc\t2\nd\t3\n"
    return Target("OpenKE", ids, lambda: read_dataset(folder / "numbered"), [good])


def targets(folder: Path) -> list[Target]:
    """Return all readers; their files are in a folder that is empty."""
    return [*text_targets(folder), layout_target(folder), *run_targets(folder)]


def changed(data: bytes, others: list[bytes], draw: random.Random) -> bytes:
    """Return an input with one to four small changes, or spliced with another."""
    for _ in range(draw.randint(1, 4)):
        at, to = sorted(draw.randrange(len(data) + 1) for _ in range(2))
        to = min(to, at + draw.choice((1, 2, 8, 64)))
        match draw.randrange(7):
            case 0:
                data = data[:at] + draw.choice(PIECES) + data[at:]
            case 1:
                data = data[:at] + draw.choice(PIECES) + data[to:]
            case 2:
                data = data[:at] + data[to:]
            case 3:
                data = data[:to] + data[at:to] + data[to:]
            case 4:
                data = data[:at] + draw.randbytes(to - at) + data[to:]
            case 5 if at < len(data):
                data = data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]
            case _:
                other = draw.choice(others)
                data = data[:at] + other[draw.randrange(len(other) + 1) :]
    return data[: 1 << 16]


@contextmanager
def watched(reached: set[tuple[str, int, int]]) -> Iterator[None]:
    """Note each line of ours that is run, with the one of the same call before it."""

    def begin(frame, event, argument):
        name = frame.f_code.co_filename
        if not name.startswith(SOURCE):
            return None
        before = 0

        def line(frame, event, argument):
            nonlocal before
            if event == "line":
                reached.add((name, before, frame.f_lineno))
                before = frame.f_lineno
            return line

        return line

    sys.settrace(begin)
    try:
        yield
    finally:
        sys.settrace(None)


def try_once(target: Target, draw: random.Random) -> Exception | None:
    """Run a reader on a changed input; keep what reached something new, return what should not be raised."""
    data = changed(draw.choice(target.kept), target.kept, draw)
    target.file.write_bytes(data)
    target.runs += 1
    reached: set[tuple[str, int, int]] = set()
    try:
        with watched(reached):
            target.read()
    except ModulekgeError:
        pass
    except Exception as error:
        return error
    if reached - target.reached:
        target.reached |= reached
        target.kept.append(data)
    return None


def main() -> int:
    """Fuzz all readers in turn until the time is over; print what was done as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path(), help="folder for inputs that break a reader")
    asked = parser.parse_args()
    draw, broken = random.Random(asked.seed), Counter[str]()
    with tempfile.TemporaryDirectory() as scratch:
        readers = targets(Path(scratch))
        good = {target.file: target.kept[0] for target in readers}
        ends = time.monotonic() + asked.seconds
        while time.monotonic() < ends:
            target = draw.choice(readers)
            error = try_once(target, draw)
            if error:
                key = f"{target.name}: {type(error).__name__}: {str(error)[:200]}"
                if not broken[key]:
                    file = asked.keep / f"broken-{len(broken)}-{target.file.name}"
                    file.write_bytes(target.file.read_bytes())
                broken[key] += 1
            target.file.write_bytes(good[target.file])
    done = {"runs": sum(t.runs for t in readers), "kept": sum(len(t.kept) for t in readers)}
    reached = len(set().union(*(t.reached for t in readers)))
    print(json.dumps({**done, "reached": reached, "seed": asked.seed, "broken": broken}, indent=1))
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
