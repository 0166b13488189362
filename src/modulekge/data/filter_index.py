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
        rows = torch.repeat_interleave(torch.arange(len(heads), device=heads.device), counts)
        within = torch.arange(len(rows), device=heads.device) - (counts.cumsum(0) - counts)[rows]
        return rows, self.tails[self.starts[place][rows] + within]

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
    ) -> tuple[Bool[Tensor, "q k"], Int[Tensor, " b"]]:
        """Say which of the same tails are known answers to each question; return a row for each question.

        Questions that are asked more than once share a row. The few known answers are looked up among the
        tails, and not the many tails among the known answers.
        """
        asked, rows_of = torch.unique(heads * self.n_relations + relations, return_inverse=True)
        rows, known = self.of_questions(asked // self.n_relations, asked % self.n_relations)
        tails, order = tails.sort()
        first = torch.searchsorted(tails, known)
        counts = torch.searchsorted(tails, known, right=True) - first
        hit = counts.nonzero()[:, 0]  # a tail that was drawn twice is hit twice
        counts, first = counts[hit], first[hit]
        within = torch.arange(int(counts.sum()), device=tails.device)
        within -= torch.repeat_interleave(counts.cumsum(0) - counts, counts)
        mask = torch.zeros(len(asked), len(tails), dtype=torch.bool, device=tails.device)
        places = torch.repeat_interleave(first, counts) + within
        mask[torch.repeat_interleave(rows[hit], counts), order[places]] = True
        return mask, rows_of

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
