"""Data sets by name: the embedded graph, local folders first, else a checked download."""

import hashlib
import io
import shutil
import sys
import tarfile
import tempfile
import urllib.request
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import wrap_file

from modulekge.data.benchmarks import (
    DATA_VARIABLE,
    HERE,
    SPLITS,
    WORLD,
    Benchmark,
    cache_dir,
    local_folder,
    name_or_path,
    named,
)
from modulekge.data.dataset import Dataset
from modulekge.data.readers.columns import named_columns
from modulekge.data.readers.tabular import Source, of_source
from modulekge.data.reading import name_of, read_dataset, read_facts
from modulekge.errors import DataError

LARGEST = 1 << 30  # bytes of a file, packed or not; no benchmark has one of a tenth of that


def as_dataset(
    data: Dataset | Source,
    columns: str | Sequence[str | int] | None = None,
    labels: Source | None = None,
) -> Dataset:
    """Return a data set as it is, and read all else as :func:`open_dataset` does."""
    if not isinstance(data, Dataset):
        return open_dataset(data, columns=columns, labels=labels)
    if columns is not None or labels is not None:
        raise DataError(f"{data.name}: is a data set already; give columns and labels to open_dataset")
    return data


def open_facts(where: Source, known: Dataset | None = None) -> Dataset:
    """Return a graph all of whose triples are facts, to be asked with what was learned on a ``known`` one."""
    if not isinstance(where, str | Path) or Path(where).exists():
        source = Path(where) if isinstance(where, str) else where
        facts = read_facts(source, known=known)
        triples = facts.triples
        graph = facts.entities, facts.relations, triples, triples[:0], triples[:0]
        return Dataset(name_of(source), *graph, notes=facts.notes)
    dataset = open_dataset(where)
    triples = torch.cat([dataset[split] for split in SPLITS])
    return replace(dataset, train=triples, valid=triples[:0], test=triples[:0])


def open_dataset(
    where: Source,
    data_dir: str | Path | None = None,
    seed: int = 0,
    columns: str | Sequence[str | int] | None = None,
    labels: Source | None = None,
    descriptions: Source | None = None,
    header: bool | None = None,
) -> Dataset:
    """Return the data set of a registered name, of a folder or file, or of what is in memory.

    A name is looked for in ``data_dir``, in the folders of the variable MODULEKGE_DATA, here and in the
    cache, and downloaded into the cache where none of them has it. In memory it may be a table (of pandas,
    polars, pyarrow, DuckDB: whatever has ``__arrow_c_stream__``), a list of triples, a graph of rdflib,
    pyoxigraph or networkx, or a dict of such by split: train, valid and test. What is in one piece is split
    at random with ``seed``.

    ``columns`` are those of head, relation and tail, by name or by number from 1, None where their titles
    say which is which. ``labels`` are a file, a dict or a table of ``name label``, ``descriptions`` of
    ``name description``. ``header`` says whether the first row of a table as text is one; where it is None
    that is found out, and said in the notes of the data set.

    >>> modulekge.open_dataset(frame, columns=("from", "kind", "to"))  # doctest: +SKIP
    >>> modulekge.open_dataset({"train": train, "valid": valid, "test": test})  # doctest: +SKIP
    """
    texts = of_source(labels), of_source(descriptions)
    chosen = named_columns(columns)
    if not isinstance(where, str | Path):
        return read_dataset(where, seed, chosen, *texts, header)
    name = name_or_path(where)
    if name == WORLD:
        return read_dataset(HERE / WORLD, seed, chosen, *texts, header)
    if benchmark := named(name):
        folder = local_folder(benchmark, data_dir) or download(benchmark, cache_dir())
        return _checked(read_dataset(folder, seed, chosen, *texts, header), benchmark, folder)
    dataset = read_dataset(Path(where), seed, chosen, *texts, header)
    if dataset.name.casefold() == WORLD:  # whose recipes are not for this one
        return replace(dataset, name=f"my-{dataset.name}")
    benchmark = named(dataset.name)  # what bears a benchmark's name must be that benchmark
    return _checked(dataset, benchmark, Path(where)) if benchmark else dataset


def download(benchmark: Benchmark, cache: Path) -> Path:
    """Fetch a benchmark's files, each checked before it is unpacked; all of them or nothing is kept."""
    cache.mkdir(parents=True, exist_ok=True)
    target = cache / benchmark.name
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        folder = Path(scratch) / benchmark.name
        folder.mkdir()
        for file in benchmark.files:
            content = _fetch(file, benchmark.name)
            for name, data in _unpack(file, content):
                (folder / name).write_bytes(data)
        _checked(read_dataset(folder), benchmark, folder)
        shutil.rmtree(target, ignore_errors=True)
        folder.rename(target)
    return target


def _fetch(file: dict[str, Any], name: str) -> bytes:
    advice = f"put its files into a folder {name} and name the folder above it with {DATA_VARIABLE}"
    try:
        with urllib.request.urlopen(file["url"], timeout=60) as response, _progress(response, name) as stream:
            content = bytes(stream.read(LARGEST + 1))
    except OSError as error:
        raise DataError(f"{file['url']}: cannot be downloaded ({error}); {advice}") from None
    if len(content) > LARGEST:
        raise DataError(f"{file['url']}: is larger than {LARGEST >> 20} MiB; nothing was kept")
    found = {
        "sha256": hashlib.sha256(content).hexdigest(),
        "git_blob_sha1": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(),
    }
    for kind, digest in found.items():
        if file.get(kind, digest) != digest:
            raise DataError(f"{file['url']}: {kind} is {digest}, expected {file[kind]}; nothing was kept")
    return content


@contextmanager
def _progress(response: Any, name: str) -> Iterator[Any]:
    """Show the download on a terminal, and nothing elsewhere."""
    size = int(response.headers.get("Content-Length") or 0)
    if not (sys.stderr.isatty() and size):
        yield response
        return
    with wrap_file(response, size, description=name, console=Console(stderr=True), transient=True) as stream:
        yield stream


def _unpack(file: dict[str, Any], content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield (name, bytes) of what to keep; names come from the registry, never from the archive."""
    if "members" not in file:
        yield file["save"], content
        return
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            inside = {Path(member.name).name: member for member in archive.getmembers() if member.isfile()}
            for member, name in file["members"].items():
                yield name, _member(archive, inside.get(member), f"{file['url']}: the archive's {member}")
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise DataError(f"{file['url']}: not a whole archive ({error}); nothing was kept") from None


def _member(archive: tarfile.TarFile, member: tarfile.TarInfo | None, place: str) -> bytes:
    stream = archive.extractfile(member) if member else None
    if member is None or stream is None:
        raise DataError(f"{place} is missing; nothing was kept")
    if member.size > LARGEST:
        raise DataError(f"{place} is larger than {LARGEST >> 20} MiB; nothing was kept")
    return stream.read()


def _checked(dataset: Dataset, benchmark: Benchmark, folder: Path) -> Dataset:
    """Compare with the published sizes: a truncated copy must not pass for the benchmark."""
    found = {split: len(dataset[split]) for split in SPLITS}
    sizes = (len(dataset.entities), len(dataset.relations), found)
    published = (benchmark.entities, benchmark.relations, benchmark.triples)
    if sizes != published:
        raise DataError(
            f"{folder}: is not {benchmark.name}: (entities, relations, triples) are {sizes}, "
            f"published {published}; rename the folder or mend the copy"
        )
    return replace(dataset, name=benchmark.name)
