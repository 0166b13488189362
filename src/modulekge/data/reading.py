"""From files of triples to a data set; what is wrong is said with its file and line."""

import csv as plain_csv
import gzip
import zlib
from collections.abc import Iterator
from io import BufferedIOBase, TextIOWrapper
from pathlib import Path
from typing import IO, cast

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
_BLOCK = 16 << 20  # bytes read at a time; no line may be longer
_HEADERS = (("head", "relation", "tail"), ("subject", "predicate", "object"))


def read_dataset(path: Path, seed: int = 0) -> Dataset:
    """Read a folder of train, valid and test files, or one file, split with ``seed``."""
    if path.is_dir():
        tables = [read_triples(_only(path, _STEMS[split])) for split in SPLITS]
        labels = [_labels(path, stem) for stem in ("labels", "relation_labels")]
        entities, relations, splits = _encode(tables, *labels)
        return Dataset(_utf8(path.resolve().name), entities, relations, *splits)
    if not path.is_file():
        raise DataError(f"{path}: no such file or folder; 'modulekge data list' names the known data sets")
    entities, relations, (triples,) = _encode([read_triples(path)], {}, {})
    try:
        train, valid, test = split_triples(triples, len(entities), len(relations), seed)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    return Dataset(_utf8(path.name.split(".")[0]), entities, relations, train, valid, test)


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
    name = path.name.lower().removesuffix(".gz")
    return "," if name.endswith(".csv") else "\t"


def _read_columns(path: Path, columns: tuple[str, ...]) -> pa.Table:
    """Read text columns as they are: no number is guessed, so ids keep their leading zeros."""
    separator = _separator(path)
    try:
        table = csv.read_csv(
            path,
            csv.ReadOptions(column_names=list(columns), block_size=_BLOCK),
            csv.ParseOptions(
                delimiter=separator,
                quote_char='"' if separator == "," else False,
                newlines_in_values=separator == ",",
            ),
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
        for number, fields in _rows(path, separator):
            if len(fields) != len(columns):
                return DataError(
                    f"{path}:{number}: expected {len(columns)} {word}-separated fields "
                    f"({', '.join(columns)}), found {len(fields)}"
                )
            for name, value in zip(columns, fields, strict=True):
                if not value:
                    return DataError(f"{path}:{number}: the {name} is empty; fill it in or remove the line")
            if sum(map(len, fields)) > _BLOCK // 4:
                return DataError(
                    f"{path}:{number}: the line is longer than {_BLOCK >> 20} MiB; is it one line?"
                )
    except UnicodeDecodeError:
        return DataError(f"{path}:{_line_of(path)}: not UTF-8 text; save the file as UTF-8")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        return DataError(f"{path}: {error}; the file is damaged or is not what its ending says")
    except (OSError, plain_csv.Error) as error:
        return DataError(f"{path}: cannot be read ({error}); mend the file or its permissions")
    return DataError(f"{path}: {' '.join(finding.split())}")


def _open(path: Path) -> BufferedIOBase:
    return gzip.GzipFile(path) if path.suffix == ".gz" else path.open("rb")


def _rows(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, fields) one by one, slowly and surely."""
    with _open(path) as file:
        if separator == ",":
            text = TextIOWrapper(cast("IO[bytes]", file), "utf-8-sig", newline="")
            reader = plain_csv.reader(text)
            yield from ((reader.line_num, row) for row in reader if row)
        else:
            for number, line in enumerate(file, start=1):
                if line := line.rstrip(b"\r\n"):
                    yield number, line.decode().split(separator)


def _line_of(path: Path) -> int:
    """Return the line whose bytes are not UTF-8."""
    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 1


def _utf8(name: str) -> str:
    """A file's name may hold bytes that are no text; a data set's may not."""
    return name.encode(errors="replace").decode()


def _encode(
    tables: list[pa.Table], labels: dict[str, str], relation_labels: dict[str, str]
) -> tuple[Vocabulary, Vocabulary, list[Triples]]:
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
        Vocabulary("entity", entity_names, labels),
        Vocabulary("relation", relation_names, relation_labels),
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
