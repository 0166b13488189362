"""From files and tables to a data set: names are numbered, and what is in one piece is split."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from modulekge.data.dataset import Dataset
from modulekge.data.readers.columns import is_wide
from modulekge.data.readers.files import read_file
from modulekge.data.readers.headers import Header
from modulekge.data.readers.labels import LONGEST, TextKind, bounded, read_texts
from modulekge.data.readers.layouts import read_folder
from modulekge.data.readers.places import place
from modulekge.data.readers.tables import Graph, numbered
from modulekge.data.readers.tabular import Tabular, read_pairs, read_tabular, where_is
from modulekge.data.splits import split_triples
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import DataError
from modulekge.shapes import Triples
from modulekge.suggest import nearest
from modulekge.wording import counted


def read_dataset(
    source: Path | Tabular,
    seed: int = 0,
    columns: Sequence[str] | None = None,
    labels: Path | Tabular | None = None,
    descriptions: Path | Tabular | None = None,
    header: Header = None,
) -> Dataset:
    """Read a folder or a mapping of splits, or one file or table of triples, split with ``seed``.

    ``columns`` are those of head, relation and tail, by name or by number from 1, where a file has more
    or other ones. ``labels`` is a file or a mapping of ``name label``, for entities and relations,
    ``descriptions`` one of ``name description``, for entities. ``header`` says whether the first row of text
    is one; without it that is found out, and said in the notes.
    """
    entities, relations, splits, notes, _ = _read(source, columns, labels, descriptions, header)
    if len(splits) == 1:
        where, count = where_is(source), len(splits[0])
        try:
            splits = split_triples(splits[0], len(entities), len(relations), seed)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        if repeated := count - sum(map(len, splits)):
            kept = counted(repeated, "repeated triple is", "repeated triples are")
            notes.append(f"{where}: {kept} kept once")
    train, valid, test = splits
    return Dataset(name_of(source), entities, relations, train, valid, test, notes=tuple(notes))


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
    source: Path | Tabular,
    columns: Sequence[str] | None = None,
    labels: Path | Tabular | None = None,
    descriptions: Path | Tabular | None = None,
    header: Header = None,
    known: Dataset | None = None,
) -> Facts:
    """Read the triples of a file or table, or of all splits, as :func:`read_dataset` does, unsplit.

    A first row that may be a header is one where it has no name of ``known``, the graph that the facts are
    for; where it has one, only if ``header`` says so, or if it is in known words.
    """
    entities, relations, splits, notes, graph = _read(source, columns, labels, descriptions, header)
    if header is None and known:
        if graph.header and _knows(known, graph.header):
            return read_facts(source, columns, labels, descriptions, ())
        if graph.doubtful and not _knows(known, graph.doubtful):
            return read_facts(source, columns, labels, descriptions, graph.doubtful)
    if isinstance(source, Path):
        where = partial(place, source, columns, header=graph.header if header is None else header)
    else:
        where = partial(_place_in_memory, where_is(source), graph, "triple" if is_wide(columns) else "row")
    return Facts(entities, relations, torch.cat(splits), tuple(notes), graph.blank, where)


def _place_in_memory(where: str, graph: Graph, what: str, i: int) -> str:
    """Say where the i-th triple stands; of several splits, and of what has no order, in what alone."""
    return where if len(graph.splits) > 1 or graph.blank else f"{where}: {what} {graph.skipped + i + 1}"


def _knows(dataset: Dataset, row: Sequence[str]) -> bool:
    """Say whether a graph has the head, the relation or the tail of a row."""
    vocabularies = dataset.entities, dataset.relations, dataset.entities
    return any(names.meant(name) for names, name in zip(vocabularies, row, strict=True))


def _read(
    source: Path | Tabular,
    columns: Sequence[str] | None,
    labels: Path | Tabular | None,
    descriptions: Path | Tabular | None,
    header: Header,
) -> tuple[Vocabulary, Vocabulary, tuple[Triples, ...], list[str], Graph]:
    where, graph = where_is(source), _graph(source, columns, header)
    called, told = _texts(labels, "label"), _texts(descriptions, "description")
    said, cut = bounded({**graph.descriptions, **told})
    entities, relations, splits = _encode(
        replace(
            graph,
            labels={**graph.labels, **called},
            relation_labels={**graph.relation_labels, **called},
            descriptions=said,
        )
    )
    notes = [*graph.notes, *_outer_spaces(where, entities), *_outer_spaces(where, relations)]
    notes += [
        *_unheard(where, labels, called, entities, relations),
        *_unheard(where, descriptions, told, entities),
    ]
    if cut:
        descriptions_cut = counted(cut, "description is", "descriptions are")
        notes.append(f"{where}: {descriptions_cut} cut at {LONGEST:,} characters")
    return entities, relations, splits, notes, graph


def _graph(source: Path | Tabular, columns: Sequence[str] | None, header: Header) -> Graph:
    if not isinstance(source, Path):
        if isinstance(header, bool):
            raise DataError(f"{where_is(source)}: only tables as text have a header to choose; leave it out")
        return read_tabular(source, columns)
    if not source.exists():
        there = [path.name for path in source.parent.iterdir()] if source.parent.is_dir() else []
        near = [str(source.with_name(name)) for name in nearest(source.name, there)]
        advice = "check the path; 'modulekge data list' names the known data sets"
        if near:
            advice = f"did you mean {' or '.join(near)}?"
        raise DataError(f"{source}: no such file or folder; {advice}")
    if not (source.is_file() or source.is_dir()):
        raise DataError(f"{source}: neither a file nor a folder; write what it holds to a file first")
    return (read_folder if source.is_dir() else read_file)(source, columns, header)


def _texts(source: Path | Tabular | None, kind: TextKind) -> dict[str, str]:
    if source is None:
        return {}
    return read_texts(source, kind) if isinstance(source, Path) else read_pairs(source, kind)


def _unheard(
    where: str, told: Path | Tabular | None, texts: Mapping[str, str], *vocabularies: Vocabulary
) -> Iterator[str]:
    """Say that texts are about nothing in the data: their columns may be the other way round."""
    if told is not None and not any(name in texts for names in vocabularies for name in names.names):
        source = where_is(told)
        yield f"{source}: none of its names is in {where}; each line should hold a name, then its text"


def _outer_spaces(where: str, vocabulary: Vocabulary) -> Iterator[str]:
    """Say how many names begin or end with a space, which is seldom meant."""
    spaced = [name for name in vocabulary.names if name != name.strip()]
    if spaced:
        names = set(vocabulary.names)
        twice = sum(name.strip() in names for name in spaced)
        kind = f"({vocabulary.kind})"
        found = counted(len(spaced), f"name {kind} begins or ends", f"names {kind} begin or end")
        also = f"{twice:,} of them {'is' if twice == 1 else 'are'} also there without it"
        yield f"{where}: {found} with a space, {also}; trim them if that is not meant"


def name_of(path: Path | Tabular) -> str:
    """Return what to call the graph of a file or folder, whose name may hold bytes that are no text."""
    if not isinstance(path, Path):
        return "graph"
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
