"""Known answers: for each question (head, relation), every tail that makes a known triple."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from modulekge.shapes import Ids, Triples


@dataclass(frozen=True, eq=False)
class FilterIndex:
    """Compressed rows: question ``keys[i]`` has the answers ``tails[starts[i] : starts[i + 1]]``."""

    n_relations: int
    keys: Int[Tensor, " questions"]  # head * n_relations + relation, ascending
    starts: Int[Tensor, " questions_plus_1"]
    tails: Int[Tensor, " answers"]

    @classmethod
    def of(cls, triples: Triples, n_relations: int) -> "FilterIndex":
        """Sort triples into questions and answers; a repeated triple counts once."""
        heads, relations, tails = triples.unbind(1)
        keys = heads * n_relations + relations
        order = torch.argsort(tails, stable=True)
        order = order[torch.argsort(keys[order], stable=True)]
        keys, tails = keys[order], tails[order]
        fresh = torch.ones_like(keys, dtype=torch.bool)
        fresh[1:] = (keys[1:] != keys[:-1]) | (tails[1:] != tails[:-1])
        unique, counts = torch.unique_consecutive(keys[fresh], return_counts=True)
        starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return cls(n_relations, unique, starts, tails[fresh])

    def of_questions(
        self, heads: Ids, relations: Ids
    ) -> tuple[Int[Tensor, " answers"], Int[Tensor, " answers"]]:
        """Return (row, tail) of each known answer to each question, rows counted in this batch."""
        if len(self.keys) == 0:
            return heads.new_zeros(0), heads.new_zeros(0)
        place, counts = self._places(heads, relations)
        return _owners(counts), self.tails[_items(self.starts[place], counts)]

    def counts(self, heads: Ids, relations: Ids) -> Int[Tensor, " b"]:
        """Return how many known answers each question has."""
        return self._places(heads, relations)[1] if len(self.keys) else torch.zeros_like(heads)

    def among(self, heads: Ids, relations: Ids, tails: Int[Tensor, "b k"]) -> Bool[Tensor, "b k"]:
        """Say which of the tails are known answers to the question of their row."""
        if len(self.keys) == 0:
            return torch.zeros_like(tails, dtype=torch.bool)
        place, counts = self._places(heads, relations)
        wanted = (place << 32)[:, None] | tails
        found = torch.searchsorted(self._codes, wanted).clamp(max=len(self._codes) - 1)
        return (self._codes[found] == wanted) & (counts > 0)[:, None]

    def among_shared(
        self, heads: Ids, relations: Ids, tails: Int[Tensor, " k"]
    ) -> tuple[Int[Tensor, " known"], Int[Tensor, " known"]]:
        """Return (row, column) of each of the same tails that is a known answer to the question of a row.

        Of each question once, known answers are looked up in a table of all entities that says which are
        among the tails: the answers of a hub are many, and those found are few.
        """
        if len(self.keys) == 0:
            return heads[:0], heads[:0]
        asked, rows_of = torch.unique(heads * self.n_relations + relations, return_inverse=True)
        place, counts = self._places(asked // self.n_relations, asked % self.n_relations)
        known = self.tails.index_select(0, _items(self.starts[place], counts))
        drawn, order_of, times = torch.unique(tails, return_inverse=True, return_counts=True)
        inside = drawn[drawn < self._beyond]
        number = torch.full((self._beyond,), -1, dtype=torch.int32, device=tails.device)
        number[inside] = torch.arange(len(inside), dtype=torch.int32, device=tails.device)
        found = number.index_select(0, known)
        hit = (found >= 0).nonzero()[:, 0]
        entity = found[hit].long()
        owner = torch.searchsorted(counts.cumsum(0), hit, right=True)
        # an entity that was drawn twice has two columns, and a question that is asked twice has two rows
        owner = owner.repeat_interleave(times[entity])
        columns = order_of.argsort()[_items((times.cumsum(0) - times)[entity], times[entity])]
        each = owner.bincount(minlength=len(asked))
        rows = each[rows_of]
        return _owners(rows), columns[_items((each.cumsum(0) - each)[rows_of], rows)]

    @cached_property
    def _beyond(self) -> int:
        """The first number that no answer has, nor any after it."""
        return int(self.tails.max()) + 1 if len(self.tails) else 0

    @cached_property
    def _codes(self) -> Int[Tensor, " answers"]:
        """Each answer as one number, ascending: where its question stands, then its tail."""
        places = torch.arange(len(self.keys), device=self.keys.device)
        return (torch.repeat_interleave(places, self.starts.diff()) << 32) | self.tails

    def _places(self, heads: Ids, relations: Ids) -> tuple[Int[Tensor, " b"], Int[Tensor, " b"]]:
        """Return where each question stands, and its number of answers: 0 where it stands nowhere."""
        wanted = heads * self.n_relations + relations
        place = torch.searchsorted(self.keys, wanted).clamp(max=len(self.keys) - 1)
        return place, (self.starts[place + 1] - self.starts[place]) * (self.keys[place] == wanted)

    def to(self, device: torch.device) -> "FilterIndex":
        """Return the same answers on a device."""
        return FilterIndex(
            self.n_relations, self.keys.to(device), self.starts.to(device), self.tails.to(device)
        )


def _owners(counts: Int[Tensor, " rows"]) -> Int[Tensor, " items"]:
    """Return the row of each item, where each row has so many."""
    return torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)


def _items(starts: Int[Tensor, " rows"], counts: Int[Tensor, " rows"]) -> Int[Tensor, " items"]:
    """Return the places of the items of rows that start there and have so many."""
    places = torch.repeat_interleave(starts - counts.cumsum(0) + counts, counts)
    return places.add_(torch.arange(len(places), device=places.device))
