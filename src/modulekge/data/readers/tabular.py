"""What holds triples in memory, read as a file would be: tables of Arrow, rows, graphs of other libraries."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from modulekge.data.readers.columns import COLUMNS, is_wide, read_each, titled_places
from modulekge.data.readers.edges import read_edges
from modulekge.data.readers.files import read_file
from modulekge.data.readers.labels import TextKind
from modulekge.data.readers.layouts import STEMS
from modulekge.data.readers.rdf import read_store
from modulekge.data.readers.records import Record, named_table, record_rows, sound
from modulekge.data.readers.tables import ROLES, Graph, gathered, joined, together
from modulekge.data.readers.wide import melted, melted_records
from modulekge.errors import DataError

_INDEX = re.compile(r"__index_level_\d+__")  # what pandas calls an index without a name
_UNTITLED = re.compile(r"(?:column_?|f)?([0-2])")  # how libraries number columns without titles


@runtime_checkable
class ArrowStream(Protocol):
    """A table that hands its columns on: of pandas, polars, pyarrow, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as a stream of Arrow's C interface."""


Tabular = ArrowStream | Iterable[Any]  # rows, or a graph; a Mapping is one of splits
Source = str | Path | Tabular


def of_source(source: Source | None) -> Path | Tabular | None:
    """Return where a file is, or what is in memory as it is."""
    return Path(source) if isinstance(source, str) else source


def where_is(source: Path | Tabular) -> str:
    """Return what messages call a file, or what is in memory."""
    return str(source) if isinstance(source, Path) else type(source).__name__


def read_tabular(source: Tabular, columns: Sequence[str] | None = None) -> Graph:
    """Read triples, or a mapping of the splits train, valid and test; of train alone, it is yet to be split.

    The facts of several tables or files in a list are one graph.

    ``columns`` are those of head, relation and tail, by name or number, where there are more or other ones.
    """
    if isinstance(source, list | tuple) and source and all(map(_is_table, source)):
        tables = list(enumerate(source, start=1))
        graphs = read_each(
            tables, lambda each, chosen: _read_one(f"table {each[0]}", each[1], chosen), columns
        )
        return together([*graphs.values()])
    if not isinstance(source, Mapping):
        return _read_one(where_is(source), source, columns)
    splits = {stems[0]: source[key] for stems in STEMS for key in stems if key in source}
    strange = [key for key in source if not any(key in stems for stems in STEMS)]
    if strange or len(splits) < len(source) or list(splits) not in (["train"], [stems[0] for stems in STEMS]):
        raise DataError(
            f"{where_is(source)}: its keys are {', '.join(map(repr, source))}; expected 'train', 'valid' and "
            "'test', or 'train' alone to have it split"
        )
    return joined([_read_one(split, part, columns) for split, part in splits.items()])


def _is_table(part: Any) -> bool:
    """Whether a member of a list is a table or a file, and not a row."""
    return isinstance(part, Path | ArrowStream) or (isinstance(part, str) and Path(part).is_file())


def _read_one(where: str, source: Any, columns: Sequence[str] | None) -> Graph:
    if isinstance(source, str | Path):
        return read_file(Path(source), columns)
    library = _library(source)
    if library in ("pyoxigraph", "rdflib"):
        if columns is not None:
            raise DataError(f"{where}: RDF has no columns to choose; leave {COLUMNS} out")
        graph = read_store(where, source, library)
    elif library == "networkx":
        graph = read_edges(where, source, columns)
    elif isinstance(source, ArrowStream):
        graph = _read_stream(where, source, columns)
    else:
        graph = _read_rows(where, source, columns)
    if graph.splits[0].num_rows == 0:
        notes = "".join(f" ({note})" for note in graph.notes)
        raise DataError(f"{where}: no triples; each row should hold head, relation and tail{notes}")
    return graph


def _library(source: Any) -> str:
    """Return which library of graphs something is of, if of one; that of a subclass is its base's."""
    homes = [kind.__module__.split(".")[0] for kind in type(source).__mro__]
    return next((name for name in ("pyoxigraph", "rdflib", "networkx") if name in homes), "")


def _read_stream(where: str, source: ArrowStream, columns: Sequence[str] | None) -> Graph:
    """Read three columns of a table, by the rules of Parquet; an index of pandas is none."""
    with _arrow_errors(where):
        stream = pa.RecordBatchReader.from_stream(source)
        if columns is not None and is_wide(columns):
            table = stream.read_all()
            index = [title for title in table.column_names if _INDEX.fullmatch(title)]
            return melted(where, table.drop_columns(index), columns)
        names = stream.schema.names
        given = [i for i, title in enumerate(names) if columns or not _INDEX.fullmatch(title)]
        titles = [names[i] for i in given]
        order = [match and match[1] for match in map(_UNTITLED.fullmatch, titles)]
        if columns is None and order == ["0", "1", "2"]:
            places = given
        else:
            places = [given[i] for i in titled_places(where, titles, columns).values()]
        fields = [stream.schema.field(i) for i in places]
        batches = (_sound_columns(batch, places) for batch in stream)
        return Graph((named_table(where, fields, batches),))


@contextmanager
def _arrow_errors(where: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, pa.ArrowTypeError) as error:
        found = " ".join(str(error).split())
        raise DataError(f"{where}: {found}; make its columns text or whole numbers") from None


def _sound_columns(batch: pa.RecordBatch, places: Sequence[int]) -> list[pa.Array]:
    columns = [batch.column(i) for i in places]
    for column in columns:
        column.validate(full=True)  # text that is no UTF-8
    return columns


def _read_rows(where: str, source: Any, columns: Sequence[str] | None) -> Graph:
    """Read tuples, lists or dicts, by the rules of JSON lines: a first row in known words is a header."""
    if hasattr(source, "tolist"):  # of NumPy
        source = source.tolist()
    if not isinstance(source, Iterable) or isinstance(source, bytes):
        raise DataError(
            f"{where}: is no table; give a file, a list of (head, relation, tail), or a table that has "
            "__arrow_c_stream__, such as a DataFrame"
        )
    rows = list(source)
    if columns is not None and is_wide(columns):
        return melted_records(where, _records(where, rows), columns)
    table = gathered(sound(record_rows(_records(where, rows), columns)))
    return Graph((table,), skipped=len(rows) - table.num_rows)


def read_pairs(source: Tabular, kind: TextKind) -> dict[str, str]:
    """Return texts by name: of a mapping, or of a table or rows of two columns."""
    if isinstance(source, Mapping):
        rows = list(source.items())
    elif isinstance(source, ArrowStream):
        with _arrow_errors(f"{kind}s"):
            table = pa.RecordBatchReader.from_stream(source).read_all()
        titles = [title for title in table.column_names if not _INDEX.fullmatch(title)]
        rows = list(zip(*(table[title].to_pylist() for title in titles), strict=True))
    else:
        rows = list(source)
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, tuple | list) or len(row) != 2 or not all(isinstance(x, str) for x in row):
            found = f"{row!r}"[:40]
            raise DataError(f"{kind}s: row {number}: {found}: expected a name and its {kind}")
    return dict(rows)


def _records(where: str, rows: Iterable[Any]) -> Iterator[tuple[str, Record | DataError]]:
    for number, row in enumerate(rows, start=1):
        place = f"{where}: row {number}"
        if isinstance(row, tuple | list):
            yield place, list(row)
        elif isinstance(row, Mapping):
            yield place, dict(row)
        else:
            found = f"{row!r}"[:40]
            yield place, DataError(f"{place}: {found}: expected three values: {', '.join(ROLES)}")
