"""What every program of this folder does beside its own training: measure it, and write its scores.

Each runs in an environment of its own, in a folder with train.tsv, valid.tsv, test.tsv (names), and
questions.json: the names of all entities in the order of columns, and of each question its fixed entity, its
relation and whether its tail is asked for. ``train`` is what a user writes, and its lines are counted.
"""

import inspect
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Questions = list[tuple[str, str, bool]]  # fixed entity, relation, whether the tail is asked for


def read(split: str) -> list[list[str]]:
    """Return the triples of a split by name."""
    return [line.split("\t") for line in Path(f"{split}.tsv").read_text("utf-8").splitlines()]


def main(
    train: Callable[[], Any], scores: Callable[[Any, Questions, list[str]], np.ndarray], package: str
) -> None:
    """Train, say what it took until then since the process began, and write the scores of all questions."""
    trained = train()
    wall = time.time() - float(os.environ["WHY_STARTED"])
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    source = inspect.getsource(train).splitlines()[1:]
    written = [line for line in map(str.strip, source) if line and not line.startswith(('"""', "#"))]
    given = json.loads(Path("questions.json").read_text("utf-8"))
    found = scores(trained, [tuple(each) for each in given["questions"]], given["entities"])
    np.save("scores.npy", np.asarray(found, np.float32))
    from importlib.metadata import version

    said = {
        "version": version(package),
        "wall_s": round(wall, 1),
        "cpu_s": round(sum(each.ru_utime + each.ru_stime for each in used), 1),
        "peak_mib": round(max(each.ru_maxrss for each in used) / 1024),
        "lines": len(written),
        "python": sys.version.split()[0],
    }
    Path("said.json").write_text(json.dumps(said), "utf-8")
