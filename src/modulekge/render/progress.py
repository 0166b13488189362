"""Progress of training and ranking, on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from modulekge.evaluation.ranks import Ranks
from modulekge.render.terminal import live_console
from modulekge.training.records import EpochProgress, EpochRecord

_EPOCH, _MRR = "epoch {task.fields[epoch]}/{task.total:.0f}", "valid MRR {task.fields[mrr]}"


class TrainingsDisplay:
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

    def __enter__(self) -> "TrainingsDisplay":
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def begin(self, name: str, epochs: int, first_epoch: int = 1) -> None:
        """Add a line for the training of this name."""
        start = {"epoch": first_epoch, "loss": "-", "speed": "-", "mrr": "-"}
        self.tasks[name] = self.progress.add_task(name, total=epochs, completed=first_epoch - 1, **start)  # type: ignore[arg-type]

    def end(self, name: str) -> None:
        """Take the line of a training away."""
        self.progress.remove_task(self.tasks.pop(name))

    def show(self, event: EpochProgress | EpochRecord, name: str = "") -> None:
        """Bring a line up to date."""
        task = self.tasks[name]
        if isinstance(event, EpochProgress):
            done = event.epoch - 1 + event.done / event.questions
            self.progress.update(task, completed=done, epoch=event.epoch)
            return
        fields = {"loss": f"{event.loss:.4f}", "speed": f"{event.triples_per_second:,.0f}"}
        if event.valid:
            fields["mrr"] = f"{event.valid['mrr']:.4f}"
        self.progress.update(task, completed=event.epoch, epoch=event.epoch, **fields)  # type: ignore[arg-type]


class TrainingDisplay(TrainingsDisplay):
    """A live line on a terminal: epoch, loss, speed, valid MRR, time left. Nothing elsewhere."""

    def __init__(self, epochs: int, first_epoch: int) -> None:
        speed = "{task.fields[speed]} triples/s"
        super().__init__(_EPOCH, BarColumn(bar_width=24), "loss {task.fields[loss]}", speed, _MRR)
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
def ranking_display(questions: int) -> Iterator["RankingDisplay"]:
    """A bar on a terminal while questions are ranked. Nothing elsewhere."""
    with Progress(console=live_console(), disable=not sys.stderr.isatty(), transient=True) as progress:
        yield RankingDisplay(progress, progress.add_task("ranking", total=questions))


class RankingDisplay:
    """Passes batches of ranks through and counts them."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self.progress, self.task = progress, task

    def __call__(self, batches: Iterator[Ranks]) -> Iterator[Ranks]:
        """Yield the batches as they come."""
        for ranks in batches:
            self.progress.update(self.task, advance=len(ranks.above))
            yield ranks
