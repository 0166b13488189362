"""Files that number names (``id name``), and columns that are read through them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from modulekge.data.readers.delimited import Form
from modulekge.data.readers.lines import numbered_lines, numbered_rows
from modulekge.data.readers.tables import NAMES
from modulekge.errors import DataError

Top = Literal["", "count", "header"]  # what the first line of a file is
_DIGITS = 18  # of a count or an id at most; no file has more lines


@dataclass(frozen=True, eq=False)
class IdMap:
    """The names of a file, each at the place of its id."""

    path: Path
    names: pa.Array

    @cached_property
    def ids(self) -> pa.Array:
        """The ids 0, 1, ... as text."""
        return pa.array(map(str, range(len(self.names))), pa.string())

    def strangers(self, table: pa.Table, *roles: str) -> tuple[int, int]:
        """Count what in some columns is none of the names of this file, and what is none of its ids."""
        chunks = [chunk for role in roles for chunk in table[role].chunks]
        by_name, by_id = (sum(_index(c, keys).null_count for c in chunks) for keys in (self.names, self.ids))
        return by_name, by_id

    def named(self, column: pa.ChunkedArray, keys: pa.Array) -> pa.ChunkedArray:
        """Return a column of names or ids as names of this file, null where they are not among ``keys``."""
        chunks = [
            pa.DictionaryArray.from_arrays(_index(chunk, keys).take(chunk.indices), self.names)
            for chunk in column.chunks
        ]
        return pa.chunked_array(chunks, NAMES)

    def absent(self, path: Path, form: Form, role: str, keys: pa.Array) -> DataError:
        """Say which line of a file of triples holds what is not among ``keys``."""
        known = set(keys.to_pylist())
        for number, fields in numbered_rows(path, form.separator, form.quoted):
            if number > form.skip and not isinstance(fields, DataError):
                found = fields[form.places[role]]
                if found not in known:
                    what = f"{role} {found[:40]!r} is not in {self.path.name}"
                    have = f"which has the ids 0..{len(known) - 1}" if keys is self.ids else "add it there"
                    return DataError(f"{path}:{number}: {what}, {have}; or mend the line")
        return DataError(f"{path}: a {role} is not in {self.path.name}")


def _index(chunk: pa.DictionaryArray, keys: pa.Array) -> pa.Array:
    return pc.index_in(chunk.dictionary, value_set=keys)


def read_numbering(path: Path, name_first: bool, top: Top) -> IdMap:
    """Read a file of ``id name`` or ``name id`` whose ids are 0 .. n - 1, each once."""
    if not path.is_file():
        raise DataError(f"{path}: no such file; it should say what the ids stand for")
    names: dict[int, str] = {}
    taken: set[str] = set()
    for number, fields in _pairs(path, name_first, top):
        place = f"{path}:{number}"
        if isinstance(fields, DataError):
            raise fields
        if len(fields) != 2 or not _is_count(fields[name_first]) or not fields[not name_first]:
            order = "a name and its id" if name_first else "an id and its name"
            raise DataError(f"{place}: expected {order}, separated by a tab; mend the line")
        i, name = int(fields[name_first]), fields[not name_first]
        if i in names or name in taken:
            raise DataError(f"{place}: {f'id {i}' if i in names else repr(name)} stands twice; keep one")
        names[i] = name
        taken.add(name)
    missing = next((i for i in range(len(names)) if i not in names), None)
    if missing is not None:
        raise DataError(f"{path}: id {missing} of 0..{len(names) - 1} is missing; number without gaps")
    if top == "count":
        check_count(path, len(names))
    return IdMap(path, pa.array((names[i] for i in range(len(names))), pa.string()))


def _pairs(path: Path, name_first: bool, top: Top) -> Iterator[tuple[int, list[str] | DataError]]:
    """Yield the two fields of each line; those of a file with a header may stand in quotes."""
    for number, fields in numbered_rows(path, "\t", quoted=top == "header"):
        if number == 1 and top:
            continue
        if isinstance(fields, list) and len(fields) == 1:
            fields = fields[0].rsplit(None, 1) if name_first else fields[0].split(None, 1)
        yield number, fields


def _is_count(text: str) -> bool:
    return text.isdecimal() and len(text) <= _DIGITS


def check_count(path: Path, found: int) -> None:
    """Compare the count in the first line of a file with what it holds."""
    said = next((str(text) for _, text in numbered_lines(path)), "").strip()
    if not _is_count(said):
        raise DataError(f"{path}:1: expected the number of lines that follow, found {said[:40]!r}")
    if int(said) != found:
        raise DataError(
            f"{path}:1: says {said}, and {found} follow; the file is cut off, or the count is wrong"
        )
