"""From files of triples to a data set; what is wrong is said with its file and line."""

import csv as plain_csv
import gzip
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import torch
from pyarrow import csv
from torch import Tensor

from modulekge.data.dataset import SPLITS, Dataset
from modulekge.data.splitting import split_triples
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import DataError
from modulekge.shapes import Triples

_STEMS = {"train": ("train",), "valid": ("valid", "validation", "dev"), "test": ("test",)}
_ENDINGS = ("", ".txt", ".tsv", ".csv", ".txt.gz", ".tsv.gz", ".csv.gz")
_HEADERS = (("head", "relation", "tail"), ("subject", "predicate", "object"))


def read_dataset(path: Path, seed: int = 0) -> Dataset:
    """Read a folder of train, valid and test files, or one file, split with ``seed``."""
    if path.is_dir():
        tables = [read_triples(_only(path, _STEMS[split])) for split in SPLITS]
        folder, name = path, path.resolve().name
    elif path.is_file():
        tables = [read_triples(path)]
        folder, name = path.parent, path.name.split(".")[0]
    else:
        raise DataError(f"{path}: no such file or folder; 'modulekge data list' names the known data sets")
    entities, relations, splits = _encode(tables, folder)
    if len(splits) == 1:
        splits = list(split_triples(splits[0], len(entities), len(relations), seed))
    return Dataset(name, entities, relations, *splits)


def read_triples(path: Path) -> pa.Table:
    """Read a file of ``head relation tail``: tab-separated, or with commas where it ends in .csv."""
    table = _read_columns(path, ("head", "relation", "tail"))
    if table.num_rows == 0:
        raise DataError(f"{path}: no triples; each line should hold head, relation and tail")
    return table


def read_labels(path: Path) -> dict[str, str]:
    """Read a file of ``name label``."""
    table = _read_columns(path, ("name", "label"))
    return dict(zip(table["name"].to_pylist(), table["label"].to_pylist(), strict=True))


def _only(folder: Path, stems: tuple[str, ...]) -> Path:
    """Return the one file of a folder with one of these stems and a known ending."""
    found = _present(folder, stems)
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError(f"{folder}: {found[0].name} and {found[1].name} both exist; keep one")
    raise DataError(
        f"{folder}: no {stems[0]} file; expected {stems[0]}.txt, .tsv or .csv (also .gz), "
        "or name a single file of triples to have it split"
    )


def _present(folder: Path, stems: tuple[str, ...]) -> list[Path]:
    return [p for stem in stems for end in _ENDINGS if (p := folder / (stem + end)).is_file()]


def _separator(path: Path) -> str:
    return "," if ".csv" in path.suffixes else "\t"


def _read_columns(path: Path, columns: tuple[str, ...]) -> pa.Table:
    """Read text columns as they are: no number is guessed, so ids keep their leading zeros."""
    separator = _separator(path)
    try:
        table = csv.read_csv(
            path,
            csv.ReadOptions(column_names=list(columns)),
            csv.ParseOptions(delimiter=separator, quote_char='"' if separator == "," else False),
            csv.ConvertOptions(column_types={name: pa.string() for name in columns}),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError, EOFError) as error:
        if path.stat().st_size == 0 or "Empty CSV" in str(error):
            return pa.table({name: pa.array([], pa.string()) for name in columns})
        raise _explain(path, columns, separator, str(error)) from None
    if any(pc.any(pc.equal(table[name], "")).as_py() for name in columns):
        raise _explain(path, columns, separator, "an empty field")
    top = [tuple(value.casefold() for value in row.values()) for row in table.slice(0, 1).to_pylist()]
    return table.slice(1) if top and top[0] in _HEADERS else table


def _explain(path: Path, columns: tuple[str, ...], separator: str, finding: str) -> DataError:
    """Find the first line that is wrong, to say where the fast reader stopped."""
    word = "tab" if separator == "\t" else "comma"
    try:
        for number, line in _lines(path):
            try:
                text = line.decode()
            except UnicodeDecodeError:
                return DataError(f"{path}:{number}: not UTF-8 text; save the file as UTF-8")
            fields = _fields(text, separator)
            if len(fields) != len(columns) and text.strip():
                return DataError(
                    f"{path}:{number}: expected {len(columns)} {word}-separated fields "
                    f"({', '.join(columns)}), found {len(fields)}"
                )
            for name, value in zip(columns, fields, strict=False):
                if text.strip() and not value:
                    return DataError(f"{path}:{number}: the {name} is empty; fill it in or remove the line")
    except (OSError, EOFError) as error:
        return DataError(f"{path}: {error}; the file is damaged or is not what its ending says")
    return DataError(f"{path}: {finding}")


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            yield number, line.rstrip(b"\r\n")


def _fields(text: str, separator: str) -> list[str]:
    if separator == "\t" or '"' not in text:
        return text.split(separator)
    return next(plain_csv.reader([text]))


def _encode(tables: list[pa.Table], folder: Path) -> tuple[Vocabulary, Vocabulary, list[Triples]]:
    """Number names in the order in which they first occur: heads before tails, split by split."""
    sizes = [table.num_rows for table in tables]
    entity_names, ends = _number([t[c] for t in tables for c in ("head", "tail")])
    relation_names, relations = _number([t["relation"] for t in tables])
    pairs = ends.split([size for size in sizes for _ in ("head", "tail")])
    splits = [
        torch.stack([heads, relation, tails], dim=1)
        for heads, relation, tails in zip(pairs[::2], relations.split(sizes), pairs[1::2], strict=True)
    ]
    return (
        Vocabulary("entity", entity_names, _labels(folder, "labels")),
        Vocabulary("relation", relation_names, _labels(folder, "relation_labels")),
        splits,
    )


def _number(columns: list[pa.ChunkedArray]) -> tuple[tuple[str, ...], Tensor]:
    """Return the distinct names of columns laid end to end, and each cell's place among them."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    encoded = pa.chunked_array(chunks, pa.string()).combine_chunks().dictionary_encode()
    return tuple(encoded.dictionary.to_pylist()), torch.tensor(encoded.indices.to_numpy()).long()


def _labels(folder: Path, stem: str) -> dict[str, str]:
    found = _present(folder, (stem,))
    return read_labels(found[0]) if found else {}
