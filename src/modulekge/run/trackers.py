"""Trackers: TensorBoard, MLflow and Weights & Biases, fed with the records of a run."""

import importlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from operator import methodcaller
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from modulekge.config import Config, dotted, write_config
from modulekge.errors import ModulekgeError, RunError, one_of
from modulekge.evaluation.report import Report
from modulekge.installation import pip, to_install
from modulekge.run.run_files import RunFiles
from modulekge.training.records import EpochProgress, EpochRecord

# training waits while MLflow asks a server that is gone, for minutes unless its variables say otherwise
_MLFLOW_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}


@runtime_checkable
class Tracker(Protocol):
    """A place that shows runs. It is given a whole run, from its first epoch on, in this order."""

    def start(self, config: Config, name: str) -> None:
        """Begin with a run."""

    def record(self, record: EpochRecord) -> None:
        """Take the next epoch."""

    def finish(self, report: Report | None) -> None:
        """End, with the report on test if there is one."""


class TensorBoard:
    """Event files in the folder tensorboard of the run; ``tensorboard --logdir runs`` shows them."""

    def __init__(self, run: Path) -> None:
        self.module = _module("torch.utils.tensorboard", "tensorboard", to_install("track"))
        self.folder = run / "tensorboard"

    def start(self, config: Config, name: str) -> None:
        """Begin; what was shown of this run before is no longer shown."""
        self.settings = {key: _plain(value) for key, value in dotted(config).items()}
        self.epoch = 0
        self._wait()
        self.writer = self.module.SummaryWriter(self.folder, purge_step=1)
        lines = write_config(config).splitlines()
        self.writer.add_text("config", "\n".join(f"    {line}" for line in lines))  # Markdown for code

    def _wait(self) -> None:
        """Begin in another second than what was shown before: files are read in the order of their names."""
        names = (path.name.split(".")[3:4] for path in self.folder.glob("events.out.tfevents.*"))
        latest = max((int(second) for name in names for second in name if second.isdecimal()), default=0)
        time.sleep(min(max(0.0, latest + 1 - time.time()), 1.0))

    def record(self, record: EpochRecord) -> None:
        """Take the next epoch, and keep it at once: nothing is lost with the process."""
        self.epoch = record.epoch
        for name, value in measures(record).items():
            self.writer.add_scalar(name, value, record.epoch)
        self.writer.flush()

    def finish(self, report: Report | None) -> None:
        """End; the settings go with the test metrics into the table of runs."""
        metrics = report_measures(report)
        self.writer.add_hparams(self.settings, metrics, run_name=".", global_step=self.epoch)
        self.writer.close()


class Mlflow:
    """A run of MLflow, on the server or in the folder that its own variables name."""

    def __init__(self, run: Path) -> None:
        self.module = _module("mlflow", "mlflow", f"{pip()} install mlflow")
        for name, value in _MLFLOW_PATIENCE.items():
            os.environ.setdefault(name, value)

    def start(self, config: Config, name: str) -> None:
        """Begin a run of this name, with every setting as a parameter."""
        self.module.start_run(run_name=name)
        self.module.log_params(dotted(config))

    def record(self, record: EpochRecord) -> None:
        """Take the next epoch."""
        self.epoch = record.epoch
        self.module.log_metrics(measures(record), step=record.epoch)

    def finish(self, report: Report | None) -> None:
        """End, with the test metrics."""
        if report:
            self.module.log_metrics(report_measures(report), step=self.epoch)
        self.module.end_run()


class WeightsAndBiases:
    """A run of Weights & Biases, sent or kept offline as its own variables say."""

    def __init__(self, run: Path) -> None:
        self.module = _module("wandb", "wandb", f"{pip()} install wandb")
        self.folder = run

    def start(self, config: Config, name: str) -> None:
        """Begin a run of this name, whose own files lie in the run folder."""
        self.run = self.module.init(name=name, config=dotted(config), dir=str(self.folder))

    def record(self, record: EpochRecord) -> None:
        """Take the next epoch."""
        self.run.log(measures(record), step=record.epoch)

    def finish(self, report: Report | None) -> None:
        """End, with the test metrics in its summary."""
        self.run.summary.update(report_measures(report))
        self.run.finish()


