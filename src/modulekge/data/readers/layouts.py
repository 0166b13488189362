"""Folders of splits as the tools of the field write them; a layout is a row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pyarrow as pa

from modulekge.data.readers.columns import read_each
from modulekge.data.readers.delimited import Form, form_of, read_text
from modulekge.data.readers.files import ENDINGS, TEXT_ENDINGS, read_file
from modulekge.data.readers.headers import Header
from modulekge.data.readers.id_maps import IdMap, Top, check_count, read_numbering
from modulekge.data.readers.labels import TextKind, read_texts
from modulekge.data.readers.tables import ROLES, Graph, joined, together
from modulekge.errors import DataError

STEMS = (("train",), ("valid", "validation", "val", "dev"), ("test",))
_ENTITY_LABELS = ("labels", "entity_strings")
_RELATION_LABELS = ("relation_labels", "relation_strings")
_DESCRIPTIONS = ("descriptions",)


@dataclass(frozen=True)
class Layout:
    """A folder that numbers its names: files of ids beside files of triples."""

    tool: str
    entities: str  # beside each split
    relations: str
    splits: tuple[str, ...]
    name_first: bool = False  # in the files of ids, where a line is otherwise: id, name
    top: Top = ""
    columns: tuple[str, str, str] | None = None  # of a file of triples, where they are in another order
    names: bool = False  # whether triples may be of names as well as of ids


LAYOUTS = (
    Layout(
        "PyKEEN",
        "entity_to_id.tsv.gz",
        "relation_to_id.tsv.gz",
        tuple(f"{split}/numeric_triples.tsv.gz" for split in ("training", "validation", "testing")),
        top="header",
    ),
    Layout(
        "PyKEEN", "entity_to_id.tsv.gz", "relation_to_id.tsv.gz", ("numeric_triples.tsv.gz",), top="header"
    ),
    Layout(
        "OpenKE",
        "entity2id.txt",
        "relation2id.txt",
        ("train2id.txt", "valid2id.txt", "test2id.txt"),
        name_first=True,
        top="count",
        columns=("1", "3", "2"),
    ),
    Layout("LibKGE", "entity_ids.del", "relation_ids.del", ("train.del", "valid.del", "test.del")),
    Layout(
        "RotatE and DGL-KE",
        "entities.dict",
        "relations.dict",
        ("train.txt", "valid.txt", "test.txt"),
        names=True,
    ),
)


def read_folder(folder: Path, columns: Sequence[str] | None = None, header: Header = ()) -> Graph:
    """Read train, valid and test, or train alone, which is yet to be split; and texts beside them.

    A folder with none of these is one graph: all facts of its tables.

    Where it is to be found out whether there is a header, train tells, and the others may have the same.
    """
    for layout in LAYOUTS:
        train = _found(folder, layout.splits[0])
        if train and _found(train.parent, layout.entities):
            if columns is not None:
                raise DataError(f"{folder}: {layout.tool} has columns of its own; leave --columns out")
            if isinstance(header, bool):
                raise DataError(f"{folder}: {layout.tool} says what a first line is; leave --header out")
            return _read_layout(folder, layout)
    for layout in LAYOUTS:
        if ids := _found(folder, layout.entities):  # without which numbers would be taken for names
            raise DataError(f"{ids}: belongs to {layout.tool}, whose {layout.splits[0]} is not there; add it")
    if tables := _tables(folder):
        found = _read_tables(folder, tables, columns, header)
    else:
        paths = _split_files(folder)
        graphs = [read_file(paths[0], columns, header)]
        header = graphs[0].header if header is None else header
        found = joined([*graphs, *(read_file(path, columns, header) for path in paths[1:])])
    entities, relations, told = _beside(folder)
    return replace(
        found,
        labels={**found.labels, **entities},
        relation_labels={**found.relation_labels, **relations},
        descriptions={**found.descriptions, **told},
    )


def _beside(folder: Path) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return what stands beside the splits: labels of entities, labels of relations, descriptions."""
    return (
        _texts(folder, _ENTITY_LABELS, "label"),
        _texts(folder, _RELATION_LABELS, "label"),
        _texts(folder, _DESCRIPTIONS, "description"),
    )


def _found(folder: Path, name: str) -> Path | None:
    """Return the file of this name in a folder, or the packed one."""
    return next((path for end in ("", ".gz") if (path := folder / (name + end)).is_file()), None)


def files_of(folder: Path) -> list[Path]:
    """Return the files of splits that a folder has, of any format, else its tables."""
    return [path for stems in STEMS for path in _present(folder, stems)] or _tables(folder)


def _tables(folder: Path) -> list[Path]:
    """Return the tables of a folder without splits, but for texts; other files are none of ours."""
    if any(_present(folder, stems) for stems in STEMS) or (folder / "run.json").exists():
        return []  # a run is no graph
    texts = {*_ENTITY_LABELS, *_RELATION_LABELS, *_DESCRIPTIONS}
    names = sorted(path for path in folder.iterdir() if path.is_file() and path.name[0] != ".")
    endings = tuple(end + packed for end in ENDINGS if end not in ("", ".txt") for packed in ("", ".gz"))
    return [path for path in names if path.name.endswith(endings) and path.name.split(".")[0] not in texts]


