"""The options that name a graph, as one value."""

from pathlib import Path
from typing import NamedTuple


class GraphOptions(NamedTuple):
    """A graph as the command line names it: DATA, and how to read it."""

    data: str
    columns: str | None
    labels: Path | None
    descriptions: Path | None
    data_dir: Path | None

    def words(self) -> list[str]:
        """Return the options as they are written on a command line, without DATA."""
        given = self._asdict()
        return [
            word
            for name, value in given.items()
            if name != "data" and value
            for word in (f"--{name.replace('_', '-')}", str(value))
        ]


def split_columns(columns: str | None) -> list[str] | None:
    """Return the columns that were chosen, if any were."""
    return columns.split(",") if columns else None