TRACKERS: dict[str, Callable[[Path], Tracker]] = {
    "tensorboard": TensorBoard,
    "mlflow": Mlflow,
    "wandb": WeightsAndBiases,
}


def make_trackers(names: Iterable[str], run: Path) -> dict[str, Tracker]:
    """Return trackers of a run by name; nothing is begun yet, but what is not installed shows here."""
    kinds = {name: one_of("tracker", name, TRACKERS) for name in names}
    return {name: kind(run) for name, kind in kinds.items()}


class Tracking:
    """Feeds trackers as a run trains; one that fails is warned of, once, and left out from then on."""

    def __init__(
        self, folder: RunFiles, trackers: Mapping[str, Tracker], warn: Callable[[str], object]
    ) -> None:
        self.folder, self.trackers, self.warn = folder, dict(trackers), warn
        self.started = False

    def __enter__(self) -> "Tracking":
        return self

    def __exit__(self, *_: object) -> None:
        self.finish(None)

    def feed(self, event: EpochProgress | EpochRecord) -> None:
        """Pass an epoch on; before the first one, all that the run has had already."""
        if not isinstance(event, EpochRecord):
            return
        records = [event]
        if not self.started:
            self.started = True
            config, records = self.folder.config(), self.folder.records(until=event.epoch)
            self._each(methodcaller("start", config, self.folder.path.resolve().name))
        for record in records:
            self._each(methodcaller("record", record))

    def finish(self, report: Report | None) -> None:
        """End all trackers that were begun; later calls find none."""
        if self.started:
            self._each(methodcaller("finish", report))
        self.trackers.clear()

    def _each(self, act: Callable[[Tracker], None]) -> None:
        for name, tracker in list(self.trackers.items()):
            try:
                act(tracker)
            except Exception as error:  # whatever it is: training matters more
                del self.trackers[name]
                self.warn(
                    f"warning: {name} failed ({_one_line(error)}) and gets no more of this run; later, "
                    f"'modulekge track {self.folder.path} --to {name}' sends all of it"
                )


def send(folder: RunFiles, name: str) -> None:
    """Give a tracker a run as it was kept, with its report on test if there is one."""
    (tracker,) = make_trackers([name], folder.path).values()
    config, records, report = folder.config(), folder.records(), folder.report()
    if not records:
        raise RunError(f"{folder.path}: no epochs yet; 'modulekge resume {folder.path}' trains them")
    try:
        tracker.start(config, folder.path.resolve().name)
        for record in records:
            tracker.record(record)
        tracker.finish(report)
    except Exception as error:  # of any kind that a server, a network or a disk has
        raise RunError(f"{name}: {_one_line(error)}; mend that and send the run again") from None


def measures(record: EpochRecord) -> dict[str, float]:
    """Return the figures of an epoch by the names that all trackers show: train/loss, valid/mrr, ..."""
    train = {name: value for name, value in vars(record).items() if name not in ("epoch", "valid")}
    return {**_named("train", train), **_named("valid", record.valid or {})}


def report_measures(report: Report | None) -> dict[str, float]:
    """Return the figures of a report in the same way: test/mrr, test/hits_at_10, ..."""
    return _named(report.split, report.both) if report else {}


def _named(part: str, figures: Mapping[str, float]) -> dict[str, float]:
    """Names with their part before them, and without the @ that MLflow refuses."""
    return {f"{part}/{name.replace('@', '_at_')}": value for name, value in figures.items()}


def _module(name: str, package: str, install: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ModulekgeError(f"{package} is not installed: {install}") from None


def _plain(value: Any) -> str | bool | int | float:
    return value if isinstance(value, str | bool | int | float) else str(value)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
