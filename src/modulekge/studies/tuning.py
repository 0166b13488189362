"""Tuning: settings searched with Optuna by valid MRR; test is never touched.

A search lives in a database that any number of processes may share, and that the same command goes on with.
"""

import importlib
import json
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from modulekge.config import holds, merge, nested, write_config
from modulekge.data.dataset import Dataset
from modulekge.errors import ConfigError, ModulekgeError, RunError, TrainingError
from modulekge.installation import to_install
from modulekge.run.checkpoint import begin
from modulekge.run.estimate import reckoned
from modulekge.run.files import write_file
from modulekge.run.plan import NO_RECIPE, resolve
from modulekge.studies.pool import processes
from modulekge.training.fit import fit
from modulekge.training.records import EpochRecord, stalled
from modulekge.wording import counted

_ERRORS = (ModulekgeError, MemoryError, RuntimeError)  # torch has no class of its own for want of memory
_LOCK_SECONDS = 60  # that a process waits for another one to leave the database
_SCHEDULE = ("epochs", "eval_every", "patience", "parts")


@dataclass(frozen=True)
class Between:
    """Any number between two, tried evenly on a logarithmic scale."""

    low: float
    high: float


Space = Mapping[str, Any]  # a tuple of values for a key, or Between
SPACES: dict[str, Space] = {
    # What the authors of ModulE say they searched, and the batches they ended with
    "paper": {
        "model.name": ("ModulE-HH",),
        "model.k": (32, 64, 128, 256, 512),
        "train.batch": (300, 500, 1000),
        "regularizer.weight": (0.005, 0.01, 0.03, 0.04, 0.045, 0.05, 0.06, 0.07, 0.08),
        "regularizer.head": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
        "regularizer.relation": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
        "regularizer.tail": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
        "regularizer.p": (2, 3),
    },
    "wide": {
        "model.name": ("ModulE-RC", "ModulE-RH", "ModulE-HH", "ComplEx", "DistMult", "BiQUE"),
        "model.k": (32, 64, 128),
        "model.parametrization": ("normalised", "exponential", "angles"),
        "model.scalar_scale": (0.03, 0.1, 0.3),
        "model.vector_scale": (0.1, 0.3, 1.0),
        "train.batch": (64, 128, 256, 512, 1024),
        "train.lr": (0.05, 0.1, 0.2),
        "train.ema": (0.0, 0.7, 0.9),
        "regularizer.weight": Between(0.0005, 0.1),
        "loss.targets": ("one", "all"),
    },
    "paths": {
        "model.name": ("Paths-DistMult", "Paths-ComplEx", "Paths-ModulE-RC", "Paths-ModulE-HH"),
        "paths.layers": (3, 4, 6),
        "paths.d": (16, 32, 64),
        "paths.aggregation": ("mean-std", "mean", "sum"),
        "paths.dropout": (0.0, 0.1, 0.2),
        "train.lr": Between(0.001, 0.01),
    },
}


@dataclass(frozen=True, eq=False)
class Search:
    """What is searched, on which graph, with which settings fixed, and where it is kept."""

    dataset: Dataset
    space: Space
    fixed: Mapping[str, Any]  # as in a recipe
    schedule: Mapping[str, Any]  # the same in all trials, so that they compare at each validation
    storage: str  # a file, or the address of a database

    @classmethod
    def of(
        cls, dataset: Dataset, space: Space, settings: Iterable[Mapping[str, Any]], storage: str
    ) -> "Search":
        """Leave out of the space what settings fix, and have rules choose how long to train."""
        fixed: dict[str, Any] = {}
        for layer in settings:
            fixed = merge(fixed, layer)
        first = [nested("model.name", name) for name in space.get("model.name", ())[:1]]
        train = resolve(dataset, None, [*first, fixed], NO_RECIPE).train
        free = {key: values for key, values in space.items() if not holds(fixed, key)}
        dataset.check_split("valid", "to compare trials by; hold some out")
        if not free:
            raise ConfigError("every setting of the space is fixed; leave one to search")
        schedule = {key: getattr(train, key) for key in _SCHEDULE}
        return cls(dataset, free, fixed, {"train": schedule}, storage)


