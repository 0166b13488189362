"""A graph read by several processes: each reads a part of the text and answers for a part of the names.

The ids are those that one process gives. Who answers for a name numbers it as it comes; where it occurs first
says its id, once all is read.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Int, Int32
from numpy.typing import NDArray
from torch import Tensor

from modulekge.data import lines
from modulekge.data.tables import ROLES, encoded, numbered
from modulekge.data.text import Form, read_text, text_problems
from modulekge.errors import DataError
from modulekge.workers import Workers

Files = Sequence[tuple[Path, Form]]
_COLUMN = 1 << 60  # bytes that no file has: so far apart are the places of two columns
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, eq=False)
class Names:
    """The names for which this process answers; others answer for the rest."""

    workers: Workers
    held: pa.Array  # in the order of their ids
    ids: NDArray[np.int32]
    by_number: NDArray[np.int32]  # ids in the order in which names came
    count: int  # of all names
    spaced: int  # of all, those that begin or end with a space
    twice: int  # of these, those that are there without it as well

    def settled(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the ids of names that have numbers yet."""
        ids, (places, owners) = np.empty_like(numbers), np.divmod(numbers, self.workers.size)
        for owner, theirs in _in_turn(self.workers, self.by_number):
            ids[owners == owner] = theirs[places[owners == owner]]
        return ids

    def between(self, start: int, stop: int) -> list[str]:
        """Return the names of some ids in the first process, which asks the others; elsewhere none."""
        some = slice(*np.searchsorted(self.ids, [start, stop]))
        mine = _packed(pa.table({"id": self.ids[some], "name": self.held[some]}))
        found = self.workers.exchange([mine] + [b""] * (self.workers.size - 1))
        if not self.workers.leads:
            return []
        names: list[str] = pa.concat_tables(map(_unpacked, found)).sort_by("id")["name"].to_pylist()
        return names


@dataclass(frozen=True, eq=False)
class Share:
    """What a process holds of a graph that all have read together."""

    workers: Workers
    entities: Names
    relations: Names
    splits: tuple[Int32[Tensor, "_ 3"], ...]  # the triples of the lines it has read
    counts: Int[Tensor, "processes splits"]  # of the triples that each has read


def read_share(files: Files, workers: Workers, block: int = lines.LONGEST) -> Share:
    """Read train, valid and test with all processes, so many bytes at a time."""
    entities, relations = _Numbers(workers), _Numbers(workers)
    read = [[np.empty((0, 3), np.int32)] for _ in files]
    for part in _rounds(files, workers, block):
        read[part.split].append(part.numbers(entities, relations))
    splits = [np.concatenate(parts) for parts in read]
    read.clear()
    counts = torch.zeros(workers.size, len(files), dtype=torch.long)
    counts[workers.rank] = torch.tensor([len(split) for split in splits])
    counts = workers.total(counts)
    for (path, _), triples in zip(files, counts.sum(0).tolist(), strict=True):
        if not triples:
            raise DataError(f"{path}: no triples; each line should hold head, relation and tail")
    vocabularies = entities.names(), relations.names()
    for split in splits:
        for columns, names in zip(([0, 2], [1]), vocabularies, strict=True):
            split[:, columns] = names.settled(split[:, columns])
    return Share(workers, *vocabularies, tuple(map(torch.from_numpy, splits)), counts)


@dataclass(frozen=True, eq=False)
class _Block:
    """Some lines of a split, below so many bytes of its file."""

    split: int
    start: int
    table: pa.Table

    def numbers(self, entities: "_Numbers", relations: "_Numbers") -> NDArray[np.int32]:
        """Return the lines in numbers, which those who answer for the names give them."""
        heads, tails = self._numbered(("head", "tail"), entities).reshape(2, -1)
        return np.stack([heads, self._numbered(("relation",), relations), tails], axis=1)

    def _numbered(self, roles: Sequence[str], numbers: "_Numbers") -> NDArray[np.int32]:
        """Number the cells of columns.

        The places of names are in the order in which one process numbers them: split by split, column by
        column, line by line. A row has a byte at least, so none of the next block is before one of this.
        """
        names, cells = numbered([self.table[role] for role in roles])
        firsts = np.flatnonzero(np.diff(np.maximum.accumulate(cells.numpy()), prepend=-1))
        column, row = np.divmod(firsts, max(1, self.table.num_rows))
        places = (self.split * len(roles) + column) * _COLUMN + self.start + row
        return numbers.of(names, places).take(cells.numpy())


_NOTHING = _Block(0, 0, encoded(pa.table({role: pa.array([], pa.string()) for role in ROLES})))


def _rounds(files: Files, workers: Workers, size: int) -> Iterator[_Block]:
    """Yield a block in each process for as long as one has any left; if one cannot be read, all fail."""
    blocks, found = _blocks(files, workers, size), list[_Block]()
    while True:
        found.clear()
        workers.together(lambda: found.extend(islice(blocks, 1)))
        if workers.least(not found):
            return
        yield found[0] if found else _NOTHING


