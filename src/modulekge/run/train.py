"""Training into a run folder: settings resolved, best and last weights kept, continued on request."""

import time
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from modulekge.config import Config, nested
from modulekge.data.dataset import Dataset
from modulekge.data.readers.tabular import Source
from modulekge.data.registry import as_dataset
from modulekge.errors import EndedError, RunError
from modulekge.models.spec import ModelSpec
from modulekge.run.checkpoint import begin
from modulekge.run.folder import RunFolder
from modulekge.run.lock import only_one
from modulekge.run.plan import check_asked, check_settings, plan
from modulekge.run.progress import shown, unseen
from modulekge.run.run import Run, load
from modulekge.run.trackers import Tracker, Tracking, make_trackers
from modulekge.training.ema import averaged
from modulekge.training.fit import fit
from modulekge.training.optimizers import pick_device
from modulekge.training.records import EpochProgress, EpochRecord, curve, stalled
from modulekge.workers import workers

_CHECKPOINT_SECONDS = 60.0  # a crash costs at most this much training, and an epoch


def train(
    data: Dataset | Source = "world",
    model: ModelSpec | str | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    track: Iterable[str] = (),
    minutes: float | None = None,
    *,
    columns: str | Sequence[str | int] | None = None,
    labels: Source | None = None,
    progress: bool = False,
) -> Run:
    """Train a model on a graph and return the run, also kept in the folder ``out``.

    ``data`` is a name, a file, a table, a list or a graph, and ``columns`` and ``labels`` go with it: see
    :func:`modulekge.open_dataset`. ``settings`` are dotted keys, such as ``{"train.epochs": 20}``, and
    ``track`` names trackers, such as ``["tensorboard"]``. With ``progress`` a bar is shown, in a notebook
    too; without it nothing is.

    What is None is chosen. ``model``: ModulE-HH where this graph has a recipe of it, else ModulE-RC.
    ``settings``: by the recipe of this graph and model, else by rules, from the size of the graph and this
    machine. ``out``: a new folder under runs/. ``minutes``: as long as the settings take; where they are
    given, rules choose settings for so much time, and no recipe. ``columns``: by their titles. ``labels``:
    those that come with the data, else the names. Test is not ranked: :func:`modulekge.evaluate` does that.

    >>> run = modulekge.train("world", "ModulE-HH", {"train.epochs": 20}, progress=True)  # doctest: +SKIP
    >>> run = modulekge.train(frame, columns=("from", "kind", "to"), minutes=5)  # doctest: +SKIP
    """
    layers = [nested(key, value) for key, value in (settings or {}).items()]
    check_asked(model, layers)
    if out:
        RunFolder.check_free(Path(out))
    data = as_dataset(data, columns, labels)
    config = plan(data, model, layers, minutes=minutes).config
    path = Path(out) if out else default_folder(config.data, config.model.name)
    trackers = make_trackers(track, path) if workers().is_main else {}
    workers().on_main(lambda: RunFolder.create(path, config, data))
    return _to_the_end(RunFolder(path), {}, trackers, progress)


def resume(
    run: str | Path,
    settings: Mapping[str, Any] | None = None,
    track: Iterable[str] = (),
    *,
    progress: bool = False,
) -> Run:
    """Go on with a run that was interrupted, or that should train for longer: ``{"train.epochs": 200}``.

    ``settings`` that are None stay as they are; ``track`` and ``progress`` are those of :func:`train`.

    >>> run = modulekge.resume("runs/demo", {"train.epochs": 200})  # doctest: +SKIP
    """
    folder = RunFolder.existing(Path(run))
    trackers = make_trackers(track, folder.path) if workers().is_main else {}
    return _to_the_end(folder, settings or {}, trackers, progress)


def _to_the_end(
    folder: RunFolder, settings: Mapping[str, Any], trackers: Mapping[str, Tracker], progress: bool
) -> Run:
    events = continue_run(folder, [nested(key, value) for key, value in settings.items()])
    with Tracking(folder, trackers, warnings.warn) as tracking:
        for event in (shown if progress else unseen)(folder, events):
            tracking.feed(event)
    return load(folder.path)


def default_folder(data: str, model: str) -> Path:
    """Return a dated folder under runs/ that does not exist yet."""
    stem = f"{datetime.now():%Y%m%d-%H%M%S}-{data}-{model}".replace("*", "+")
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
        best = max((mrr for _, mrr in curve(records)), default=-1.0)
        saved_at = time.monotonic()
        for event in fit(model, dataset, optimizer, config, epoch + 1):
            if isinstance(event, EpochRecord):
                records.append(event)
                group.on_main(partial(folder.add_record, event))
                if event.mrr is not None and event.mrr > best:
                    best = event.mrr
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