@dataclass(frozen=True)
class Trial:
    """A training of a search, under way or at its end."""

    number: int
    state: str  # running, complete, pruned, failed
    settings: Mapping[str, Any]
    epoch: int
    mrr: float | None  # the best on valid so far
    error: str = ""


def optuna() -> Any:
    """Return Optuna, quiet; an extra that not everyone has."""
    try:
        module = importlib.import_module("optuna")
    except ImportError:
        raise ModulekgeError(f"tuning needs Optuna: {to_install('tune')}") from None
    module.logging.set_verbosity(module.logging.ERROR)
    return module


def open_study(search: Search, seed: int) -> Any:
    """Return the search's study in its database, begun where there is none.

    What is drawn depends on the seed and on how many trials there are, so that a search that goes on does
    not draw again what it has.
    """
    for patience in (0.2, 0.5, 1.0, None):  # for another process that makes the same database meanwhile
        try:
            study = _created(search.storage)
            break
        except Exception as error:  # whatever the database has to say
            if patience is None:
                reason = str(error).splitlines()[0]
                raise RunError(
                    f"{search.storage}: cannot be used ({reason}); choose another --storage"
                ) from None
            time.sleep(patience)
    _claim(study, search)
    study.sampler = optuna().samplers.TPESampler(seed=seed + len(study.trials))
    return study


def _created(address: str) -> Any:
    library = optuna()
    if "://" in address:
        storage = library.storages.RDBStorage(address)
    else:
        if "?" in address:
            raise ConfigError(f"{address}: a database cannot lie there for the '?'; choose another --out")
        Path(address).parent.mkdir(parents=True, exist_ok=True)
        waiting = {"connect_args": {"timeout": _LOCK_SECONDS}}
        storage = library.storages.RDBStorage(f"sqlite:///{address}", engine_kwargs=waiting)
    return library.create_study(
        study_name="modulekge",
        storage=storage,
        direction="maximize",
        load_if_exists=True,
        pruner=library.pruners.MedianPruner(n_startup_trials=4),
    )


def _claim(study: Any, search: Search) -> None:
    """Mark a new study with what it searches, and refuse one that searches something else."""
    held = study.user_attrs
    marks = {
        "data": (search.dataset.name, f"on {held.get('data')}"),
        "graph": (search.dataset.fingerprint, "on a graph of this name with other triples"),
        "space": (
            json.dumps({key: repr(values) for key, values in search.space.items()}),
            "of another space",
        ),
        "settings": (json.dumps(search.fixed, sort_keys=True), "with other settings fixed"),
    }
    for name, (mark, otherwise) in marks.items():
        if not _same(held.get(name, mark), mark):
            raise RunError(f"{search.storage}: holds a search {otherwise}; choose another --out or --storage")
    for name, (mark, _) in marks.items():
        study.set_user_attr(name, mark)
    if "schedule" not in held:  # which a machine with more threads would choose longer
        study.set_user_attr("schedule", search.schedule)


def _same(held: str, mark: str) -> bool:
    """Whether two marks are one, in whatever order they name things."""
    return held == mark or (mark.startswith("{") and json.loads(held) == json.loads(mark))


def tune(search: Search, study: Any, trials: int, minutes: float) -> Generator[Trial, None, None]:
    """Run trials until the study has so many or the time is up, yielding each validation and each end.

    A trial that is left before its end is put back into the queue, to be the next one.
    """
    deadline = time.monotonic() + 60 * minutes
    fixed = [study.user_attrs["schedule"], search.fixed]
    while finished(study) < trials and time.monotonic() < deadline:
        trial, told = study.ask(), False
        try:
            for event in _run(search.dataset, trial, [*_draw(trial, search.space), *fixed]):
                if event.state != "running":
                    study.tell(trial, **_verdict(event))
                    told = True
                yield event
                if not told and time.monotonic() > deadline:
                    return
        finally:  # also after Ctrl-C, or when the loop outside is left
            if not told:
                _put_back(study, trial)