def _blocks(files: Files, workers: Workers, size: int) -> Iterator[_Block]:
    for split, (path, form) in enumerate(files):
        try:
            for start, piece in _pieces(path, form, workers, size):
                yield _Block(split, start, read_text(path, form, piece))
        except OSError as error:
            raise lines.unreadable(path, error) from None


def _pieces(path: Path, form: Form, workers: Workers, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that start in this process's part of a file, with the number of bytes before them."""
    with path.open("rb") as file:
        for _ in range(form.skip):
            file.readline()
        top, end = file.tell(), path.stat().st_size
        cuts = [top + (end - top) * i // workers.size for i in (workers.rank, workers.rank + 1)]
        if cuts[0] > top:
            file.seek(cuts[0] - 1)
            while (rest := file.readline(lines.LONGEST)) and not rest.endswith(b"\n"):
                pass
        while (start := file.tell()) < cuts[1] and (piece := file.read(min(size, cuts[1] - start))):
            if not piece.endswith(b"\n"):
                piece += file.readline(lines.LONGEST)
            if len(piece) - (piece.rfind(b"\n", 0, -1) + 1) > lines.LONGEST:
                raise next(text_problems(path, form))
            if start and piece.startswith(_BOM):  # one is passed over as a mark, even in the midst of a file
                piece = _BOM + piece
            yield start, piece


class _Numbers:
    """Numbers of names, given as they come by those who answer for them."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._known: dict[bytes, int] = {}  # for which this process answers
        self._firsts = np.empty(0, np.int64)  # where each of them occurs first

    def of(self, names: pa.Array, places: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the numbers of names that occur at these places."""
        messages, order = _dealt(names.cast(pa.binary()), places, self._workers.size)
        met = [self._met(_unpacked(message)) for message in self._workers.exchange(messages)]
        answers = [np.frombuffer(answer, np.int32) for answer in self._workers.exchange(met)]
        numbers = np.empty(len(names), np.int32)
        numbers[order] = np.concatenate([x * self._workers.size + owner for owner, x in enumerate(answers)])
        return numbers

    def _met(self, table: pa.Table) -> bytes:
        known, names = self._known, table["name"].to_numpy()
        own = np.fromiter((known.setdefault(name, len(known)) for name in names), np.int32, len(names))
        new = np.full(len(known) - len(self._firsts), np.iinfo(np.int64).max)
        self._firsts = np.append(self._firsts, new)
        np.minimum.at(self._firsts, own, table["first"].to_numpy())
        return own.tobytes()

    def names(self) -> Names:
        """Return all names with their ids: how many first places, of whatever process, are before theirs."""
        order = np.argsort(self._firsts)
        firsts = self._firsts[order]
        ids, count = np.zeros(len(firsts), np.int32), 0
        for _, theirs in _in_turn(self._workers, firsts):
            ids += np.searchsorted(theirs, firsts).astype(np.int32)
            count += len(theirs)
        by_number = np.empty_like(ids)
        by_number[order] = ids
        held = pa.array(self._known.keys(), pa.large_binary()).cast(pa.large_string()).take(order)
        return Names(self._workers, held, ids, by_number, count, *self._spaced())

    def _spaced(self) -> tuple[int, int]:
        """Count names that begin or end with a space, and those of them that are there without it."""
        trimmed = [x for name in self._known if (x := name.decode().strip().encode()) != name]
        messages, _ = _dealt(pa.array(trimmed, pa.binary()), np.zeros(len(trimmed)), self._workers.size)
        asked = [_unpacked(message)["name"].to_pylist() for message in self._workers.exchange(messages)]
        twice = sum(name in self._known for names in asked for name in names)
        spaced, twice = self._workers.total(torch.tensor([len(trimmed), twice])).tolist()
        return spaced, twice


def _in_turn(workers: Workers, mine: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield every process with its array, so that one of another is held here at a time."""
    for step in range(workers.size):
        to, source = (workers.rank + step) % workers.size, (workers.rank - step) % workers.size
        messages = [mine.tobytes() if i == to else b"" for i in range(workers.size)]
        yield source, np.frombuffer(workers.exchange(messages)[source], mine.dtype)


def _dealt(names: pa.Array, places: NDArray[Any], size: int) -> tuple[list[bytes], NDArray[np.int64]]:
    """Return a message to each who answers for names, as checksums say; and the order of names in them."""
    owners = np.fromiter(map(zlib.crc32, names.to_numpy(zero_copy_only=False)), np.int64, len(names)) % size
    order = np.argsort(owners, kind="stable")
    ends = np.searchsorted(owners[order], np.arange(size + 1))
    table = pa.table({"name": names, "first": places}).take(order)
    return [_packed(table[start:end]) for start, end in pairwise(ends.tolist())], order


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpacked(message: bytes) -> pa.Table:
    return pa.ipc.open_stream(message).read_all()
