"""A cell: one training with one seed, and what it gave, in a small file of its own."""

import json
import shlex
import tempfile
from collections.abc import Generator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from modulekge.config import Config, dotted, merge, nested, read_config
from modulekge.data.benchmarks import Split
from modulekge.data.registry import open_dataset
from modulekge.errors import EndedError, RunError
from modulekge.evaluation.evaluate import evaluate
from modulekge.json_io import typed
from modulekge.run.files import parse_json, read_json, unwritable, write_file
from modulekge.run.folder import RunFolder
from modulekge.run.plan import resolve
from modulekge.run.provenance import source_commit
from modulekge.run.recipes import find_recipe
from modulekge.run.run import load
from modulekge.run.train import continue_run
from modulekge.studies.paper import METRICS
from modulekge.training.optimizers import pick_device
from modulekge.training.records import EpochProgress, EpochRecord, curve


@dataclass(frozen=True)
class Cell:
    """A model on a data set with a recipe, some settings, and a seed."""

    dataset: str
    model: str
    recipe: str = ""  # of another model, or another one of its own; its own unless said
    settings: tuple[tuple[str, Any], ...] = ()
    seed: int = 0
    aliases: tuple[str, ...] = ()  # models that are the same row under other names
    split: Split = "test"  # which is ranked at the end; "valid" for one of many settings that are compared

    @property
    def label(self) -> str:
        """The model, by the name of its recipe where it has several."""
        return self.recipe if self.recipe.startswith(self.model) else self.model

    @property
    def name(self) -> str:
        """The name of its file; cells of different studies that are the same training share it."""
        return self.names[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Its name, then those of what may be the same training: of its aliases, and of the bare recipe."""
        words = [f"{key.split('.')[-1]}{value}" for key, value in self.settings]
        words += [] if self.split == "test" else [self.split]
        models = self.label, *self.aliases
        kinds = (words, []) if words else (words,)
        return tuple(
            "-".join([self.dataset, model, *kind, f"seed{self.seed}"]) for kind in kinds for model in models
        )

    @property
    def said(self) -> dict[str, str]:
        """Every setting that its recipe and its own say; what they leave out is a default."""
        path = find_recipe(self.dataset, self.recipe or self.model)
        joint = read_config(path) if path else {}
        for key, value in self.settings:
            joint = merge(joint, nested(key, value))
        return {
            f"{section}.{key}": str(value)
            for section, settings in joint.items()
            if isinstance(settings, dict)
            for key, value in settings.items()
            if (section, key) != ("model", "name")
        }

    @property
    def training(self) -> tuple[Any, ...]:
        """What it has in common with those cells alone that are the same training."""
        return (
            self.dataset,
            min((self.model, *self.aliases)),
            *sorted(self.said.items()),
            self.seed,
            self.split,
        )

    @property
    def command(self) -> str:
        """The command that trains and evaluates this cell alone."""
        parts = ["modulekge", "train", self.dataset, "--model", self.model]
        if self.recipe and find_recipe(self.dataset, self.recipe):
            parts += ["--recipe", f"recipes/{self.dataset}/{self.recipe}.toml"]
        for key, value in (*self.settings, ("train.seed", self.seed)):
            parts += ["--set", f"{key}={value}"]
        return shlex.join(parts)


@dataclass(frozen=True)
class Result:
    """What a cell gave: its split ranked with the weights that were best on valid, and how it was made."""

    cell: str
    date: str  # of the end of training, in UTC; of results made before they carried one, of their commit
    commit: str  # of the code; where that was not known, of the commit that added the result
    command: str
    settings: dict[str, str]  # what was said of them when it was run
    both: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    relations: dict[str, float]  # MRR of each
    curve: tuple[tuple[int, float], ...]  # epoch, valid MRR
    best_epoch: int
    epochs: int
    train_seconds: float
    entity_numbers: int  # of one entity, as stored
    device: str
    torch: str
    fingerprint: str


def read_result(cell: Cell, results: Path) -> Result | None:
    """Return the result of a cell, if it has been run, under its name or as the same training under another.

    One that its name belongs to and that had other settings is refused: the recipe has changed since.
    """
    for name in cell.names:
        path = results / f"{name}.json"
        found = _read(path) if path.exists() else None
        if found and found.settings == cell.said:
            return found
        if found and name == cell.name:
            raise RunError(
                f"{path}: made with other settings ({_differences(found.settings, cell.said)}); "
                "remove it to train it now, or name another folder with --results"
            )
    return None


def _read(path: Path) -> Result:
    try:
        found = typed(Result, parse_json(path.read_text("utf-8")))
        if found.cell != path.stem:
            raise ValueError(f"it is that of {found.cell}")
        for name, part in (("both", found.both), ("intervals", found.intervals)):
            if not part.keys() >= set(METRICS):
                raise ValueError(f"{name}: expected {', '.join(METRICS)}")
        return found
    except (ValueError, RecursionError) as error:
        raise RunError(
            f"{path}: not the result of a cell ({error}); remove it to run the cell anew"
        ) from None


def _differences(before: dict[str, Any], now: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} = {before.get(key, 'the default')}, now {now.get(key, 'the default')}"
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key)
    )


def cell_config(cell: Cell) -> Config:
    """Return the full settings of a cell."""
    layers = [nested(key, value) for key, value in (*cell.settings, ("train.seed", cell.seed))]
    recipe = find_recipe(cell.dataset, cell.recipe) if cell.recipe else None
    return resolve(open_dataset(cell.dataset), cell.model, layers, recipe)


def _check_same(cell: Cell, folder: RunFolder) -> None:
    """Refuse a run that was begun with other settings, or on another graph, than the cell has now.

    What rules chose for want of a recipe stays: on another number of cores they would choose otherwise.
    """
    held, now, said = dotted(folder.config()), dotted(cell_config(cell)), cell.said
    if not find_recipe(cell.dataset, cell.recipe or cell.model):
        now = {key: now[key] if key in said else value for key, value in held.items()}
    if changes := _differences(held, now):
        raise RunError(
            f"{folder.path}: begun with other settings ({changes}); remove it to run the cell anew"
        )
    if read_json(folder.path / "run.json").get("fingerprint") != open_dataset(cell.dataset).fingerprint:
        raise RunError(
            f"{folder.path}: begun on a graph with other triples, or the same in another order, than "
            f"{cell.dataset} has now; remove it to run the cell anew, or put that graph back"
        )


def _make_writable(results: Path) -> None:
    """Make the folder of results, or say that it cannot be written, before hours go into one."""
    try:
        results.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=results).close()
    except OSError as error:
        raise unwritable(results, error) from None


def run_cell(cell: Cell, results: Path, runs: Path) -> Generator[EpochProgress | EpochRecord, None, None]:
    """Train a cell, from where it was left if it was begun before, and keep its result.

    The run folder stays, so that nothing is lost; the result is written when test has been ranked.
    """
    _make_writable(results)
    path = runs / cell.name
    if (path / "config.toml").exists():
        folder = RunFolder.existing(path)
        _check_same(cell, folder)
    else:
        folder = RunFolder.create(path, cell_config(cell), open_dataset(cell.dataset))
    with suppress(EndedError):  # it has had its epochs, but test was not ranked
        yield from continue_run(folder)
    run = load(path)
    device = pick_device(run.config.train.device)
    report = evaluate(run.on(device).scorer, run.dataset, cell.split, triples=run.dataset[cell.split])
    records = folder.records()
    result = Result(
        cell=cell.name,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        commit=source_commit(),
        command=cell.command,
        settings=cell.said,
        both=report.both,
        intervals=report.intervals,
        relations={part.name: part.both["mrr"] for part in report.relations},
        curve=curve(records),
        best_epoch=max(curve(records), key=lambda point: point[1], default=(0, 0.0))[0],
        epochs=len(records),
        train_seconds=sum(r.seconds for r in records),
        entity_numbers=run.model.entity_numbers,
        device=torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        torch=torch.__version__,
        fingerprint=report.fingerprint,
    )
    write_file(results / f"{cell.name}.json", json.dumps(asdict(result), indent=1) + "\n")
