"""Flat rows as files for other programs: CSV, JSON lines, Parquet."""

import csv
import io
import json
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from modulekge.data.dataset import Dataset
from modulekge.errors import RunError
from modulekge.run.files import write_file

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Rows:
    """Rows with the same columns, each of text, whole numbers, numbers or truth values; a cell may be None.

    >>> Rows({"name": str, "rank": int}, [{"name": "Spain", "rank": 1}]).json_lines()
    '{"name": "Spain", "rank": 1}\\n'
    """

    columns: Mapping[str, type]
    rows: Sequence[Mapping[str, Cell]]

    @classmethod
    def of(cls, kind: type[Any], records: Iterable[Any]) -> "Rows":
        """Return dataclass values of one kind as rows; its fields are the columns, also of no rows."""
        columns = {name: _plain(hint) for name, hint in get_type_hints(kind).items()}
        return cls(columns, [asdict(record) for record in records])

    def json_lines(self) -> str:
        """Return an object per line; what is no number is null."""
        return "".join(
            json.dumps({name: _finite(row[name]) for name in self.columns}, ensure_ascii=False) + "\n"
            for row in self.rows
        )

    def write(self, path: Path) -> None:
        """Write a new file, whole or not at all, in the format that its ending names."""
        check_target(path, WRITERS)
        write_file(path, WRITERS[path.suffix](self))

    def csv(self) -> str:
        """Return comma-separated values with a header; None is empty."""
        rows = ([row[name] for name in self.columns] for row in self.rows)
        return comma_separated([self.columns, *rows])

    def parquet(self) -> bytes:
        """Return a Parquet file, with the same types whatever the rows hold."""
        import pyarrow as pa  # which takes a tenth of a second, and few rows are written so
        from pyarrow import parquet

        arrow = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
        schema = pa.schema([(name, arrow[kind]) for name, kind in self.columns.items()])
        out = io.BytesIO()
        parquet.write_table(pa.Table.from_pylist([dict(row) for row in self.rows], schema), out)
        return out.getvalue()


WRITERS: dict[str, Callable[[Rows], str | bytes]] = {
    ".csv": Rows.csv,
    ".jsonl": Rows.json_lines,
    ".parquet": Rows.parquet,
}


def with_labels(rows: Rows, dataset: Dataset) -> Rows:
    """Return rows that name head, relation and tail with their labels behind, where the graph has any."""
    kinds = {"head": dataset.entities, "relation": dataset.relations, "tail": dataset.entities}
    if not any(names.labels for names in kinds.values()):
        return rows
    labels = [
        {f"{role}_label": names.labels.get(str(row[role]), row[role]) for role, names in kinds.items()}
        for row in rows.rows
    ]
    columns = {**rows.columns, **{f"{role}_label": str for role in kinds}}
    return Rows(columns, [{**row, **more} for row, more in zip(rows.rows, labels, strict=True)])


def check_target(path: Path, endings: Iterable[str], folder: str = "") -> None:
    """Refuse a file that exists, or whose ending is none of these, before any work is done for it.

    Where ``folder`` says what for, a name without an ending is one, too.
    """
    known = list(endings)
    if path.suffix not in known and not (folder and not path.suffix):
        more = f"; or a folder, {folder}" if folder else ""
        raise RunError(f"{path}: expected a file that ends in {', '.join(known[:-1])} or {known[-1]}{more}")
    if path.exists():
        raise RunError(f"{path}: exists already; choose another name or remove it")
    if not path.parent.is_dir():
        raise RunError(f"{path}: there is no folder {path.parent}; make it first")


def comma_separated(rows: Iterable[Iterable[object]]) -> str:
    """Return rows for a program or a spreadsheet; cells with CR or LF are quoted."""
    lines = []
    for row in rows:
        out = io.StringIO()
        csv.writer(out, lineterminator="\r\n").writerow(row)  # it quotes what it ends lines with
        lines.append(out.getvalue().removesuffix("\r\n") + "\n")
    return "".join(lines)


def _plain(hint: Any) -> type:
    """The type of a column's cells, apart from None."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (part for part in get_args(hint) if part is not type(None))
    return str if get_origin(hint) is Literal else hint


def _finite(value: Cell) -> Cell:
    return None if isinstance(value, float) and value - value != 0 else value
