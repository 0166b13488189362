"""Training into a run folder: settings resolved, best and last weights kept, continued on request."""

import time
import warnings
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.optim import Optimizer

from modulekge.config import Config, current, holds, make_config, merge, nested, read_config
from modulekge.data.dataset import Dataset
from modulekge.data.registry import open_dataset
from modulekge.errors import ConfigError, EndedError, RunError
from modulekge.models.embedding import Embedding
from modulekge.models.spec import COLUMNS, ModelSpec, named, parametrization, row, spec_of
from modulekge.run.checkpoint import new_model
from modulekge.run.defaults import Choice, Machine, Size, choose
from modulekge.run.folder import RunFolder
from modulekge.run.lock import only_one
from modulekge.run.recipes import find_recipe, recipe_at_hand
from modulekge.run.run import Run, load
from modulekge.run.trackers import Tracker, Tracking, make_trackers
from modulekge.training.ema import averaged
from modulekge.training.fit import fit
from modulekge.training.optimizers import check_matmul, make_optimizer, pick_device
from modulekge.training.records import EpochProgress, EpochRecord, stalled
from modulekge.workers import workers

NO_RECIPE = Path("none")  # in place of a recipe: settings are chosen by rule even where there is one
_CHECKPOINT_SECONDS = 60.0  # a crash costs at most this much training, and an epoch


def train(
    data: Dataset | str | Path = "world",
    model: ModelSpec | str | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    track: Iterable[str] = (),
) -> Run:
    """Train a model on a graph and return the run, also kept in the folder ``out``.

    ``settings`` are dotted keys, such as ``{"train.epochs": 20, "model.k": 32}``; ``track`` names trackers,
    such as ``["tensorboard"]``, that show the epochs as they come.
    """
    layers = [nested(key, value) for key, value in (settings or {}).items()]
    check_asked(model, layers)
    if out:
        RunFolder.check_free(Path(out))
    dataset = data if isinstance(data, Dataset) else open_dataset(data)
    config = resolve(dataset, model, layers)
    path = Path(out) if out else default_folder(config)
    trackers = make_trackers(track, path) if workers().is_main else {}
    workers().on_main(lambda: RunFolder.create(path, config, dataset))
    return _to_the_end(RunFolder(path), {}, trackers)


def resume(run: str | Path, settings: Mapping[str, Any] | None = None, track: Iterable[str] = ()) -> Run:
    """Go on with a run that was interrupted, or that should train for longer: ``{"train.epochs": 200}``."""
    folder = RunFolder.existing(Path(run))
    return _to_the_end(folder, settings or {}, make_trackers(track, folder.path) if workers().is_main else {})


def _to_the_end(folder: RunFolder, settings: Mapping[str, Any], trackers: Mapping[str, Tracker]) -> Run:
    with Tracking(folder, trackers, warnings.warn) as tracking:
        for event in continue_run(folder, [nested(key, value) for key, value in settings.items()]):
            tracking.feed(event)
    return load(folder.path)


@dataclass(frozen=True)
class Plan:
    """What a run will use: its settings, and those of them that rules chose, with reasons."""

    config: Config
    choices: tuple[Choice, ...]


def resolve(
    dataset: Dataset,
    model: ModelSpec | str | None = None,
    settings: Iterable[Mapping[str, Any]] = (),
    recipe: Path | None = None,
) -> Config:
    """Return the full settings: defaults, then a recipe or what rules choose, then what was asked for."""
    return plan(dataset, model, settings, recipe).config


def plan(
    dataset: Dataset,
    model: ModelSpec | str | None = None,
    settings: Iterable[Mapping[str, Any]] = (),
    recipe: Path | None = None,
) -> Plan:
    """Resolve the settings, with the reasons of those that were chosen by rule.

    Without a recipe file, the one that belongs to this data set and model is used; where there is none,
    or the recipe is ``NO_RECIPE``, the rules of :mod:`modulekge.run.defaults`.
    """
    dataset.check_facts()
    asked = _asked(model, settings)
    wanted = make_config([asked], "settings")
    recipe = (
        recipe_at_hand(recipe)
        if recipe
        else find_recipe(dataset.name, spec_of(wanted.model).name) or NO_RECIPE
    )
    choices: tuple[Choice, ...] = ()
    if recipe == NO_RECIPE:
        own_row = any(asked.get("model", {}).get(key) for key in ("name", *COLUMNS))
        machine = Machine.at(pick_device(wanted.train.device))
        chosen = choose(Size.of(dataset), machine, spec_of(wanted.model) if own_row else None)
        choices = tuple(choice for choice in chosen if not holds(asked, choice.key))
        config = make_config([*(nested(c.key, c.value) for c in choices), asked], "settings")
    else:
        config = make_config([read_config(recipe), asked], str(recipe))
    spec = spec_of(config.model)
    words = {"data": dataset.name, "model": {"name": spec.name, **spec.words()}}
    config = make_config([asdict(config), words])
    check_settings(config)
    return Plan(config, choices)


