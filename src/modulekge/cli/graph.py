"""The options that name a graph, as one value."""

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class HeaderRow(StrEnum):
    """Whether the first row of a table as text is a header."""

    auto = "auto"
    yes = "yes"
    no = "no"

    @property
    def chosen(self) -> bool | None:
        """Whether it is; None where that is to be found out."""
        return None if self is HeaderRow.auto else self is HeaderRow.yes


class GraphOptions(NamedTuple):
    """A graph as the command line names it: DATA, and how to read it."""

    data: str
    columns: str | None
    header: HeaderRow
    labels: Path | None
    descriptions: Path | None
    data_dir: Path | None

    def words(self) -> list[str]:
        """Return the options as they are written on a command line, without DATA."""
        given = self._asdict()
        return [
            word
            for name, value in given.items()
            if name != "data" and value and value != HeaderRow.auto
            for word in (f"--{name.replace('_', '-')}", str(value))
        ]
