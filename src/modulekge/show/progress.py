"""Progress of training and ranking, on a terminal only."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from modulekge.evaluation.ranks import Ranks
from modulekge.show.console import console
from modulekge.training.fit import EpochRecord, Glance


class TrainingDisplay:
    """A live line on a terminal: epoch, loss, speed, valid MRR, time left. Nothing elsewhere."""

    def __init__(self, epochs: int, first_epoch: int) -> None:
        self.progress = Progress(
            TextColumn("epoch {task.fields[epoch]}/{task.total:.0f}"),
            BarColumn(bar_width=24),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("{task.fields[speed]} triples/s"),
            TextColumn("valid MRR {task.fields[mrr]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console(stderr=True),
            disable=not sys.stderr.isatty(),
            speed_estimate_period=600,
        )
        self.task: TaskID = self.progress.add_task(
            "", total=epochs, completed=first_epoch - 1, epoch=first_epoch, loss="-", speed="-", mrr="-"
        )

    def __enter__(self) -> "TrainingDisplay":
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def show(self, event: Glance | EpochRecord) -> None:
        """Bring the line up to date."""
        if isinstance(event, Glance):
            done = event.epoch - 1 + event.done / event.questions
            self.progress.update(self.task, completed=done, epoch=event.epoch)
            return
        fields = {"loss": f"{event.loss:.4f}", "speed": f"{event.triples_per_second:,.0f}"}
        if event.valid:
            fields["mrr"] = f"{event.valid['mrr']:.4f}"
        self.progress.update(self.task, completed=event.epoch, epoch=event.epoch, **fields)  # type: ignore[arg-type]


@contextmanager
def ranking_display(questions: int) -> Iterator["RankingDisplay"]:
    """A bar on a terminal while questions are ranked. Nothing elsewhere."""
    with Progress(console=console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as progress:
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
