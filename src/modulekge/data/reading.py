"""From files to a data set: names are numbered, and what is in one piece is split."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from modulekge.data.dataset import Dataset
from modulekge.data.readers.files import read_file
from modulekge.data.readers.headers import Header
from modulekge.data.readers.labels import LONGEST, bounded, read_texts
from modulekge.data.readers.layouts import read_folder
from modulekge.data.readers.places import place
from modulekge.data.readers.records import checked_names
from modulekge.data.readers.tables import Graph, gathered, numbered
from modulekge.data.splits import split_triples
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import DataError
from modulekge.shapes import Triples
from modulekge.wording import counted


def read_dataset(
    path: Path,
    seed: int = 0,
    columns: Sequence[str] | None = None,
    labels: Path | None = None,
    descriptions: Path | None = None,
    header: Header = None,
) -> Dataset:
    """Read a folder of splits, or one file of triples, split with ``seed``.

    ``columns`` are those of head, relation and tail, by name or by number from 1, where a file has more
    or other ones. ``labels`` is a file of ``name label``, for entities and relations, ``descriptions`` one
    of ``name description``, for entities. ``header`` says whether the first row of text is one; without it
    that is found out, and said in the notes.
    """
    entities, relations, splits, notes, _ = _read(path, columns, labels, descriptions, header)
    if len(splits) == 1:
        count = len(splits[0])
        try:
            splits = split_triples(splits[0], len(entities), len(relations), seed)
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
        if repeated := count - sum(map(len, splits)):
            kept = counted(repeated, "repeated triple is", "repeated triples are")
            notes.append(f"{path}: {kept} kept once")
    train, valid, test = splits
    return Dataset(name_of(path), entities, relations, train, valid, test, notes=tuple(notes))


@dataclass(frozen=True, eq=False)
class Facts:
    """Triples with vocabularies of their own, in no split."""

    entities: Vocabulary
    relations: Vocabulary
    triples: Triples
    notes: tuple[str, ...] = ()  # what was left out when they were read, for people
    blank: bool = False  # whether names that begin with _: are blank nodes, which no other graph knows
    place: Callable[[int], str] = lambda i: f"triple {i + 1}"  # of the i-th

    def first(self, i: int, columns: Sequence[int]) -> str:
        """Say where an id stands first in these columns."""
        return self.place(int((self.triples[:, columns] == i).any(1).nonzero()[0]))


def read_facts(
    path: Path,
    columns: Sequence[str] | None = None,
    labels: Path | None = None,
    descriptions: Path | None = None,
    header: Header = None,
    known: Dataset | None = None,
) -> Facts:
    """Read the triples of a file, or of all splits of a folder, as :func:`read_dataset` does, unsplit.

    A first row that has a name of ``known``, the graph that they are for, is taken for a header only if
    ``header`` says so, or if it is in known words.
    """
    entities, relations, splits, notes, graph = _read(path, columns, labels, descriptions, header)
    if header is None and known and graph.header and _knows(known, graph.header):
        return read_facts(path, columns, labels, descriptions, ())
    where = partial(place, path, columns, header=graph.header if header is None else header)
    return Facts(entities, relations, torch.cat(splits), tuple(notes), graph.blank, where)


def _knows(dataset: Dataset, row: Sequence[str]) -> bool:
    """Say whether a graph has the head, the relation or the tail of a row."""
    vocabularies = dataset.entities, dataset.relations, dataset.entities
    return any(names.meant(name) for names, name in zip(vocabularies, row, strict=True))


def named_facts(triples: Iterable[Sequence[str]]) -> Facts:
    """Return triples of names as facts."""
    rows: list[Any] = list(triples)
    for number, row in enumerate(rows, start=1):
        if (
            not isinstance(row, tuple | list)
            or len(row) != 3
            or not all(isinstance(x, str) and x for x in row)
        ):
            raise DataError(f"triple {number}: {row!r}: expected three names: head, relation and tail")
        try:
            checked_names(row)
        except ValueError as error:
            raise DataError(f"triple {number}: {error}") from None
    if not rows:
        raise DataError("no triples; give at least one of head, relation and tail")
    entities, relations, (ids,) = _encode(Graph((gathered(rows),)))
    return Facts(entities, relations, ids)


def _read(
    path: Path, columns: Sequence[str] | None, labels: Path | None, descriptions: Path | None, header: Header
) -> tuple[Vocabulary, Vocabulary, tuple[Triples, ...], list[str], Graph]:
    if not path.exists():
        advice = "check the path; 'modulekge data list' names the known data sets"
        raise DataError(f"{path}: no such file or folder; {advice}")
    if not (path.is_file() or path.is_dir()):
        raise DataError(f"{path}: neither a file nor a folder; write what it holds to a file first")
    graph = (read_folder if path.is_dir() else read_file)(path, columns, header)
    called = read_texts(labels, "label") if labels else {}
    told = read_texts(descriptions, "description") if descriptions else {}
    said, cut = bounded({**graph.descriptions, **told})
    entities, relations, splits = _encode(
        replace(
            graph,
            labels={**graph.labels, **called},
            relation_labels={**graph.relation_labels, **called},
            descriptions=said,
        )
    )
    notes = [*graph.notes, *_outer_spaces(path, entities), *_outer_spaces(path, relations)]
    notes += [
        *_unheard(path, labels, called, entities, relations),
        *_unheard(path, descriptions, told, entities),
    ]
    if cut:
        descriptions_cut = counted(cut, "description is", "descriptions are")
        notes.append(f"{path}: {descriptions_cut} cut at {LONGEST:,} characters")
    return entities, relations, splits, notes, graph


def _unheard(
    path: Path, told: Path | None, texts: Mapping[str, str], *vocabularies: Vocabulary
) -> Iterator[str]:
    """Say that a file of texts is about nothing in the data: its columns may be the other way round."""
    if told and not any(name in texts for vocabulary in vocabularies for name in vocabulary.names):
        yield f"{told}: none of its names is in {path}; each line should hold a name, then its text"


def _outer_spaces(path: Path, vocabulary: Vocabulary) -> Iterator[str]:
    """Say how many names begin or end with a space, which is seldom meant."""
    spaced = [name for name in vocabulary.names if name != name.strip()]
    if spaced:
        names = set(vocabulary.names)
        twice = sum(name.strip() in names for name in spaced)
        kind = f"({vocabulary.kind})"
        found = counted(len(spaced), f"name {kind} begins or ends", f"names {kind} begin or end")
        also = f"{twice:,} of them {'is' if twice == 1 else 'are'} also there without it"
        yield f"{path}: {found} with a space, {also}; trim them if that is not meant"


def name_of(path: Path) -> str:
    """Return what to call the graph of a file or folder, whose name may hold bytes that are no text."""
    name = path.resolve().name if path.is_dir() else path.name.split(".")[0]
    return name.encode(errors="replace").decode()


def _encode(graph: Graph) -> tuple[Vocabulary, Vocabulary, tuple[Triples, ...]]:
    """Number names in the order in which they first occur: heads before tails, split by split."""
    sizes = [table.num_rows for table in graph.splits]
    entity_names, ends = numbered([table[role] for table in graph.splits for role in ("head", "tail")])
    relation_names, relations = numbered([table["relation"] for table in graph.splits])
    pairs = ends.split([size for size in sizes for _ in ("head", "tail")])
    splits = tuple(
        torch.stack([heads, relation, tails], dim=1).long()
        for heads, relation, tails in zip(pairs[::2], relations.split(sizes), pairs[1::2], strict=True)
    )
    return (
        Vocabulary("entity", tuple(entity_names.to_pylist()), graph.labels, graph.descriptions),
        Vocabulary("relation", tuple(relation_names.to_pylist()), graph.relation_labels),
        splits,
    )
