"""Progress of training and ranking, on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from modulekge.render.terminal import live_console
from modulekge.training.records import EpochProgress, EpochRecord

Shown = TypeVar("Shown", bound="Live")
_EPOCH, _MRR = "epoch {task.fields[epoch]}/{task.total:.0f}", "valid MRR {task.fields[mrr]}"


class Live:
    """What is shown while it is entered."""

    progress: Progress

    def __enter__(self: Shown) -> Shown:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()


class TrainingsDisplay(Live):
    """A live line on a terminal for each training under way: name, epoch, valid MRR, time left."""

    def __init__(self, *columns: ProgressColumn | str) -> None:
        self.progress = Progress(
            *(columns or ("{task.description}", _EPOCH, _MRR)),
            TimeElapsedColumn(),
            "left",
            TimeRemainingColumn(elapsed_when_finished=True),
            console=live_console(),
            disable=not sys.stderr.isatty(),
            speed_estimate_period=600,
        )
        self.tasks: dict[str, TaskID] = {}

    def begin(self, name: str, epochs: int, first_epoch: int = 1) -> None:
        """Add a line for the training of this name."""
        start = {"epoch": first_epoch, "loss": "-", "speed": "-", "mrr": "-", "phase": "starting"}
        self.tasks[name] = self.progress.add_task(name, total=epochs, completed=first_epoch - 1, **start)  # type: ignore[arg-type]

    def end(self, name: str) -> None:
        """Take the line of a training away."""
        self.progress.remove_task(self.tasks.pop(name))

    def show(self, event: EpochProgress | EpochRecord, name: str = "") -> None:
        """Bring a line up to date."""
        task = self.tasks[name]
        if isinstance(event, EpochProgress):
            share = event.done / event.questions
            completed = event.epoch - (1 - share if event.phase == "training" else 0)
            phase = event.phase if event.phase == "training" else f"{event.phase} {share:.0%}"
            self.progress.update(task, completed=completed, epoch=event.epoch, phase=phase)
            return
        fields = {"loss": f"{event.loss:.4f}", "speed": f"{event.triples_per_second:,.0f}"}
        if event.mrr is not None:
            fields["mrr"] = f"{event.mrr:.4f}"
        self.progress.update(task, completed=event.epoch, epoch=event.epoch, **fields)  # type: ignore[arg-type]


class TrainingDisplay(TrainingsDisplay):
    """A live line on a terminal: epoch, loss, speed, valid MRR, time left. Nothing elsewhere."""

    def __init__(self, epochs: int, first_epoch: int) -> None:
        speed = "{task.fields[speed]} triples/s"
        super().__init__(
            "{task.fields[phase]}", _EPOCH, BarColumn(bar_width=24), "loss {task.fields[loss]}", speed, _MRR
        )
        self.begin("", epochs, first_epoch)


@contextmanager
def stages_display(stages: int) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal that names the stage under way; the next one is told to what is yielded."""
    with Progress(console=live_console(), disable=not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task("", total=stages, completed=-1)

        def begin(stage: str) -> None:
            progress.update(task, description=stage, advance=1)

        yield begin


@contextmanager
def progress_display(
    what: str, total: int, size: Callable[[Any], int]
) -> Iterator[Callable[[Iterator[Any]], Iterator[Any]]]:
    """A bar on a terminal while parts pass by, each so large. Nothing elsewhere."""
    with Progress(console=live_console(), disable=not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task(what, total=total)

        def watch(parts: Iterator[Any]) -> Iterator[Any]:
            for part in parts:
                progress.update(task, advance=size(part))
                yield part

        yield watch


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on a terminal what is being done, and for how long, where no part of it can be counted."""
    columns = (SpinnerColumn(), "{task.description}", TimeElapsedColumn())
    with Progress(*columns, console=live_console(), disable=not sys.stderr.isatty(), transient=True) as bar:
        bar.add_task(what, total=None)
        yield
