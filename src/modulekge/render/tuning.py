"""What rules chose, and how a search for settings goes."""

import sys
from collections.abc import Iterable

from rich.console import RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from modulekge.render.progress import Live
from modulekge.render.terminal import format_number, live_console, new_table
from modulekge.run.load import Choice, Times
from modulekge.studies.tuning import Trial
from modulekge.wording import duration

_FEW_TRIALS = 5


def choices_view(choices: Iterable[Choice]) -> RenderableType:
    """What rules chose and why."""
    table = new_table("chosen by rule; --set changes it", " ", "because")
    for choice in choices:
        table.add_row(choice.key, str(choice.value), choice.reason)
    return table


def time_view(seconds: float, times: Times) -> str:
    """How long training takes at most, where nothing else keeps the machine busy."""
    how = "measured on this machine" if times.measured else "estimated for an idle machine"
    return f"training takes at most {duration(seconds)}, {how}; a validation {duration(times.validation)}"


def trials_table(trials: list[Trial]) -> Table:
    """The best trials of a search, with what was searched."""
    keys = list(trials[0].settings) if trials else []
    table = new_table(" trial", " valid MRR", " epochs", *keys)
    for trial in trials[:_FEW_TRIALS]:
        values = (_searched(trial.settings[key]) for key in keys)
        table.add_row(str(trial.number), format_number(trial.mrr or 0.0), str(trial.epoch), *values)
    return table


def _searched(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


class TuningDisplay(Live):
    """A line for each trial at its end; on a terminal also a live one of the trial under way."""

    def __init__(self, trials: int) -> None:
        self.progress = Progress(
            TextColumn("{task.completed:.0f} of {task.total:.0f} trials"),
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=live_console(),
            disable=not sys.stderr.isatty(),
        )
        self.task = self.progress.add_task("", total=trials)

    def show(self, event: Trial, finished: int, ranking: list[Trial]) -> None:
        """Bring the line up to date, and say how a trial ended."""
        best = (
            f"best {format_number(ranking[0].mrr or 0.0)} (trial {ranking[0].number})"
            if ranking
            else "no best yet"
        )
        mrr = "-" if event.mrr is None else format_number(event.mrr)
        now = f"trial {event.number}: epoch {event.epoch}, valid MRR {mrr}"
        self.progress.update(self.task, completed=finished, description=f"{now}; {best}")
        if event.state != "running":
            words = ", ".join(f"{key} = {_searched(value)}" for key, value in event.settings.items())
            end = f" ({event.error})" if event.error else ""
            self.progress.console.print(f"{now}, {event.state}{end}; {best}; {words}")
