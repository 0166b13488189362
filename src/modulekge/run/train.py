"""Training into a run folder: settings resolved, best and last weights kept, continued on request."""

import fcntl
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import torch

from modulekge.algebra.groups import NORMALISED
from modulekge.config import Config, make_config, nested, read_config
from modulekge.data.dataset import Dataset
from modulekge.data.registry import open_dataset
from modulekge.errors import ConfigError, RunError
from modulekge.models.model import Model
from modulekge.models.spec import ModelSpec, row
from modulekge.models.table import named, spec_of
from modulekge.run.folder import RunFolder, new_model
from modulekge.training.fit import EpochRecord, Glance, fit
from modulekge.training.optimize import make_optimizer, pick_device

RECIPES = Path(__file__).parent.parent / "recipes"
_CHECKPOINT_SECONDS = 60.0  # a crash costs at most this much training, and an epoch


@dataclass(frozen=True, eq=False)
class Run:
    """A trained model with its graph and its settings."""

    folder: RunFolder
    config: Config
    dataset: Dataset
    model: Model


def load(path: str | Path) -> Run:
    """Read a run folder; no data set is needed, and no code is run from it."""
    folder = RunFolder.existing(Path(path))
    config, dataset = folder.config(), folder.dataset()
    return Run(folder, config, dataset, folder.model(config, dataset))


def train(
    data: Dataset | str | Path = "world",
    model: ModelSpec | str | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
) -> Run:
    """Train a model on a graph and return the run, also kept in the folder ``out``.

    ``settings`` are dotted keys, such as ``{"train.epochs": 20, "model.k": 32}``.
    """
    dataset = data if isinstance(data, Dataset) else open_dataset(data)
    config = resolve(dataset, model, [nested(key, value) for key, value in (settings or {}).items()])
    folder = RunFolder.create(Path(out) if out else default_folder(config), config, dataset)
    for _ in continue_run(folder):
        pass
    return load(folder.path)


def resolve(
    dataset: Dataset,
    model: ModelSpec | str | None = None,
    settings: Iterable[Mapping[str, Any]] = (),
    recipe: Path | None = None,
) -> Config:
    """Return the full settings: defaults, then the recipe, then what was asked for.

    Without a recipe file, the one that belongs to this data set and model is used, if there is one.
    """
    asked = [*([] if model is None else [{"model": _words(model)}]), *settings]
    config = make_config([read_config(recipe) if recipe else {}, *asked], str(recipe or "settings"))
    if recipe is None and (found := find_recipe(dataset.name, config.model.name)):
        config = make_config([read_config(found), *asked], str(found))
    spec = spec_of(config.model)
    return make_config([asdict(config), {"data": dataset.name, "model": {"name": spec.name, **spec.words()}}])


def find_recipe(dataset: str, model: str) -> Path | None:
    """Return the recipe for this model on this data set."""
    path = RECIPES / dataset / f"{model}.toml"
    return path if path.is_file() else None


def default_folder(config: Config) -> Path:
    """Return a dated folder under runs/ that does not exist yet."""
    stem = f"{datetime.now():%Y%m%d-%H%M%S}-{config.data}-{config.model.name}".replace("*", "+")
    names = (stem if i == 1 else f"{stem}-{i}" for i in range(1, 1000))
    return next(path for name in names if not (path := Path("runs") / name).exists())


def continue_run(folder: RunFolder) -> Iterator[Glance | EpochRecord]:
    """Train a run from where it is to its last epoch, yielding what happens.

    Leaving the loop after an epoch keeps that epoch; leaving it within one keeps the last checkpoint.
    """
    with _only_one(folder):
        config, dataset = folder.config(), folder.dataset()
        device = pick_device(config.train.device)
        model = new_model(config, dataset)
        model.draw(
            torch.Generator().manual_seed(config.train.seed),
            config.model.scalar_scale,
            config.model.vector_scale,
        ).to(device)
        optimizer = make_optimizer(model, config.train)
        epoch = folder.restore(model, optimizer)
        records = folder.records(until=epoch)
        folder.write_records(records)
        best = max((r.valid["mrr"] for r in records if r.valid), default=-1.0)
        saved_at = time.monotonic()
        for event in fit(model, dataset, optimizer, config, epoch + 1):
            if isinstance(event, EpochRecord):
                records.append(event)
                folder.add_record(event)
                if event.valid and event.valid["mrr"] > best:
                    best = event.valid["mrr"]
                    folder.save_weights(model)
                final = event.epoch == config.train.epochs or stalled(records, config.train.patience)
                if event.valid or final or time.monotonic() - saved_at > _CHECKPOINT_SECONDS:
                    folder.save_checkpoint(model, optimizer, event.epoch)
                    epoch, saved_at = event.epoch, time.monotonic()
                if final:
                    yield event
                    return
            try:
                yield event
            except GeneratorExit:
                if isinstance(event, EpochRecord) and event.epoch > epoch:
                    folder.save_checkpoint(model, optimizer, event.epoch)
                raise


def stalled(records: list[EpochRecord], patience: int) -> bool:
    """Whether the last ``patience`` validations brought nothing better than what was before them."""
    curve = [r.valid["mrr"] for r in records if r.valid]
    if patience == 0 or len(curve) <= patience:
        return False
    return max(curve[-patience:]) <= max(curve[:-patience])


def _words(model: ModelSpec | str) -> dict[str, str]:
    """Write a row in words, and make sure that a loaded run gives the same row back."""
    if isinstance(model, str):
        spec = named(model)
        return {"name": spec.name, **spec.words()}
    words = model.words()
    if row(model.name, **words) != model.charted(NORMALISED):
        raise ConfigError(f"model {model.name}: its parts are not those of these names: {words}")
    return {"name": model.name, **words}


@contextmanager
def _only_one(folder: RunFolder) -> Iterator[None]:
    """Hold the folder against a second training; the lock goes with the process, however it ends."""
    with (folder.path / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunError(f"{folder.path}: another process is training this run; wait for it") from None
        yield
