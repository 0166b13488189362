"""Records with named fields: JSON lines, Parquet, and rows and columns that are in memory."""

import json
from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from modulekge.data.readers.columns import (
    COLUMNS,
    by_number,
    chosen_places,
    known_places,
    listed,
    titled_places,
    undecided,
)
from modulekge.data.readers.lines import numbered_lines
from modulekge.data.readers.tables import BATCH, ROLES, SCHEMA, gathered
from modulekge.errors import DataError
from modulekge.wording import counted

Row = tuple[str, str, str]
Record = dict[str, Any] | list[Any]


def read_json(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a file with a JSON object, or an array of three, in each line."""
    return gathered(sound(json_rows(path, columns)))


def sound(rows: Iterable[Row | DataError]) -> Iterator[Row]:
    """Yield triples until one of them is none, which is raised."""
    for row in rows:
        if isinstance(row, DataError):
            raise row
        yield row


def json_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[Row | DataError]:
    """Yield each triple of a file of JSON, or what is wrong with its line."""
    return record_rows(json_records(path), columns)


def record_rows(
    records: Iterable[tuple[str, Record | DataError]], columns: Sequence[str] | None
) -> Iterator[Row | DataError]:
    """Yield each triple, or what is wrong at its place; the first record says where the columns stand."""
    keys: list[Any] = []
    width = 0
    for place, record in records:
        if isinstance(record, DataError):
            yield record
            continue
        try:
            if not keys:
                keys, width = _keys(place, record, columns), len(record)
                if isinstance(record, list) and _is_header(record, keys, columns):
                    continue
            yield _row(record, keys, width if columns is None else 0)
        except DataError as error:
            yield error
        except ValueError as error:
            yield DataError(f"{place}: {error}")
        except RecursionError:
            yield _too_deep(place)


def json_records(path: Path) -> Iterator[tuple[str, Record | DataError]]:
    """Yield the object or array of each line with its place, or what is wrong with it."""
    for number, text in numbered_lines(path):
        place = f"{path}:{number}"
        if isinstance(text, DataError):
            yield place, text
        elif text.strip():
            try:
                yield place, _record(text)
            except ValueError as error:
                yield place, DataError(f"{place}: {error}")
            except RecursionError:
                yield place, _too_deep(place)


def _too_deep(place: str) -> DataError:
    return DataError(f"{place}: nested too deeply; write three names in one object or array")


def _record(text: str) -> Record:
    try:
        record = json.loads(text)
    except ValueError as error:
        message = getattr(error, "msg", str(error))
        raise ValueError(f"not JSON by itself ({message}); write one object or array in each line") from None
    if not isinstance(record, dict | list):
        raise ValueError(f"expected an object or an array of three, found {text[:40]}")
    return record


def _keys(place: str, record: Record, columns: Sequence[str] | None) -> list[Any]:
    """Return under which keys (of an object) or places (of an array) head, relation and tail stand."""
    if isinstance(record, dict):
        titles = list(record)
        return [titles[i] for i in titled_places(place, titles, columns).values()]
    if record and all(isinstance(value, dict | list) for value in record):
        records = counted(len(record), "record")
        raise ValueError(f"one array of {records}; write one array or object in each line")
    titles = [str(value) for value in record]
    if columns is not None:
        return list(chosen_places(place, titles, columns).values())
    if len(record) < 3:
        raise ValueError(f"expected 3 fields, found {len(record)}")
    if len(record) > 3:
        raise undecided(place, titles)
    known = known_places(titles)
    return list(known.values()) if known else [0, 1, 2]


def _is_header(first: list[Any], keys: list[int], columns: Sequence[str] | None) -> bool:
    """Say whether the first array holds titles: those that columns are chosen by, or known ones."""
    by_name = columns is not None and not by_number(columns)
    return by_name or known_places([str(first[key]) for key in keys]) is not None


def _row(record: Record, keys: list[Any], width: int) -> Row:
    """Return the three names; where ``width`` is given there may be no other fields."""
    if isinstance(record, dict) != isinstance(keys[0], str):
        raise ValueError("objects and arrays are mixed; write all lines alike")
    if isinstance(record, dict) and (missing := [key for key in keys if key not in record]):
        raise ValueError(f"no {missing[0]!r} among the fields {listed(list(record))}")
    if isinstance(record, list) and len(record) <= max(keys):
        raise ValueError(f"expected {max(width, max(keys) + 1)} fields, found {len(record)}")
    if width and len(record) != width:
        raise ValueError(f"expected {width} fields, found {len(record)}; choose three with {COLUMNS}")
    head, relation, tail = (_name(role, record[key]) for role, key in zip(ROLES, keys, strict=True))
    return head, relation, tail


def _name(role: str, value: Any) -> str:
    if not isinstance(value, str):
        if isinstance(value, Integral) and not isinstance(value, bool):
            return str(value)
        shown = json.dumps(value, default=repr, skipkeys=True)[:40]
        raise ValueError(f"the {role} is {shown}, not a name in quotes or a whole number")
    if not value:
        raise ValueError(f"the {role} is empty; fill it in or remove the line")
    if "\0" in value:
        raise ValueError(f"the {role} holds a NUL character; remove it")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"the {role} holds half of a character (a lone surrogate); mend it") from None
    return value


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read three columns of text or whole numbers, some rows at a time."""
    try:
        with parquet.ParquetFile(path) as file:
            titles = file.schema_arrow.names
            wanted = [titles[i] for i in titled_places(str(path), titles, columns).values()]
            for title in wanted:
                if titles.count(title) > 1:
                    raise DataError(f"{path}: more than one column {title!r}; rename one of them")
            fields = [file.schema_arrow.field(title) for title in wanted]
            batches = file.iter_batches(BATCH, columns=wanted)
            return named_table(str(path), fields, (batch.select(wanted).columns for batch in batches))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise DataError(f"{path}: {' '.join(str(error).split())}; is it a Parquet file, and whole?") from None


def named_table(where: str, fields: Sequence[pa.Field], batches: Iterable[Sequence[pa.Array]]) -> pa.Table:
    """Return columns of heads, relations and tails, some rows at a time, as names that are sound."""
    for field in fields:
        _check_type(where, field)
    made, start = [], 0
    for batch in batches:
        names = [_text(column) for column in batch]
        _check_names(where, start, names)
        made.append(pa.record_batch([column.dictionary_encode() for column in names], schema=SCHEMA))
        start += len(names[0])
    return pa.Table.from_batches(made, SCHEMA)


def _text(column: pa.Array) -> pa.StringArray:
    if isinstance(column, pa.DictionaryArray):  # whose names may be of a type that cannot be cast as a whole
        names = column.dictionary.cast(pa.string())
        return pa.DictionaryArray.from_arrays(column.indices, names).cast(pa.string())
    return column.cast(pa.string())


def _check_type(where: str, field: pa.Field) -> None:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_integer)
    if not any(test(kind) for test in tests):
        raise DataError(f"{where}: column {field.name!r} holds {kind}; names should be text or whole numbers")


def _check_names(where: str, start: int, columns: list[pa.Array]) -> None:
    """Refuse what is null or empty, or holds NUL, with the row counted from 1."""
    for role, column in zip(ROLES, columns, strict=True):
        bad = pc.fill_null(pc.or_(pc.equal(column, ""), pc.match_substring(column, "\0")), True)
        if (first := pc.index(bad, True).as_py()) >= 0:
            value = column[first].as_py()
            found = "holds a NUL character; remove it" if value else "is empty; fill it in or remove the row"
            raise DataError(f"{where}: row {start + first + 1}: the {role} {found}")