def _read_tables(
    folder: Path, tables: Sequence[Path], columns: Sequence[str] | None, header: Header
) -> Graph:
    graphs = read_each(tables, lambda path, chosen: read_file(path, chosen, header), columns)
    blank = [tables[i].name for i, graph in graphs.items() if graph.blank]
    if len(blank) > 1:
        raise DataError(
            f"{folder}: {blank[0]} and {blank[1]} both have blank nodes, which may have one name and be two; "
            "write both into one file"
        )
    found = together([*graphs.values()])
    if len(tables) == 1:
        return found
    said = f"{folder}: read as one graph: {', '.join(tables[i].name for i in graphs)}"
    return replace(found, notes=(said, *found.notes))


def _split_files(folder: Path) -> list[Path]:
    """Return the files of train, valid and test, or of train where the others are absent both."""
    found = [_present(folder, stems) for stems in STEMS]
    for paths in found:
        if len(paths) > 1:
            raise DataError(f"{folder}: {paths[0].name} and {paths[1].name} both exist; keep one")
    if found[0] and not any(found[1:]):
        return found[0]
    for stems, paths in zip(STEMS, found, strict=True):
        if not paths:
            raise DataError(
                f"{folder}: no {stems[0]} file; expected {stems[0]} with .txt, .tsv, .csv, .jsonl, .parquet, "
                ".nt or .ttl (also .gz), or name a single file of triples to have it split"
            )
    return [paths[0] for paths in found]


def _present(folder: Path, stems: Sequence[str], endings: Sequence[str] = ENDINGS) -> list[Path]:
    names = (stem + end + packed for stem in stems for end in endings for packed in ("", ".gz"))
    return [folder / name for name in names if (folder / name).is_file()]


def _read_layout(folder: Path, layout: Layout) -> Graph:
    present = {name: path for name in layout.splits if (path := _found(folder, name))}
    if len(present) not in (1, len(layout.splits)):
        absent = next(name for name in layout.splits if name not in present)
        raise DataError(f"{folder}: no {absent}, which belongs to the layout of {layout.tool}")
    paths = list(present.values())

    @cache
    def numbering(folder: Path, name: str) -> IdMap:
        return read_numbering(_found(folder, name) or folder / name, layout.name_first, layout.top)

    pairs = [(numbering(p.parent, layout.entities), numbering(p.parent, layout.relations)) for p in paths]
    raw = [_read_raw(path, layout) for path in paths]
    by_name = layout.names and _names_fit(*pairs[0], raw[0][1])
    return Graph(
        tuple(_named(p, *read, *pair, by_name) for p, read, pair in zip(paths, raw, pairs, strict=True)),
        _by_name(_texts(folder, _ENTITY_LABELS, "label"), pairs[0][0]),
        _by_name(_texts(folder, _RELATION_LABELS, "label"), pairs[0][1]),
        _by_name(_texts(folder, _DESCRIPTIONS, "description"), pairs[0][0]),
    )


def _names_fit(entities: IdMap, relations: IdMap, table: pa.Table) -> bool:
    """Say whether triples hold names rather than ids; names where both fit."""
    counts = entities.strangers(table, "head", "tail"), relations.strangers(table, "relation")
    by_name, by_id = map(sum, zip(*counts, strict=True))
    return by_name <= by_id


def _read_raw(path: Path, layout: Layout) -> tuple[Form, pa.Table]:
    """Read a file of triples as it stands, in ids or in names."""
    form = form_of(path, layout.columns, skip=int(layout.top == "count"))
    if form is None:
        raise DataError(f"{path}: no triples; each line should hold head, relation and tail")
    table = read_text(path, form)
    if layout.top == "count":
        check_count(path, table.num_rows)
    return form, table


def _named(
    path: Path, form: Form, table: pa.Table, entities: IdMap, relations: IdMap, by_name: bool
) -> pa.Table:
    """Return a table of ids or names as one of the names that the folder numbers."""
    columns = {}
    for role, numbering in zip(ROLES, (entities, relations, entities), strict=True):
        keys = numbering.names if by_name else numbering.ids
        columns[role] = numbering.named(table[role], keys)
        if columns[role].null_count:
            raise numbering.absent(path, form, role, keys)
    return pa.table(columns)


def _texts(folder: Path, stems: Sequence[str], kind: TextKind) -> dict[str, str]:
    found = [path for stem in stems for path in _present(folder, (stem,), TEXT_ENDINGS)]
    return {name: text for path in found for name, text in read_texts(path, kind).items()}


def _by_name(texts: Mapping[str, str], numbering: IdMap) -> dict[str, str]:
    """Return texts of ids as texts of names; those of names are kept."""
    named = dict(zip(numbering.ids.to_pylist(), numbering.names.to_pylist(), strict=True))
    known = set(named.values())
    return {key if key in known else named.get(key, key): text for key, text in texts.items()}
