"""Paths of training facts, and how reliable their patterns are."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from modulekge.data.dataset import Dataset
from modulekge.data.filter_index import FilterIndex
from modulekge.shapes import Ids, Triples

Pairs = Int[Tensor, "pairs 2"]  # of entities
Pattern = tuple[int, ...]  # relations one after another; r + |R| walks r from tail to head

Step = tuple[int, int, int]  # from an entity by a relation to another
Walk = tuple[Step, ...]

_MOST_FACTS = 200  # of an entity, followed in search of paths
_STARTS = 2000  # facts from which the pairs of a pattern are walked
_STEPS = 20_000  # facts looked at in one step of a pattern
_LEAST = 5  # pairs below which a share says nothing


@dataclass(frozen=True)
class Evidence:
    """Of the pairs that a pattern joins, the share that a relation joins too."""

    share: float
    chance: float  # the same with the tails of the pairs exchanged among them
    pairs: int  # that were looked at

    @property
    def convincing(self) -> bool:
        """At least 5 pairs, and at most half of the misses that chance leaves."""
        return self.pairs >= _LEAST and 1 - self.share <= (1 - self.chance) / 2

    @property
    def cautious(self) -> float:
        """The share as if 5 pairs more had been looked at and missed."""
        return self.share * self.pairs / (self.pairs + _LEAST)


@dataclass(frozen=True, eq=False)
class Walks:
    """The training facts of a graph, walked either way. Samples are drawn alike every time."""

    dataset: Dataset

    @cached_property
    def known(self) -> FilterIndex:
        """The answers in train to each question (entity, relation), reciprocals included."""
        return FilterIndex.of(self.dataset.questions("train"), self.dataset.n_relations_with_inverses)

    @cached_property
    def _by_relation(self) -> tuple[Pairs, list[int]]:
        """The pairs of train ordered by relation, and where those of each relation end."""
        questions = self.dataset.questions("train")
        order = torch.argsort(questions[:, 1], stable=True)
        counts = torch.bincount(questions[:, 1], minlength=self.dataset.n_relations_with_inverses)
        return questions[order][:, [0, 2]], counts.cumsum(0).tolist()

    @cached_property
    def _by_entity(self) -> tuple[Triples, Int[Tensor, " entities"]]:
        """The questions of train ordered by their heads, and where those of each entity end."""
        questions = self.dataset.questions("train")
        counts = torch.bincount(questions[:, 0], minlength=len(self.dataset.entities))
        return questions[torch.argsort(questions[:, 0], stable=True)], counts.cumsum(0)

    def around(self, entity: int) -> Triples:
        """Return the questions of train that start at an entity: its facts, walked away from it."""
        questions, ends = self._by_entity
        return questions[int(ends[entity - 1]) if entity else 0 : int(ends[entity])]

    def pairs(self, relation: int) -> Pairs:
        """Return the pairs (head, tail) that train joins by a relation."""
        ordered, ends = self._by_relation
        return ordered[ends[relation - 1] if relation else 0 : ends[relation]]

    def joined(self, pattern: Pattern) -> Pairs:
        """Return distinct pairs of two entities that a pattern joins; of many a sample."""
        pairs = sample(self.pairs(pattern[0]), _STARTS)
        for relation in pattern[1:]:
            asked = torch.full((len(pairs),), relation)
            counts = self.known.counts(pairs[:, 1], asked)
            pairs = pairs[counts.cumsum(0) <= _STEPS]
            rows, tails = self.known.of_questions(pairs[:, 1], asked[: len(pairs)])
            pairs = sample(self._distinct(pairs[rows, 0], tails), _STARTS)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        return self._distinct(pairs[:, 0], pairs[:, 1])

    def _distinct(self, heads: Ids, tails: Ids) -> Pairs:
        """Return each pair once, ordered: as one number, for rows are much slower to sort."""
        n = len(self.dataset.entities)
        keys = (heads * n + tails).unique()
        return torch.stack([keys // n, keys % n], 1)

    def holds(self, pairs: Pairs, relation: int) -> Bool[Tensor, " pairs"]:
        """Say which pairs train joins by a relation."""
        asked = torch.full((len(pairs),), relation)
        return self.known.among(pairs[:, 0], asked, pairs[:, 1:]).squeeze(1)

    def evidence(self, pattern: Pattern, relation: int, without: tuple[int, int] | None = None) -> Evidence:
        """Count how often a relation joins what a pattern joins, leaving out the pair ``without``."""
        pairs = self.joined(pattern)
        if without is not None:
            pairs = pairs[(pairs != torch.tensor(without)).any(1)]
        if len(pairs) == 0:
            return Evidence(0.0, 0.0, 0)
        exchanged = torch.stack([pairs[:, 0], sample(pairs[:, 1], len(pairs))], 1)
        exchanged = exchanged[exchanged[:, 0] != exchanged[:, 1]]
        chance = float(self.holds(exchanged, relation).double().mean()) if len(exchanged) else 0.0
        return Evidence(float(self.holds(pairs, relation).double().mean()), chance, len(pairs))

    def paths(self, head: int, relation: int, tail: int) -> dict[Pattern, list[Walk]]:
        """Return the walks of one to three facts from head to tail, by pattern, the shortest first.

        At most 200 facts of an entity are followed. No walk uses the fact (head, relation, tail) itself,
        or passes head or tail on its way; from an entity to itself none leads.
        """
        if head == tail:
            return {}
        first = self._steps(head, relation, head, tail)
        last = self._steps(tail, relation, head, tail)
        homes: dict[int, list[int]] = {}  # relations that lead on to the tail, by where they start
        for _, r, e in last:
            homes.setdefault(e, []).append(self._turned(r))
        found: dict[Pattern, list[Walk]] = {}

        def add(*walk: Step) -> None:
            found.setdefault(tuple(r for _, r, _ in walk), []).append(walk)

        middles = []
        for step in first:
            if step[2] == tail:
                add(step)
            elif step[2] != head:
                middles.append(step)
        for step in middles:
            for r in homes.get(step[2], ()):
                add(step, (step[2], r, tail))
        ways = {e: self._steps(e, relation, head, tail) for e in {step[2] for step in middles}}
        for step in middles:
            for way in ways[step[2]]:
                if way[2] not in (head, tail, step[2]):
                    for r in homes.get(way[2], ()):
                        add(step, way, (way[2], r, tail))
        return found

    def _steps(self, entity: int, relation: int, head: int, tail: int) -> list[Step]:
        """Return steps away from an entity, without the fact itself, walked either way."""
        own = {(head, relation, tail), (tail, self._turned(relation), head)}
        steps = map(tuple, sample(self.around(entity), _MOST_FACTS).tolist())
        return [step for step in steps if step not in own]

    def _turned(self, relation: int) -> int:
        return (relation + len(self.dataset.relations)) % self.dataset.n_relations_with_inverses

    def mutual(self, first: int, second: int) -> Evidence:
        """Return the weaker of what two relations say for each other: of equal ones both are strong."""
        both = self.evidence((first,), second), self.evidence((second,), first)
        return min(both, key=lambda evidence: evidence.share)


def sample(rows: Tensor, count: int) -> Tensor:
    """Return at most so many rows, in an order drawn alike every time."""
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    return rows[order[:count]]
