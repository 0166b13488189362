"""Wide tables: a row for each thing, a column for each of its properties, a fact for each filled cell."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from modulekge.data.readers.columns import BETWEEN, EVERY, head_of, place_of, relations_of, undecided
from modulekge.data.readers.delimited import titled_text
from modulekge.data.readers.tables import Graph, gathered
from modulekge.errors import DataError

_ENOUGH = 20  # cells of a column from which its names may be of no use
_ALONE = 0.95  # share of them that stand nowhere else
_SEVERAL, _AGAIN = 1.5, 1.5  # values in a cell, and times that each stands there, on average
_CALLED = ("name", "label")  # titles of a column that says what things are called, where it says nothing else


def read_wide(path: Path, kind: str, columns: Sequence[str]) -> Graph:
    """Read a file of text or Parquet: each cell is a fact of what the column of heads names in its row."""
    if kind == "text":
        return melted(str(path), titled_text(path), columns)
    try:
        return melted(str(path), parquet.read_table(path), columns)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise DataError(f"{path}: {' '.join(str(error).split())}; is it a Parquet file, and whole?") from None


def melted(where: str, table: pa.Table, columns: Sequence[str]) -> Graph:
    """Return the facts of a table: (the row's head, the column's title, the cell), where a cell is filled."""
    titles, head = list(table.column_names), head_of(columns)
    named = [i for i, title in enumerate(titles) if title.strip()]  # pandas writes numbers of rows without
    if not named:
        raise undecided(where, titles)
    chosen = relations_of(columns, titles)
    for title in chosen:
        place_of(where, titles, title, numbered=False)
    at = place_of(where, titles, head, head.isdecimal() and head not in titles) if head else named[0]
    kept = [i for i in named if i != at]
    cells = [_values(where, titles[i], table.column(i)) for i in (at, *kept)]
    heads, head = cells.pop(0), titles[at]
    rows = zip(heads, zip(*cells, strict=True), strict=True) if cells else ()
    facts = ((name, zip([titles[i] for i in kept], parts, strict=True)) for name, parts in rows)
    found = _graph(where, head, facts, chosen, EVERY in columns)
    nameless = set(range(len(titles))) - {at, *kept}
    notes = [f"{where}: column {i + 1} is left out: it has no name" for i in sorted(nameless)]
    return replace(found, notes=(*notes, *found.notes))


def melted_records(where: str, records: Iterable[tuple[str, Any]], columns: Sequence[str]) -> Graph:
    """Return the facts of objects by key; each member of a list is a fact."""
    head = head_of(columns)
    about = head or "the first key"

    def rows() -> Iterator[tuple[Any, Iterable[tuple[str, Any]]]]:
        for place, record in records:
            if isinstance(record, DataError):
                raise record
            if not isinstance(record, Mapping):
                raise DataError(f"{place}: its columns have no names; write an object: {{{about!r}: ...}}")
            if not record:
                raise undecided(place, ())
            at = head or next(iter(record))
            place_of(place, list(record), at, numbered=False)
            yield record[at], [(key, record[key]) for key in record if key != at]

    return _graph(where, about, rows(), relations_of(columns), EVERY in columns)


def _values(where: str, title: str, column: pa.ChunkedArray) -> list[Any]:
    """Return the cells of a column as text, or lists of what they hold."""
    nested = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    try:
        cells: list[Any] = (column if nested else pc.cast(column, pa.string())).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataError(f"{where}: column {title!r} holds {column.type}, not names; leave it out") from None
    return cells


def _graph(
    where: str,
    head: str,
    rows: Iterable[tuple[Any, Iterable[tuple[str, Any]]]],
    chosen: Mapping[str, str],
    every: bool,
) -> Graph:
    """Make facts of the columns that were ``chosen``, with what separates values, or of ``every`` one."""
    triples = [
        (name, title, text)
        for number, (given, cells) in enumerate(rows, start=1)
        for name in [_head(f"{where}: row {number}", head, given)]
        for title, cell in cells
        if every or title in chosen
        for text in _texts(f"{where}: row {number}", _parts(cell, chosen.get(title)))
    ]
    useless = {title: share for title, share in _useless(triples).items() if title not in chosen}
    called = [title for title in useless if title.casefold() in _CALLED][:1]
    notes = [
        f"{where}: column {title!r} {'gives the labels' if title in called else 'is left out'}: "
        f"{share:.0%} of its cells stand nowhere else{_to_cut(title, triples)}"
        for title, share in useless.items()
    ]
    labels = {name: text for name, title, text in reversed(triples) if title in called}
    facts = gathered(triple for triple in triples if triple[1] not in useless)
    return Graph((facts,), labels=labels, notes=tuple(notes))


def _to_cut(title: str, triples: Sequence[tuple[str, str, str]]) -> str:
    """Say how to cut the cells of a column, where what stands between some mark is met again."""
    cells = [tail for _, relation, tail in triples if relation == title]
    for mark in BETWEEN:
        parts = [part.strip() for cell in cells for part in cell.split(mark)]
        if len(parts) >= _SEVERAL * len(cells) and len(parts) >= _AGAIN * len(set(parts)):
            return f", but what is between {mark!r} does: *{title}[{mark}] among the columns takes it"
    return ""


def _head(place: str, head: str, given: Any) -> str:
    found = list(_texts(place, given))
    if len(found) != 1:
        raise DataError(f"{place}: {head} holds {len(found)} names; one says what the row is about")
    return found[0]


def _parts(cell: Any, separator: str | None) -> Any:
    """Return the values of a cell, where something separates them."""
    return cell.split(separator) if separator and isinstance(cell, str) else cell


def _texts(place: str, cell: Any) -> Iterator[str]:
    """Yield what a cell says: nothing, a name, or one for each member of a list."""
    if isinstance(cell, list | tuple):
        for member in cell:
            yield from _texts(place, member)
    elif isinstance(cell, Mapping):
        raise DataError(f"{place}: holds an object in an object; give its parts columns of their own")
    elif cell is not None and cell == cell and (text := str(cell).strip()):
        if "\0" in text:
            raise DataError(f"{place}: holds a NUL character; remove it")
        yield text


def _useless(triples: Sequence[tuple[str, str, str]]) -> dict[str, float]:
    """Return the columns whose cells join nothing to anything: nearly each name stands in one place only."""
    names = Counter(tail for _, _, tail in triples)
    names.update({name for name, _, _ in triples})
    filled = Counter(title for _, title, _ in triples)
    alone = Counter(title for _, title, tail in triples if names[tail] == 1)
    shares = {
        title: alone[title] / count
        for title, count in filled.items()
        if count >= _ENOUGH or title.casefold() in _CALLED
    }
    return {title: share for title, share in shares.items() if share >= _ALONE}
