"""The console, and what views are made of."""

import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDE = 100_000  # columns: a table keeps its width, and a terminal wraps what it has no room for
FEW = 15  # relations shown unless all are asked for


def console(stderr: bool = False) -> Console:
    """Return a console that shows names as they are and cuts nothing off."""
    live = stderr and sys.stderr.isatty()  # where progress is drawn, in the terminal's own width
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=None if live else _WIDE)


def new_table(*columns: str, title: str = "") -> Table:
    """Text columns on the left; those whose heading starts with a space hold figures, on the right."""
    table = Table(box=None, pad_edge=False, header_style="bold", title=title or None, title_justify="left")
    for column in columns:
        table.add_column(column.strip(), justify="right" if column.startswith(" ") else "left", no_wrap=True)
    return table


def figure(value: float) -> str:
    """A figure to four digits; a dash where nothing was measured."""
    return "-" if value != value else f"{value:.4f}"


def more(hidden: int) -> list[Text]:
    """Say how many relations are not shown."""
    return [Text(f"... and {hidden} relations more; --all shows them", "dim")] if hidden > 0 else []
