"""Records with named fields: JSON lines and Parquet."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from modulekge.data.readers.columns import (
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


def read_json(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a file with a JSON object, or an array of three, in each line."""
    return gathered(_sound(json_rows(path, columns)))


def _sound(rows: Iterator[Row | DataError]) -> Iterator[Row]:
    for row in rows:
        if isinstance(row, DataError):
            raise row
        yield row


def json_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[Row | DataError]:
    """Yield each triple, or what is wrong with its line; the first record says where the columns stand."""
    keys: list[Any] = []
    width = 0
    for number, text in numbered_lines(path):
        if isinstance(text, DataError):
            yield text
        elif text.strip():
            place = f"{path}:{number}"
            try:
                record = _record(text)
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
                yield DataError(f"{place}: nested too deeply; write three names in one object or array")


def _record(text: str) -> dict[str, Any] | list[Any]:
    try:
        record = json.loads(text)
    except ValueError as error:
        message = getattr(error, "msg", str(error))
        raise ValueError(f"not JSON by itself ({message}); write one object or array in each line") from None
    if not isinstance(record, dict | list):
        raise ValueError(f"expected an object or an array of three, found {text[:40]}")
    return record


def _keys(place: str, record: dict[str, Any] | list[Any], columns: Sequence[str] | None) -> list[Any]:
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
    if len(record) != 3:
        raise undecided(place, titles)
    known = known_places(titles)
    return list(known.values()) if known else [0, 1, 2]


def _is_header(first: list[Any], keys: list[int], columns: Sequence[str] | None) -> bool:
    """Say whether the first array holds titles: those that columns are chosen by, or known ones."""
    by_name = columns is not None and not by_number(columns)
    return by_name or known_places([str(first[key]) for key in keys]) is not None


def _row(record: dict[str, Any] | list[Any], keys: list[Any], width: int) -> Row:
    """Return the three names; where ``width`` is given there may be no other fields."""
    if isinstance(record, dict) != isinstance(keys[0], str):
        raise ValueError("objects and arrays are mixed; write all lines alike")
    if isinstance(record, dict) and (missing := [key for key in keys if key not in record]):
        raise ValueError(f"no {missing[0]!r} among the fields {listed(list(record))}")
    if isinstance(record, list) and len(record) <= max(keys):
        raise ValueError(f"expected {max(width, max(keys) + 1)} fields, found {len(record)}")
    if width and len(record) != width:
        raise ValueError(f"expected {width} fields, found {len(record)}; choose three with --columns")
    return checked_names([record[key] for key in keys])


def checked_names(values: Sequence[Any]) -> Row:
    """Return the names of head, relation and tail, or say which of them is none."""
    head, relation, tail = (_name(role, value) for role, value in zip(ROLES, values, strict=True))
    return head, relation, tail


def _name(role: str, value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"the {role} is {json.dumps(value)[:40]}, not a name in quotes or a whole number")
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
                _check_type(path, file.schema_arrow.field(title))
            batches, start = [], 0
            for batch in file.iter_batches(BATCH, columns=wanted):
                names = [pc.cast(batch[title], pa.string()) for title in wanted]
                _check_names(path, start, names)
                batches.append(
                    pa.record_batch([column.dictionary_encode() for column in names], schema=SCHEMA)
                )
                start += batch.num_rows
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise DataError(f"{path}: {' '.join(str(error).split())}; is it a Parquet file, and whole?") from None
    return pa.Table.from_batches(batches, SCHEMA)


def _check_type(path: Path, field: pa.Field) -> None:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_integer)
    if not any(test(kind) for test in tests):
        raise DataError(f"{path}: column {field.name!r} holds {kind}; names should be text or whole numbers")


def _check_names(path: Path, start: int, columns: list[pa.Array]) -> None:
    """Refuse what is null or empty, or holds NUL, with the row counted from 1."""
    for role, column in zip(ROLES, columns, strict=True):
        bad = pc.fill_null(pc.or_(pc.equal(column, ""), pc.match_substring(column, "\0")), True)
        if (first := pc.index(bad, True).as_py()) >= 0:
            value = column[first].as_py()
            found = "holds a NUL character; remove it" if value else "is empty; fill it in or remove the row"
            raise DataError(f"{path}: row {start + first + 1}: the {role} {found}")
