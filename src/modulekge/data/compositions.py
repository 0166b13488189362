r"""Relations that follow from two others: $r(x, z)$ where $r_1(x, y)$ and $r_2(y, z)$ for some $y$."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from modulekge.data.dataset import Dataset
from modulekge.data.filter_index import FilterIndex

_RELATIONS = 256  # those with the most pairs are looked at
_PAIRS = 300  # of a relation, drawn to see which two others join them
_HUB = 2000  # facts of an entity from which on it is not walked from
_STEPS = 20_000  # facts walked over in one step for one relation, so that no graph takes long
_CANDIDATES = 4  # patterns of two relations that are tried for one, those that cover most first
_LEAST = 20  # pairs from which on a share says something

Pairs = Int[Tensor, "pairs 2"]


@dataclass(frozen=True)
class Composition:
    """Two relations, walked one after the other, that join what a third one joins."""

    relation: str
    path: tuple[str, str]  # the inverse of r as "inverse of r"
    share: float  # of the pairs that the path joins, those that the relation joins too
    covered: float  # of the pairs of the relation, those that the path joins
    pairs: int  # that were drawn for the smaller of the two samples


def compositions(dataset: Dataset, least: float = 0.5) -> tuple[Composition, ...]:
    """Return relations of which a path of two others joins most pairs and little else, the surest first.

    All splits count. Shares are those of samples, drawn alike every time: up to 300 pairs of each of the 256
    most frequent relations, without those that join two hubs, and the pairs that a path gives from 300 of its
    first facts. A path counts if it joins ``least`` of the relation's pairs, the relation ``least`` of the
    path's, and misses less than half of what it would miss by chance.
    """
    walks = _Walks(dataset.known, len(dataset.entities))
    found = []
    for relation in walks.frequent(len(dataset.relations)):
        tried = [
            Composition(dataset.relations.label(relation), names, share, covered, pairs)
            for path, covered, sampled in walks.covering(relation, least)
            for share, chance, joined in [walks.followed(path, relation)]
            if share >= least and 2 * (1 - share) < 1 - chance
            for names in [(_named(dataset, path[0]), _named(dataset, path[1]))]
            if (pairs := min(sampled, joined)) >= _LEAST
        ]
        found += sorted(tried, key=_surety)[:1]
    return tuple(sorted(found, key=_surety))


def _surety(found: Composition) -> float:
    return -found.share * found.covered


def _named(dataset: Dataset, relation: int) -> str:
    inverse, place = divmod(relation, len(dataset.relations))
    return f"inverse of {dataset.relations.label(place)}" if inverse else dataset.relations.label(place)


class _Walks:
    """Facts walked either way: relation $q + |R|$ leads from tail to head of $q$."""

    def __init__(self, known: FilterIndex, entities: int) -> None:
        self.known, self.entities = known, entities
        keys = torch.repeat_interleave(known.keys, known.starts.diff())
        proper = keys // known.n_relations != known.tails  # a loop is a step that leads nowhere
        self.heads, self.relations = keys[proper] // known.n_relations, keys[proper] % known.n_relations
        self.tails = known.tails[proper]
        self.degrees = torch.bincount(self.heads, minlength=entities)
        self.starts = self.degrees.cumsum(0) - self.degrees
        self.by_relation = torch.argsort(self.relations, stable=True)
        self.ends = torch.bincount(self.relations, minlength=known.n_relations).cumsum(0).tolist()
        codes = self.heads * entities + self.tails
        self.codes, order = codes.sort(stable=True)
        self.joining = self.relations[order]  # the relations from head to tail of each code

    def pairs(self, relation: int, count: int) -> Pairs:
        """Return as many pairs of a relation, drawn alike every time."""
        places = self.by_relation[self.ends[relation - 1] if relation else 0 : self.ends[relation]]
        places = places[torch.randperm(len(places), generator=torch.Generator().manual_seed(0))[:count]]
        return torch.stack([self.heads[places], self.tails[places]], 1)

    def frequent(self, relations: int) -> list[int]:
        """Return the relations with the most pairs that have enough of them."""
        counts = torch.bincount(self.relations, minlength=self.known.n_relations)[:relations]
        most = counts.argsort(descending=True, stable=True)[:_RELATIONS]
        return most[counts[most] >= _LEAST].tolist()

    def covering(self, relation: int, least: float) -> Iterator[tuple[tuple[int, int], float, int]]:
        """Yield paths that join so many of a relation's pairs, what share they join, and of how many."""
        pairs, n = self.pairs(relation, _PAIRS), self.known.n_relations
        turned = self.degrees[pairs[:, 0]] > self.degrees[pairs[:, 1]]  # walk from where there is less to see
        starts, goals = torch.where(turned[:, None], pairs.flip(1), pairs).unbind(1)
        counts = self.degrees[starts]
        few = counts <= _HUB
        few[few.clone()] = counts[few].cumsum(0) <= _STEPS
        starts, goals, turned = starts[few], goals[few], turned[few]
        rows, steps = _expanded(self.starts[starts], self.degrees[starts])
        wanted = self.tails[steps] * self.entities + goals[rows]
        low, high = torch.searchsorted(self.codes, wanted), torch.searchsorted(self.codes, wanted, right=True)
        met = torch.zeros(len(starts), dtype=torch.long).index_add(0, rows, high - low)
        sampled = int((met.cumsum(0) <= _STEPS).sum())
        if sampled < _LEAST:
            return
        rows, steps, low, high = (part[rows < sampled] for part in (rows, steps, low, high))
        middles, places = _expanded(low, high - low)
        first, second, rows = self.relations[steps[middles]], self.joining[places], rows[middles]
        back = turned[rows]
        first, second = (
            torch.where(back, (second + n // 2) % n, first),
            torch.where(back, (first + n // 2) % n, second),
        )
        others = (first % (n // 2) != relation) & (second % (n // 2) != relation)
        distinct = ((rows * n + first) * n + second)[others].unique() % (n * n)
        paths, counts = distinct.unique(return_counts=True)
        for place in counts.argsort(descending=True, stable=True)[:_CANDIDATES].tolist():
            if counts[place] >= least * sampled:
                yield divmod(int(paths[place]), n), int(counts[place]) / sampled, sampled

    def followed(self, path: tuple[int, int], relation: int) -> tuple[float, float, int]:
        """Return the share of a path's pairs that a relation joins, the share by chance, and of how many."""
        pairs = self.pairs(path[0], _PAIRS)
        counts = self.known.counts(pairs[:, 1], torch.full((len(pairs),), path[1]))
        pairs = pairs[counts.cumsum(0) <= _STEPS]
        rows, tails = self.known.of_questions(pairs[:, 1], torch.full((len(pairs),), path[1]))
        proper = pairs[rows, 0] != tails
        codes = (pairs[rows, 0] * self.entities + tails)[proper].unique()
        joined = torch.stack([codes // self.entities, codes % self.entities], 1)
        order = torch.randperm(len(joined), generator=torch.Generator().manual_seed(0))
        exchanged = torch.stack([joined[:, 0], joined[order, 1]], 1)
        exchanged = exchanged[exchanged[:, 0] != exchanged[:, 1]]
        return self._share(joined, relation), self._share(exchanged, relation), len(joined)

    def _share(self, pairs: Pairs, relation: int) -> float:
        """Return the share of pairs that a relation joins."""
        asked = torch.full((len(pairs),), relation)
        held = self.known.among(pairs[:, 0], asked, pairs[:, 1:])
        return float(held.double().mean()) if len(pairs) else 0.0


def _expanded(
    starts: Int[Tensor, " rows"], counts: Int[Tensor, " rows"]
) -> tuple[Int[Tensor, " places"], Int[Tensor, " places"]]:
    """Return the row, and the place, of each of ``counts`` places that follow the start of a row."""
    rows = torch.repeat_interleave(torch.arange(len(starts)), counts)
    within = torch.arange(len(rows)) - (counts.cumsum(0) - counts)[rows]
    return rows, starts[rows] + within
