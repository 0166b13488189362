"""The best answer in the time given: rows tried by successive halving, paths of the graph, and their mixture.

Each row trains for a share of the time of embeddings; the best on valid goes on with what is left of it. A
model of paths has the larger part. What was trained is mixed, so nothing that was learned is thrown away.
"""

import shutil
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import fsum
from pathlib import Path
from typing import Any

from modulekge.config import ModelConfig, nested
from modulekge.data.dataset import Dataset
from modulekge.data.readers.tabular import Source
from modulekge.data.registry import as_dataset
from modulekge.errors import EndedError, RunError
from modulekge.machine import give_memory_back, held_memory
from modulekge.run.calibrate import calibrate
from modulekge.run.defaults import TRAINING, Pace, default_minutes
from modulekge.run.estimate import Estimate, Pacer, reckoned
from modulekge.run.folder import RunFolder
from modulekge.run.load import Machine, Size, load_of
from modulekge.run.mix import mix_runs
from modulekge.run.plan import Plan, plan
from modulekge.run.progress import Event, shown, unseen
from modulekge.run.recipes import find_recipe
from modulekge.run.run import Run, load
from modulekge.run.train import continue_run
from modulekge.training.optimizers import pick_device
from modulekge.training.records import EpochRecord, curve
from modulekge.wording import duration

NAME = "Mixture"  # of such a training, in place of a model's
ROWS = ("ModulE-HH", "ComplEx", "ModulE-RC")
PATHS = "Paths"
_TRAINED = 0.7  # share of the time; the rest is for planning, mixing, calibrating and ranking test
_PATHS = 0.55  # of it, for paths
_FIRST = 0.15  # of the time of embeddings, for each row at first
_LEAST = {"cpu": 0.0, "cuda": 50.0}  # seconds for it, as steps are compiled first
_TRIED = 0.5  # of the time of embeddings, for all rows at first
_TOO_LONG = 1.5  # times its time, that the least training of paths may take to be tried
_AFTER = 0.05  # share of the time, for mixing, and for ranking test
_TOGETHER = 1.75  # times what a question costs its members, that it costs their mixture
_GRACE = 1.1  # times its time, that a training may take to come to its end
_QUICKEST = 1e-5  # seconds of a question

Events = Generator[Event, None, None]
Monitor = Callable[[RunFolder, Events], Iterable[Event]]


@dataclass(frozen=True)
class Trial:
    """A model that is tried: its settings, the seconds it has at first, and those it has if it goes on."""

    model: str
    planned: Plan
    first: float
    whole: float


@dataclass(frozen=True)
class Portfolio:
    """What is tried in a time, and what is not, with the reason."""

    minutes: float
    trials: tuple[Trial, ...]
    left_out: tuple[tuple[str, str], ...]
    most_questions: int | None  # that mixing may ask, and ranking test; None: any number

    def told(self, tried: "list[Tried]") -> dict[str, Any]:
        """What a run's folder keeps of how it came to be."""
        found = [{key: value for key, value in asdict(each).items() if key != "folder"} for each in tried]
        return {"minutes": self.minutes, "tried": found}


@dataclass(frozen=True)
class Tried:
    """What a trial gave."""

    model: str
    folder: RunFolder
    seconds: float
    epochs: int
    valid_mrr: float


def is_default(dataset: Dataset) -> bool:
    """Say whether 'train' makes a mixture unless told otherwise: by valid, where there is no recipe."""
    return len(dataset.valid) > 0 and find_recipe(dataset.name, ModelConfig().name) is None


def needs_of_mixture(dataset: Dataset) -> Estimate:
    """Reckon the memory of the largest member, without timing a step."""
    planned = plan_portfolio(dataset, pace=partial(reckoned, dataset))
    device = pick_device("auto")
    size, machine = Size.of(dataset), Machine.at(device)
    most = max(load_of(size, machine, trial.planned.config).bytes for trial in planned.trials)
    memory = held_memory() + int(most)
    return Estimate(str(device), memory, machine.memory, minutes=planned.minutes)


