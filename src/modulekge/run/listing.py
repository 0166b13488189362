"""The runs in a folder, a line for each. No data set is needed and no weights are loaded."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import fsum
from pathlib import Path
from typing import Any, Literal

from modulekge.errors import ModulekgeError, RunError
from modulekge.run.files import check_tensors, read_json
from modulekge.run.lock import is_training
from modulekge.run.run_files import RunFiles
from modulekge.training.records import EpochRecord, stalled

_DEPTH = 4  # levels below a folder at which runs are looked for
_MARKS = {"config.toml", "run.json"}  # either makes a folder a run, be it a damaged one
_FROM_THE_START = ("run.json", "vocabulary.json", "triples.safetensors")

State = Literal["finished", "stopped", "added", "mixed", "training", "no weights yet", "damaged"]


class Order(StrEnum):
    """What runs are sorted by: the newest, the best on valid, or the alphabet first."""

    time = "time"
    mrr = "mrr"
    name = "name"


@dataclass(frozen=True)
class RunLine:
    """A run at a glance; what it has not got, or what cannot be read, is None."""

    name: str
    state: State
    reason: str = ""  # why it is damaged
    started: str | None = None
    data: str | None = None
    model: str | None = None
    k: int | None = None
    epochs: int | None = None
    asked: int | None = None
    valid_mrr: float | None = None
    test_mrr: float | None = None
    seconds: float | None = None


def list_runs(folder: Path, order: Order = Order.time) -> list[RunLine]:
    """Return a line for every run in a folder and the folders below it."""
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder; 'modulekge train' makes runs, or name another folder")
    lines = [_line(path, _name(path, folder)) for path in find_runs(folder)]
    lines.sort(key=lambda line: line.name)
    if order is Order.time:
        lines.sort(key=lambda line: line.started or "", reverse=True)
    if order is Order.mrr:
        lines.sort(key=lambda line: -1.0 if line.valid_mrr is None else line.valid_mrr, reverse=True)
    return lines


def find_runs(folder: Path) -> Iterator[Path]:
    """Yield the run folders in a folder, without looking into them, into hidden folders or in circles."""
    for here, folders, files in os.walk(folder, followlinks=True):
        path = Path(here)
        if path != folder and path.is_symlink() and path.parent.resolve().is_relative_to(path.resolve()):
            folders.clear()
        elif _MARKS & set(files):
            folders.clear()
            yield path
        elif len(path.relative_to(folder).parts) == _DEPTH:
            folders.clear()
        else:
            folders[:] = [name for name in folders if not name.startswith(".")]


def _name(path: Path, folder: Path) -> str:
    return str(path if path == folder else path.relative_to(folder))


def _line(path: Path, name: str) -> RunLine:
    """Read one run; what is wrong with it is said in its line."""
    folder = RunFiles(path)
    fields: dict[str, Any] = {}
    try:
        config = RunFiles.existing(path).config()
        fields |= {
            "data": config.data,
            "model": config.rerank.named(config.model.name),
            "k": None if config.along_paths else config.model.k,
        }
        fields["started"] = str(read_json(path / "run.json").get("started", ""))
        records, report = folder.records(), folder.report()
        valid = valid_figures(folder, records)
        fields |= {
            "epochs": len(records),
            "asked": config.train.epochs,
            "valid_mrr": valid["mrr"] if valid else None,
            "test_mrr": report.both["mrr"] if report else None,
            "seconds": fsum(record.seconds for record in records),
        }
        _check_files(folder)
        if folder.mixture_file.exists():
            members = sum(path.is_dir() for path in folder.members.iterdir())
            fields |= {"model": f"Mixture of {members}"} | dict.fromkeys(("k", "epochs", "asked", "seconds"))
            return RunLine(name, "mixed", **fields)
    except (ModulekgeError, OSError) as error:
        return RunLine(name, "damaged", str(error).removeprefix(f"{path}/"), **fields)
    ended = len(records) >= config.train.epochs or stalled(records, config.train.patience)
    return RunLine(name, _state(folder, ended, len(records)), **fields)


def _check_files(folder: RunFiles) -> None:
    """Make sure that files are there, and that those of tensors are as long as their headers say."""
    for name in _FROM_THE_START:
        if not (folder.path / name).is_file():
            raise RunError(f"{folder.path / name}: no such file; the run folder is incomplete")
    tensors = folder.path / "triples.safetensors", folder.weights, folder.checkpoint, folder.mixture_file
    for path in tensors:
        if path.exists():
            check_tensors(path)


def _state(folder: RunFiles, ended: bool, epochs: int) -> State:
    if is_training(folder):
        return "training"
    if not (folder.weights.exists() or folder.checkpoint.exists()):
        return "no weights yet"
    if not epochs and "added" in read_json(folder.path / "run.json"):
        return "added"
    return "finished" if ended else "stopped"


def best_record(records: Sequence[EpochRecord]) -> EpochRecord | None:
    """Return the epoch of the best valid MRR, whose weights are kept; none without a valid split."""
    return max((r for r in records if r.valid), key=lambda r: r.mrr or 0.0, default=None)


def figures_of(folder: RunFiles) -> dict[str, float]:
    """Return the MRR of valid and of test, as far as they are known."""
    try:
        valid, report = valid_figures(folder, folder.records()), folder.report()
    except (ModulekgeError, OSError):  # of a run that is shown
        return {}
    return {
        split: both["mrr"] for split, both in (("valid", valid), ("test", report and report.both)) if both
    }


def valid_figures(folder: RunFiles, records: Sequence[EpochRecord]) -> dict[str, float] | None:
    """Return the figures on valid of the weights that are kept.

    Of a reranked run they are not those of its training, and are known once it was evaluated on valid; so
    are those of a mixture.
    """
    if not folder.config().rerank.on and not folder.mixture_file.exists():
        best = best_record(records)
        return best.valid if best else None
    report = folder.report("valid")
    return report.both if report else None
