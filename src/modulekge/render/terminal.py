"""The console, and what views are made of."""

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from modulekge.wording import counted

_WIDE = 100_000  # columns: a table keeps its width, and a terminal wraps what it has no room for
FEW = 15  # relations shown unless all are asked for
# Characters that a terminal would obey, as the pictures that Unicode has of them or of what is unknown
_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"}
_PICTURES |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


class _Console(Console):
    """A console on which names cannot move the cursor or change colours."""

    def render(self, *given: Any) -> Iterable[Segment]:
        """Return what is written, and the console's own codes as they are."""
        for part in super().render(*given):
            yield part if part.control else Segment(part.text.translate(_PICTURES), part.style)


class _Table(Table):
    """A table as wide as what is shown of its names."""

    def add_row(self, *cells: Any, **how: Any) -> None:
        """Add a row of text."""
        texts = (cell if isinstance(cell, Text) else Text(cell) for cell in cells)
        super().add_row(*(_pictured(text) for text in texts), **how)


def _pictured(text: Text) -> Text:
    text.plain = text.plain.translate(_PICTURES)
    return text


def console(stderr: bool = False, width: int | None = _WIDE) -> Console:
    """Return a console that shows names as they are and, as wide as it is, cuts nothing off."""
    return _Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def live_console() -> Console:
    """Return one on stderr for progress, which a terminal draws in its own width."""
    return console(stderr=True, width=None if sys.stderr.isatty() else _WIDE)


def new_table(*columns: str, title: str = "") -> Table:
    """Text columns on the left; those whose heading starts with a space hold figures, on the right."""
    table = _Table(box=None, pad_edge=False, header_style="bold", title=title or None, title_justify="left")
    for column in columns:
        table.add_column(column.strip(), justify="right" if column.startswith(" ") else "left", no_wrap=True)
    return table


def format_number(value: float | None) -> str:
    """A figure to four digits; a dash where nothing was measured, nothing where there is none."""
    return "" if value is None else "-" if value != value else f"{value:.4f}"


def more(hidden: int) -> list[Text]:
    """Say how many relations are not shown."""
    shown = f"... and {counted(hidden, 'relation')} more; --all shows every one"
    return [Text(shown, "dim")] if hidden > 0 else []
