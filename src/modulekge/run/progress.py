"""A bar for those who train from Python: on a terminal or in a notebook, if they ask for one."""

import importlib
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import StringIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TimeRemainingColumn

from modulekge.run.folder import RunFolder
from modulekge.training.records import EpochProgress, EpochRecord
from modulekge.workers import workers

Event = EpochProgress | EpochRecord
_COLUMNS = "epoch {task.completed:.0f}/{task.total}", "valid MRR {task.fields[mrr]}", "left"
_WIDTH, _SECONDS = 100, 0.25  # of what a notebook shows; between two times that it is drawn


def shown(folder: RunFolder, events: Iterable[Event]) -> Iterator[Event]:
    """Yield what happens in a training, and show how far it has come; of several processes one does."""
    columns = "{task.description}", BarColumn(bar_width=24), *_COLUMNS, TimeRemainingColumn()
    bar = Progress(*columns, console=Console(stderr=True), disable=not workers().is_main)
    with _drawn(bar) as draw:
        task = bar.add_task(folder.path.name, total=None, mrr="-")
        for event in events:
            if not bar.tasks[task].total:  # settings that training begins with may have changed it
                bar.update(task, total=folder.config().train.epochs)
            share = 1.0 if isinstance(event, EpochRecord) else event.done / event.questions
            bar.update(task, completed=event.epoch - 1 + share)
            if isinstance(event, EpochRecord) and event.mrr is not None:
                bar.update(task, mrr=f"{event.mrr:.4f}")
            draw()
            yield event


@contextmanager
def _drawn(bar: Progress) -> Iterator[Callable[[], None]]:
    """Show a bar: on a terminal it draws itself, in a notebook it is one output that is drawn anew."""
    if bar.disable or not bar.console.is_jupyter:
        with bar:
            yield lambda: None
        return
    # Not by rich, which needs ipywidgets for it and else prints a warning for each part
    display = importlib.import_module("IPython.display").display
    output, drawn_at = display({"text/plain": ""}, raw=True, display_id=True), 0.0
    plain = Console(file=StringIO(), width=_WIDTH, force_jupyter=False)

    def draw() -> None:
        with plain.capture() as text:
            plain.print(bar.get_renderable())
        output.update({"text/plain": text.get().rstrip()}, raw=True)

    def now_and_then() -> None:
        nonlocal drawn_at
        if time.monotonic() - drawn_at > _SECONDS:
            drawn_at = time.monotonic()
            draw()

    try:
        yield now_and_then
    finally:
        draw()


def unseen(folder: RunFolder, events: Iterable[Event]) -> Iterable[Event]:
    """Return what happens in a training, and show nothing."""
    return events