@contextmanager
def more_workers(search: Search, count: int, seed: int, trials: int, minutes: float) -> Iterator[None]:
    """Have so many processes work on the same search beside this one, and wait for them at the end.

    If this one is interrupted or gone, they end with their next validation.
    """
    each = [(search, seed + 1000 * worker, trials, minutes) for worker in range(1, count + 1)]
    with processes(_help, each, count + 1):
        torch.set_num_threads(max(1, torch.get_num_threads() // (count + 1)))
        yield


def _help(search: Search, seed: int, trials: int, minutes: float) -> Generator[Trial, None, None]:
    yield from tune(search, open_study(search, seed), trials, minutes)


def _draw(trial: Any, space: Space) -> list[dict[str, Any]]:
    """Have Optuna choose a value for each setting of the space."""
    return [
        nested(
            key,
            trial.suggest_float(key, values.low, values.high, log=True)
            if isinstance(values, Between)
            else trial.suggest_categorical(key, values),
        )
        for key, values in space.items()
    ]


def _run(dataset: Dataset, trial: Any, settings: Iterable[Mapping[str, Any]]) -> Iterator[Trial]:
    """Train with these settings, reporting each validation; the last event says how it ended."""
    drawn, epoch, best = dict(trial.params), 0, None
    records: list[EpochRecord] = []
    try:
        config = resolve(dataset, None, settings, NO_RECIPE, partial(reckoned, dataset))
        trial.set_user_attr("config", write_config(config))
        model, optimizer = begin(config, dataset)
        for event in fit(model, dataset, optimizer, config):
            if not isinstance(event, EpochRecord):
                continue
            records.append(event)
            if (mrr := event.mrr) is not None:
                epoch = event.epoch
                best = mrr if best is None else max(best, mrr)
                trial.report(mrr, epoch)
                trial.set_user_attr("epoch", epoch)
                yield Trial(trial.number, "running", drawn, epoch, best)
                if trial.should_prune():
                    yield Trial(trial.number, "pruned", drawn, epoch, best)
                    return
            if stalled(records, config.train.patience):
                break
    except _ERRORS as error:
        message = " ".join(str(error).split())
        trial.set_user_attr("error", message)
        yield Trial(trial.number, "failed", drawn, epoch, best, message)
        return
    yield Trial(trial.number, "complete", drawn, epoch, best)


def _verdict(event: Trial) -> dict[str, Any]:
    """What Optuna is told of a trial at its end."""
    states = optuna().trial.TrialState
    if event.state == "complete":
        return {"values": event.mrr, "state": states.COMPLETE}
    return {"state": states.PRUNED if event.state == "pruned" else states.FAIL}


def _put_back(study: Any, trial: Any) -> None:
    trial.set_user_attr("left", True)
    study.tell(trial, state=optuna().trial.TrialState.FAIL)
    study.enqueue_trial(trial.params)


def finished(study: Any) -> int:
    """How many trials came to an end of their own."""
    return sum(t.state.is_finished() and not t.user_attrs.get("left") for t in study.trials)


def ranking(study: Any) -> list[Trial]:
    """Return the trials that were trained to their end, the best first."""
    complete = [t for t in study.trials if t.state.name == "COMPLETE"]
    complete.sort(key=lambda t: -t.value)
    return [Trial(t.number, "complete", t.params, t.user_attrs["epoch"], t.value) for t in complete]


def write_best(study: Any, path: Path) -> Trial:
    """Write the settings of the best trial as a recipe that says how it was found."""
    best = next(iter(ranking(study)), None)
    if best is None:
        errors = [t.user_attrs["error"] for t in study.trials if "error" in t.user_attrs]
        if errors:
            raise TrainingError(f"{counted(len(errors), 'trial')} failed, the last so: {errors[-1]}")
        raise TrainingError(
            "no trial came to its end; the same command goes on, if need be with more --minutes"
        )
    config = study.trials[best.number].user_attrs["config"]
    found = f"the best on valid of {finished(study)} trials"
    comment = f"# Found by 'modulekge tune': {found}, trial {best.number}, valid MRR {best.mrr:.4f};\n"
    seed = next(line for line in config.splitlines() if line.startswith("seed"))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, f"{comment}# train.{seed}; test was not looked at.\n{config}")
    return best
