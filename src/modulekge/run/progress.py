"""A bar for those who train from Python: on a terminal or in a notebook, if they ask for one."""

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TimeRemainingColumn

from modulekge.run.folder import RunFolder
from modulekge.training.records import EpochProgress, EpochRecord
from modulekge.workers import workers

Event = EpochProgress | EpochRecord
_COLUMNS = "epoch {task.completed:.0f}/{task.total}", "valid MRR {task.fields[mrr]}", "left"


def shown(folder: RunFolder, events: Iterable[Event]) -> Iterator[Event]:
    """Yield what happens in a training, and show how far it has come; of several processes one does."""
    columns = "{task.description}", BarColumn(bar_width=24), *_COLUMNS, TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), disable=not workers().is_main) as bar:
        task = bar.add_task(folder.path.name, total=None, mrr="-")
        for event in events:
            if not bar.tasks[task].total:  # settings that training begins with may have changed it
                bar.update(task, total=folder.config().train.epochs)
            share = 1.0 if isinstance(event, EpochRecord) else event.done / event.questions
            bar.update(task, completed=event.epoch - 1 + share)
            if isinstance(event, EpochRecord) and event.mrr is not None:
                bar.update(task, mrr=f"{event.mrr:.4f}")
            yield event


def unseen(folder: RunFolder, events: Iterable[Event]) -> Iterable[Event]:
    """Return what happens in a training, and show nothing."""
    return events