def _asked(model: ModelSpec | str | None, settings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what was asked for as one layer of settings."""
    asked: dict[str, Any] = {} if model is None else {"model": _words(model)}
    for layer in settings:
        asked = merge(asked, _in_full(layer))
    return asked


def check_asked(
    model: ModelSpec | str | None, settings: Iterable[Mapping[str, Any]], recipe: Path | None = None
) -> None:
    """Refuse what is wrong with settings and a named recipe, before a graph is read for them."""
    asked = _asked(model, settings)
    spec_of(make_config([asked], "settings").model)
    if recipe and recipe != NO_RECIPE:
        path = recipe_at_hand(recipe)
        check_settings(make_config([read_config(path), asked], str(path)))


def check_settings(config: Config) -> None:
    """Refuse settings that contradict each other or this machine, before anything is made of them."""
    spec = spec_of(config.model)
    if config.model.reciprocal == "tied":
        spec.check_tieable()
    if config.loss.relation_prediction:
        spec.check_linear()
    check_matmul(config.train.precision, pick_device(config.train.device))


def _in_full(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was asked for in full: a model's name asks for its row, whatever stood there before."""
    if "data" in settings:
        raise ConfigError("data is no setting here: name the graph as DATA")
    settings = current(settings)
    model = settings.get("model")
    if isinstance(model, Mapping) and "name" in model:
        return {**settings, "model": {**dict.fromkeys(COLUMNS, ""), **model}}
    return dict(settings)


def default_folder(config: Config) -> Path:
    """Return a dated folder under runs/ that does not exist yet."""
    stem = f"{datetime.now():%Y%m%d-%H%M%S}-{config.data}-{config.model.name}".replace("*", "+")
    names = (stem if i == 1 else f"{stem}-{i}" for i in range(1, 1000))
    return next(path for name in names if not (path := Path("runs") / name).exists())


def continue_run(
    folder: RunFolder, settings: Iterable[Mapping[str, Any]] = ()
) -> Generator[EpochProgress | EpochRecord, None, None]:
    """Train a run from where it is to its last epoch, yielding what happens.

    Settings are changed once all else is found in order. Leaving the loop after an epoch keeps that
    epoch; leaving it within one keeps the last checkpoint.
    """
    with ExitStack() as held:
        workers().on_main(lambda: held.enter_context(only_one(folder)))
        config, dataset = folder.changed(settings), folder.dataset(names=workers().size == 1)
        check_settings(config)
        model, optimizer = begin(config, dataset)
        group = model.workers
        epoch = folder.restore(model, optimizer)
        records = folder.records(until=epoch)
        if len(records) < epoch:
            finding = f"has {len(records)} of the {epoch} epochs of {folder.checkpoint.name}"
            raise RunError(f"{folder.epochs}: {finding}; restore it from a copy, or train a new run")
        if records and records[-1].valid and not folder.weights.exists():  # a crash came between the two
            with averaged(model, optimizer, config.train):
                folder.save_weights(model)
        _check_unfinished(folder, config, records)
        device = pick_device(config.train.device)
        for write in (
            partial(folder.write_config, config),
            partial(folder.write_records, records),
            partial(folder.add_session, epoch + 1, device, group.size),
        ):
            group.on_main(write)
        best = max((r.valid["mrr"] for r in records if r.valid), default=-1.0)
        saved_at = time.monotonic()
        for event in fit(model, dataset, optimizer, config, epoch + 1):
            if isinstance(event, EpochRecord):
                records.append(event)
                group.on_main(partial(folder.add_record, event))
                if event.valid and event.valid["mrr"] > best:
                    best = event.valid["mrr"]
                    if not folder.checkpoint.exists():  # without it, weights could not go on
                        folder.save_checkpoint(model, optimizer, event.epoch)
                    with averaged(model, optimizer, config.train):
                        folder.save_weights(model)
                final = event.epoch == config.train.epochs or stalled(records, config.train.patience)
                due = group.all_min(time.monotonic() - saved_at > _CHECKPOINT_SECONDS)
                if event.valid or final or due:
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


def begin(config: Config, dataset: Dataset) -> tuple[Embedding, Optimizer]:
    """Return a model as drawn from its seed, on its device, and its optimiser."""
    model = new_model(config, dataset, workers(config.train.shards))
    seed = torch.Generator().manual_seed(config.train.seed)
    model.draw(seed, config.model.scalar_scale, config.model.vector_scale).to(
        pick_device(config.train.device)
    )
    return model, make_optimizer(model, config.train)


def _check_unfinished(folder: RunFolder, config: Config, records: list[EpochRecord]) -> None:
    """Say how a run that has ended can be given more."""
    done, patience = len(records), config.train.patience
    if done >= config.train.epochs:
        raise EndedError(
            f"{folder.path}: has had its {done} epochs; give it more: --set train.epochs={2 * done}"
        )
    if stalled(records, patience):
        raise EndedError(
            f"{folder.path}: stopped at epoch {done}, no better for {patience} validations; "
            f"give it more: --set train.patience={2 * patience}"
        )


def _words(model: ModelSpec | str) -> dict[str, str]:
    """Write a row in words, and make sure that a loaded run gives the same row back."""
    if isinstance(model, str):
        spec = named(model)
        return {"name": spec.name, **spec.words()}
    words = model.words()
    groups = (*model.entity_groups, *model.relation_groups)
    used = {g.parametrization.name for g in groups if g.parametrization.kind == "unit" and not g.trivial} or {
        "normalised"
    }
    if len(used) > 1 or row(model.name, **words).parametrized(parametrization(*used)) != model:
        raise ConfigError(f"model {model.name}: its parts are not those of these names: {words}, {used}")
    return {"name": model.name, "parametrization": used.pop(), **words}
