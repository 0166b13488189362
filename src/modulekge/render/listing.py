"""The table of runs."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from modulekge.render.terminal import format_number, new_table
from modulekge.run.listing import RunLine

_STYLES = {"finished": "green", "training": "cyan", "damaged": "red"}


def runs_table(lines: Iterable[RunLine]) -> Table:
    """A line for each run."""
    table = new_table(
        "run", "data", "model", " k", " epochs", " valid MRR", " test MRR", " seconds", "state"
    )  # fmt: skip
    for line in lines:
        done = "" if line.epochs is None else f"{line.epochs} of {line.asked}"
        seconds = "" if line.seconds is None else f"{line.seconds:,.1f}"
        state = f"{line.state}: {line.reason}" if line.reason else line.state
        table.add_row(
            line.name, line.data or "", line.model or "", str(line.k or ""), done,
            _figure(line.valid_mrr), _figure(line.test_mrr), seconds,
            Text(state, _STYLES.get(line.state, "")),
        )  # fmt: skip
    return table


def _figure(value: float | None) -> str:
    return "" if value is None else format_number(value)
