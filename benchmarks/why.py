"""Peers and this program on the same graph in one run: python benchmarks/why.py DATA... [--only NAME].

Each peer trains by its own documented recipe for the data, or else by its documented example, in an
environment of its own (--environments FOLDER, made where missing); this program by ``train --minutes 1``.
Then each writes its scores of every question of test, and one evaluator, ours, ranks them all: filtered,
BOTTOM ties, both directions. Printed are MRR, seconds of wall and CPU until the model is trained, with the
start of Python and the reading of files, the most memory held until then, and how many lines a user writes.
A peer that cannot be installed or run is reported with its error in one line.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import plainly, write_lines

from modulekge.data.dataset import Dataset
from modulekge.data.registry import open_dataset
from modulekge.evaluation.metrics import metrics
from modulekge.evaluation.ranks import Ranks
from modulekge.run.provenance import source_commit

PROGRAMS = Path(__file__).parent / "why_peers"
TORCH = ("torch>=2.8,<2.14", "numpy")  # as this program takes it, before what a peer asks for
PEERS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {  # program, arguments, requirements
    "modulekge": ("with_modulekge.py", (), ()),
    "PyKEEN": ("with_pykeen.py", (), ("pykeen",)),
    "PyKEEN, 500 epochs": ("with_pykeen.py", ("500",), ("pykeen",)),
    "TorchKGE": ("with_torchkge.py", (), ("torchkge",)),
    "PyG": ("with_pyg.py", (), ("torch-geometric",)),
    "dicee": ("with_dicee.py", (), ("dicee", "pyarrow<20")),  # which it needs and does not ask for
    "AmpliGraph": ("with_ampligraph.py", (), ("ampligraph",)),
    "LibKGE": ("with_libkge.py", (), ("libkge",)),  # which no index had when this was written
}


class FailedError(Exception):
    """A peer that could not be installed or run."""


def write_graph(dataset: Dataset, folder: Path) -> None:
    """Write the splits by name, and the questions of test with what they ask for."""
    folder.mkdir()
    names, relations = dataset.entities.names, dataset.relations.names
    for split in ("train", "valid", "test"):
        lines = (f"{names[h]}\t{relations[r]}\t{names[t]}\n" for h, r, t in dataset[split].tolist())
        (folder / f"{split}.tsv").write_text("".join(lines), "utf-8")
    asked = dataset.with_inverses(dataset.test)[:, :2].tolist()
    count = len(relations)
    questions = [(names[h], relations[r % count], r < count) for h, r in asked]
    written = {"entities": list(names), "questions": questions}
    (folder / "questions.json").write_text(json.dumps(written), "utf-8")


def ranked(dataset: Dataset, scores: torch.Tensor) -> dict[str, float]:
    """Rank the answers of test in the scores of their questions."""
    heads, relations, answers = dataset.with_inverses(dataset.test).unbind(1)
    assert scores.shape == (len(answers), len(dataset.entities)), scores.shape
    ranks = Ranks.of(scores, answers, dataset.known.of_questions(heads, relations))
    return {name: round(value, 4) for name, value in metrics(ranks.rank("bottom")).items()}


def installed(environments: Path, requirements: tuple[str, ...]) -> Path:
    """Return the Python of an environment with these, which is made where it is missing."""
    if not requirements:
        return Path(sys.executable)
    place = environments / requirements[0]
    python = place / "bin" / "python"
    if not (place / "ready").exists():
        venv.create(place, with_pip=True)
        command = [python, "-m", "pip", "install", "--quiet", *TORCH, *requirements]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise FailedError(first_error(done.stderr))
        (place / "ready").touch()
    return python


def first_error(text: str) -> str:
    """Return the line that says what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("ERROR:")]
    return (said[-1:] or lines[-1:] or ["no message"])[0][:300]


def measured(dataset: Dataset, name: str, environments: Path, scratch: Path) -> dict[str, Any]:
    """Train and rank one; return what it took and what it reached."""
    program, arguments, requirements = PEERS[name]
    line: dict[str, Any] = {"data": dataset.name, "peer": name, "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    try:
        python = installed(environments, requirements)
        folder = scratch / name
        write_graph(dataset, folder)
        load = os.getloadavg()[0]
        done = subprocess.run(
            [python, PROGRAMS.resolve() / program, *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            env={**os.environ, "WHY_STARTED": str(time.time()), "OMP_NUM_THREADS": "1"},
        )
        if done.returncode:
            raise FailedError(first_error(done.stderr))
    except FailedError as error:
        return {**line, "error": str(error)}
    said = json.loads((folder / "said.json").read_text("utf-8"))
    found = ranked(dataset, torch.from_numpy(np.load(folder / "scores.npy")))
    about = {"load": round(load, 1), "cores": os.cpu_count(), "commit": source_commit()}
    return {**line, **said, "test": found, **about}


def lines(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a line for each graph and peer."""
    for data in asked.data:
        dataset = open_dataset(data)
        for name in asked.only or PEERS:
            with tempfile.TemporaryDirectory() as scratch:
                yield measured(dataset, name, asked.environments.resolve(), Path(scratch))


def main() -> None:
    """Print one JSON line for each, then all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--environments", type=Path, default=Path(".venv-why"))
    parser.add_argument("--only", action="append", choices=PEERS)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    write_lines(lines(asked), asked.out)


if __name__ == "__main__":
    plainly(main)
