"""Triples as text: a table with the columns head, relation and tail, each distinct name kept once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import pyarrow as pa
import torch
from jaxtyping import Int
from torch import Tensor

ROLES = ("head", "relation", "tail")
NAMES = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema([(role, NAMES) for role in ROLES])
BATCH = 1 << 18  # rows gathered before their names are numbered


@dataclass(frozen=True, eq=False)
class Graph:
    """What files say: the tables of train, valid and test, or one that is yet to be split."""

    splits: tuple[pa.Table, ...]
    labels: Mapping[str, str] = field(default_factory=dict)  # of entities
    relation_labels: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)  # of entities
    notes: tuple[str, ...] = ()  # what was left out, for people
    header: tuple[str, ...] = ()  # the titles of a first row that was taken for a header
    doubtful: tuple[str, ...] = ()  # those of a first row that may be one, and was taken for a fact
    skipped: int = 0  # rows of a list before its first triple: a header
    blank: bool = False  # whether names that begin with _: are blank nodes, which other files do not know


def joined(graphs: Sequence[Graph]) -> Graph:
    """Return graphs of one split each as one of all of them; of two texts of a name the first counts."""

    def texts(kind: str) -> dict[str, str]:
        return {name: text for graph in reversed(graphs) for name, text in getattr(graph, kind).items()}

    return replace(
        graphs[0],
        splits=tuple(table for graph in graphs for table in graph.splits),
        labels=texts("labels"),
        relation_labels=texts("relation_labels"),
        descriptions=texts("descriptions"),
        notes=tuple(note for graph in graphs for note in graph.notes),
        blank=any(graph.blank for graph in graphs),
    )


def together(graphs: Sequence[Graph]) -> Graph:
    """Return graphs of one split each as one of one split that has the facts of all."""
    found = joined(graphs)
    return replace(found, splits=(pa.concat_tables(found.splits),), header=(), doubtful=(), skipped=0)


def rows_of(table: pa.Table) -> list[tuple[str, str, str]]:
    """Return the triples of a table, row by row."""
    return list(zip(*(_names(table[role]) for role in ROLES), strict=True))


def _names(column: pa.ChunkedArray) -> Iterator[str]:
    """Yield the names in a column's cells; each distinct one becomes a string once."""
    for chunk in column.chunks:
        names = chunk.dictionary.to_pylist()
        yield from map(names.__getitem__, _indices(chunk).tolist())


def gathered(rows: Iterable[tuple[str, str, str]]) -> pa.Table:
    """Return rows of names as a table, holding each distinct name of a batch once."""
    batches, rest = [], iter(rows)
    while batch := list(islice(rest, BATCH)):
        columns = [pa.array(column, pa.string()).dictionary_encode() for column in zip(*batch, strict=True)]
        batches.append(pa.record_batch(columns, schema=SCHEMA))
    return pa.Table.from_batches(batches, SCHEMA)


def encoded(table: pa.Table) -> pa.Table:
    """Return a table of text with each distinct name of a column kept once."""
    columns = [column.dictionary_encode().combine_chunks() for column in table.columns]
    return pa.table(columns, names=table.column_names)


def numbered(columns: Sequence[pa.ChunkedArray]) -> tuple[pa.Array, Int[Tensor, " cells"]]:
    """Return the distinct names of columns laid end to end, in order, and which of them each cell holds."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    unified = pa.chunked_array(chunks, NAMES).unify_dictionaries()
    return unified.chunk(0).dictionary, torch.cat([_indices(chunk).clone() for chunk in unified.chunks])


def _indices(chunk: pa.DictionaryArray) -> Int[Tensor, " cells"]:
    """Return which of the distinct names each cell holds."""
    found: Tensor = torch.utils.dlpack.from_dlpack(chunk.indices)
    return found


def distinct(table: pa.Table) -> Iterator[pa.Array]:
    """Yield the names of a table piece by piece, each once in its piece."""
    for column in table.columns:
        yield from (chunk.dictionary for chunk in column.chunks)