def plan_portfolio(
    dataset: Dataset, minutes: float | None = None, pace: Pace | None = None, seed: int = 0
) -> Portfolio:
    """Choose what to try on a graph in so much time on this machine; steps are timed to know its ``pace``."""
    dataset.check_facts()
    dataset.check_split("valid", "to choose by; split the graph by rule, or name a model")
    size, machine, pace = Size.of(dataset), Machine.at(pick_device("auto")), pace or Pacer(dataset)
    planned = partial(_planned, dataset, pacer=pace, seed=seed)
    minutes = minutes or default_minutes(size)
    trained = 60 * minutes * _TRAINED
    left_out, trials = [], list[Trial]()
    paths = planned(PATHS, _PATHS * trained)
    seconds, _ = paths.time()
    if seconds > _TOO_LONG * _PATHS * trained:
        finding = f"{duration(seconds)} for the least training, and there are {duration(_PATHS * trained)}"
        left_out.append((PATHS, finding))
        whole = trained
    else:
        trials.append(Trial(PATHS, paths, _PATHS * trained, _PATHS * trained))
        whole = (1 - _PATHS) * trained
    first = max(_FIRST * whole, _LEAST[machine.kind])
    tried = ROWS[: max(1, int(_TRIED * whole / first))]
    rest = whole - first * (len(tried) - 1)
    rows = [Trial(row, _validated(planned(row, rest), first), first, rest) for row in tried]
    left_out += [(row, "there is no time to try it") for row in ROWS[len(tried) :]]
    most = None
    if machine.kind == "cpu":  # all members are asked
        seconds = fsum(trial.planned.pace(trial.planned.config).question for trial in trials)
        most = int(_AFTER * 60 * minutes / max(_TOGETHER * seconds, _QUICKEST))
    return Portfolio(minutes, (*rows, *trials), tuple(left_out), most)


def _planned(dataset: Dataset, model: str, seconds: float, pacer: Pace, seed: int) -> Plan:
    return plan(dataset, model, [nested("train.seed", seed)], minutes=seconds / 60 / TRAINING, pace=pacer)


def candidates_folder(out: Path) -> Path:
    """Where trials are kept until they are mixed, beside the run to be made."""
    return out.with_name(f"{out.name}.candidates")


def check_place(out: Path) -> None:
    """Refuse a place where there is something, but for a mixture made when its training was stopped."""
    if not _stopped_early(out):
        RunFolder.check_free(out)


def clear_place(out: Path) -> None:
    """Remove a mixture made when its training was stopped: what it is made of was trained on."""
    if _stopped_early(out):
        shutil.rmtree(out)


def _stopped_early(out: Path) -> bool:
    with suppress(OSError):  # a name that is too long
        return bool(out.name) and RunFolder(out).mixture_file.exists() and candidates_folder(out).is_dir()
    return False


