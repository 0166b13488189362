"""A graph read by several processes: each reads a part of the text and answers for a part of the names.

The ids are those that one process gives. The text is read twice, in blocks: first for the names and where
each occurs first, which says its id, and then for the triples.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
_ENDS = ("head", "tail")
_NAME = pa.large_string()  # names of one process may be more than 2 GiB
_COLUMN = 1 << 60  # bytes that no file has: so far apart are the places of two columns
_FEW = 1 << 16  # names that are not worth joining to those held
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, eq=False)
class Names:
    """The names for which this process answers, by their ids; others answer for the rest."""

    workers: Workers
    held: pa.Array
    ids: NDArray[np.int32]  # ascending
    count: int  # of all names

    def find(self, names: pa.Array) -> NDArray[np.int32]:
        """Return the ids of names, whoever answers for them; -1 where nobody does."""
        messages, order = _dealt(pa.table({"name": names}), self.workers.size)
        asked = [_unpacked(message)["name"] for message in self.workers.exchange(messages)]
        places = pc.index_in(pa.chunked_array([c for a in asked for c in a.chunks], _NAME), self.held)
        ids = np.append(self.ids, np.int32(-1))[places.fill_null(-1).to_numpy()]
        bounds = np.cumsum([len(part) for part in asked])[:-1]
        answers = self.workers.exchange([part.tobytes() for part in np.split(ids, bounds)])
        found = np.empty(len(names), np.int32)
        found[order] = np.frombuffer(b"".join(answers), np.int32)
        return found

    def between(self, start: int, stop: int) -> list[str]:
        """Return the names of some ids in the first process, which asks the others; elsewhere none."""
        some = slice(*np.searchsorted(self.ids, [start, stop]))
        mine = _packed(pa.table({"id": self.ids[some], "name": self.held[some]}))
        found = self.workers.exchange([mine] + [b""] * (self.workers.size - 1))
        if not self.workers.leads:
            return []
        names: list[str] = pa.concat_tables(map(_unpacked, found)).sort_by("id")["name"].to_pylist()
        return names

    def spaced(self) -> tuple[int, int]:
        """Return how many names begin or end with a space, and how many of them are there without it too."""
        trimmed = pc.utf8_trim_whitespace(self.held)
        trimmed = trimmed.filter(pc.not_equal(trimmed, self.held))
        found = (self.find(trimmed) >= 0).sum()
        spaced, twice = self.workers.total(torch.tensor([len(trimmed), int(found)])).tolist()
        return spaced, twice


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
    entities, relations = _Collection(workers), _Collection(workers)
    counts = torch.zeros(workers.size, len(files), dtype=torch.long)
    for part in _rounds(files, workers, block):
        entities.add(*part.names(_ENDS))
        relations.add(*part.names(("relation",)))
        counts[workers.rank, part.split] += part.table.num_rows
    counts = workers.total(counts)
    for (path, _), triples in zip(files, counts.sum(0).tolist(), strict=True):
        if not triples:
            raise DataError(f"{path}: no triples; each line should hold head, relation and tail")
    numbers = entities.numbered(), relations.numbered()
    splits = [[np.empty((0, 3), np.int32)] for _ in files]
    for part in _rounds(files, workers, block):
        splits[part.split].append(part.triples(*numbers))
    triples = tuple(torch.from_numpy(np.concatenate(split)) for split in splits)
    workers.together(lambda: _check_same(files, triples, counts[workers.rank]))
    return Share(workers, *numbers, triples, counts)


def _check_same(files: Files, splits: Sequence[Tensor], counts: Tensor) -> None:
    for (path, _), triples, count in zip(files, splits, counts.tolist(), strict=True):
        if len(triples) != count or (triples < 0).any():
            raise DataError(f"{path}: changed while it was read; begin again")


@dataclass(frozen=True, eq=False)
class _Block:
    """Some lines of a split, below so many bytes of its file."""

    split: int
    start: int
    table: pa.Table

    def names(self, roles: Sequence[str]) -> tuple[pa.Array, NDArray[np.int64]]:
        """Return the names of columns, and the place where each stands first.

        Places of all blocks are in the order in which one process numbers names: split by split, column by
        column, line by line. A row has a byte at least, so none of the next block is before one of this.
        """
        names, cells = numbered([self.table[role] for role in roles])
        firsts = np.flatnonzero(np.diff(np.maximum.accumulate(cells.numpy()), prepend=-1))
        column, row = np.divmod(firsts, max(1, self.table.num_rows))
        return names, (self.split * len(roles) + column) * _COLUMN + self.start + row

    def triples(self, entities: Names, relations: Names) -> NDArray[np.int32]:
        """Return the lines in ids."""
        names, cells = numbered([self.table[role] for role in _ENDS])
        heads, tails = entities.find(names)[cells.numpy()].reshape(2, -1)
        names, cells = numbered([self.table["relation"]])
        return np.stack([heads, relations.find(names)[cells.numpy()], tails], axis=1)


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
            raise DataError(f"{path}: cannot be read ({error}); mend the file or its permissions") from None


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


class _Collection:
    """Names that any process has met and for which this one answers, each with its first place."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._held = pa.table({"name": pa.array([], _NAME), "first": pa.array([], pa.int64())})
        self._new: list[pa.Table] = []

    def add(self, names: pa.Array, firsts: NDArray[np.int64]) -> None:
        """Send names to those that answer for them."""
        messages, _ = _dealt(pa.table({"name": names, "first": firsts}), self._workers.size)
        self._new += map(_unpacked, self._workers.exchange(messages))
        if sum(map(len, self._new)) > max(_FEW, len(self._held)):
            self._join()

    def _join(self) -> None:
        table = pa.concat_tables([self._held, *self._new])
        cells = table["name"].dictionary_encode().combine_chunks()
        firsts = np.full(len(cells.dictionary), np.iinfo(np.int64).max)
        np.minimum.at(firsts, cells.indices.to_numpy(), table["first"].to_numpy())
        self._held, self._new = pa.table({"name": cells.dictionary, "first": firsts}), []

    def numbered(self) -> Names:
        """Return the names with their ids: how many first places of any process are before theirs."""
        self._join()
        held, rank, size = self._held.sort_by("first"), self._workers.rank, self._workers.size
        firsts = held["first"].to_numpy()
        ids, count = np.zeros(len(firsts), np.int64), 0
        for step in range(size):  # to one after the other, so that the places of one other are here at a time
            messages = [firsts.tobytes() if i == (rank + step) % size else b"" for i in range(size)]
            others = np.frombuffer(b"".join(self._workers.exchange(messages)), np.int64)
            ids += np.searchsorted(others, firsts)
            count += len(others)
        return Names(self._workers, held["name"].combine_chunks(), ids.astype(np.int32), count)


def _dealt(table: pa.Table, size: int) -> tuple[list[bytes], NDArray[np.int64]]:
    """Return the rows of each process as a message, by a checksum of names; and the order of the rows."""
    names = table["name"].cast(_NAME)
    sums = map(zlib.crc32, names.cast(pa.large_binary()).to_numpy())
    owners = np.fromiter(sums, np.int64, len(names)) % size
    order = np.argsort(owners, kind="stable")
    ends = np.searchsorted(owners[order], np.arange(size + 1))
    dealt = table.set_column(0, "name", names).take(order)
    return [_packed(dealt[start:end]) for start, end in pairwise(ends.tolist())], order


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpacked(message: bytes) -> pa.Table:
    return pa.ipc.open_stream(message).read_all()
