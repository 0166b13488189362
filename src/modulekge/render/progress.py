"""Progress of training and ranking, on a terminal only."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from rich.console import Console
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
_LOG_SECONDS = 60  # between two lines, where there is no terminal
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

    def __init__(self, *columns: ProgressColumn | str, console: Console | None = None) -> None:
        self.progress = Progress(
            *(columns or ("{task.description}", _EPOCH, _MRR)),
            TimeElapsedColumn(),
            "left",
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console or live_console(),
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
    """A live line on a terminal: epoch, loss, speed, valid MRR, time left; elsewhere a line now and then."""

    def __init__(self, epochs: int, first_epoch: int, console: Console | None = None) -> None:
        phase, loss, speed = (f"{{task.fields[{field}]}}" for field in ("phase", "loss", "speed"))
        columns = (phase, _EPOCH, BarColumn(bar_width=24), f"loss {loss}", f"{speed} triples/s", _MRR)
        super().__init__(*columns, console=console)
        self.begin("", epochs, first_epoch)
        self._told = time.monotonic()

    def show(self, event: EpochProgress | EpochRecord, name: str = "") -> None:
        """Bring the line up to date; in a file, which has none, write one where the last is a minute old."""
        super().show(event, name)
        now, task = time.monotonic(), self.progress.tasks[0]
        if self.progress.disable and isinstance(event, EpochRecord) and now > self._told + _LOG_SECONDS:
            self._told = now
            mrr = f", valid MRR {task.fields['mrr']}" if task.fields["mrr"] != "-" else ""
            line = f"epoch {event.epoch}/{task.total:.0f}: loss {event.loss:.4f}{mrr}"
            print(f"{line}, {event.seconds:.1f} s", file=sys.stderr, flush=True)


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