def train_mixture(
    data: Dataset | Source = "world",
    out: str | Path = "runs/mixture",
    minutes: float | None = None,
    *,
    columns: str | Sequence[str | int] | None = None,
    labels: Source | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Run:
    """Train several models on a graph in so many minutes, None: 5 to 15, and return their mixture.

    ``seed`` is that of every model; ``data``, ``columns``, ``labels`` and ``progress`` are those of
    :func:`modulekge.train`. Left before its end, the same call goes on.

    >>> run = modulekge.train_mixture("my-graph.tsv", "runs/best", minutes=10)  # doctest: +SKIP
    """
    path = Path(out)
    check_place(path)
    dataset = as_dataset(data, columns, labels)
    portfolio = plan_portfolio(dataset, minutes, seed=seed)
    tried = run_trials(portfolio, dataset, path, shown if progress else unseen)
    clear_place(path)
    run, _ = mix_runs(runs_of(tried), path, iter, portfolio.most_questions, portfolio.told(tried))
    remove_trials(path)
    calibrate(run)
    return run


def run_trials(
    portfolio: Portfolio,
    dataset: Dataset,
    out: Path,
    watch: Monitor = unseen,
    stopped: Callable[[], bool] = lambda: False,
) -> list[Tried]:
    """Train what was planned, best first on return; what an earlier call has trained goes on from there.

    Once ``stopped`` says so, nothing more is begun.
    """
    place = candidates_folder(out)
    folders = {trial.model: _folder(place / trial.model, trial, dataset) for trial in portfolio.trials}
    rows = [trial for trial in portfolio.trials if trial.model != PATHS]
    for trial in rows:
        if not stopped():
            train_for(folders[trial.model], trial.first, watch)
    best = max(rows, key=lambda trial: _tried(trial, folders[trial.model]).valid_mrr)
    for trial in (best, *(trial for trial in portfolio.trials if trial.model == PATHS)):
        if not stopped():
            train_for(folders[trial.model], _GRACE * trial.whole, watch)
    found = [_tried(trial, folders[trial.model]) for trial in portfolio.trials]
    trained = [each for each in found if each.folder.weights.exists()]
    if not trained:
        raise RunError(f"{place}: no model was trained for an epoch yet; the same command goes on")
    return sorted(trained, key=lambda each: -each.valid_mrr)


def runs_of(tried: list[Tried]) -> list[Run]:
    """Load what was trained, to be mixed; the graph is held once."""
    give_memory_back()  # that training needed
    device = pick_device("auto")
    runs = [load(each.folder.path).on(device) for each in tried]
    return [replace(run, dataset=runs[0].dataset) for run in runs]


def remove_trials(out: Path) -> None:
    """Remove what is kept of trials beside a run: it holds copies of them."""
    shutil.rmtree(candidates_folder(out), ignore_errors=True)


def _folder(path: Path, trial: Trial, dataset: Dataset) -> RunFolder:
    if (path / "config.toml").exists():
        folder = RunFolder.existing(path)
        if folder.dataset().fingerprint != dataset.fingerprint:
            raise RunError(f"{path}: of another graph; remove {path.parent}, or choose another --out")
        return folder
    return RunFolder.create(path, trial.planned.config, dataset)


def _validated(planned: Plan, seconds: float) -> Plan:
    """Have a training validated for the first time after so many seconds at the latest."""
    train, pace = planned.config.train, planned.pace(planned.config)
    every = max(1, int(seconds * train.parts / pace.a_pass)) if pace.a_pass else train.eval_every
    train = replace(train, eval_every=min(every, train.eval_every))
    return replace(planned, config=replace(planned.config, train=train))


def train_for(folder: RunFolder, seconds: float, watch: Monitor) -> None:
    """Train a run for about so many seconds in all, unless its epochs end or nothing better is found.

    One that was not validated by then, on a machine slower than planned, has one more epoch, which is.
    """
    give_memory_back()  # that another model needed
    before = fsum(record.seconds for record in folder.records())
    if before >= seconds and folder.weights.exists():
        return
    started, last, settings = time.monotonic(), 0, list[dict[str, Any]]()
    while True:
        events = continue_run(folder, settings)
        try:
            for event in watch(folder, events):
                if isinstance(event, EpochRecord):
                    had = before + time.monotonic() - started
                    if had + event.seconds / 2 > seconds:  # with one epoch more it were farther off
                        last = event.epoch
                        break
        except EndedError:  # by an earlier call
            return
        finally:
            events.close()
        if not last or settings or folder.weights.exists():
            return
        settings = [nested("train.eval_every", last + 1)]


def _tried(trial: Trial, folder: RunFolder) -> Tried:
    records = folder.records()
    best = max((mrr for _, mrr in curve(records)), default=0.0)
    return Tried(trial.model, folder, fsum(record.seconds for record in records), len(records), best)
