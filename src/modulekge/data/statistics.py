"""What a graph is like: sizes, entities never seen in train, leaks, cardinalities of relations."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from modulekge.data.benchmarks import SPLITS, Split
from modulekge.data.dataset import Dataset
from modulekge.data.splits import without_repeats
from modulekge.shapes import Triples

Category = Literal["1-1", "1-N", "N-1", "N-N"]
CATEGORIES: tuple[Category, ...] = ("1-1", "1-N", "N-1", "N-N")
_MANY = 1.5  # more answers than this on average count as N (Bordes et al. 2013)


@dataclass(frozen=True)
class RelationRow:
    """One relation: how often it occurs, and how many answers its questions have in train."""

    relation: str
    triples: dict[str, int]
    tails_per_head: float
    heads_per_tail: float
    category: Category


@dataclass(frozen=True)
class Statistics:
    """What there is to know of a graph before training on it."""

    name: str
    entities: int
    relations: int
    triples: dict[str, int]
    unseen_entities: dict[str, int]  # of a split, not in train
    unseen_triples: dict[str, int]
    self_loops: dict[str, int]
    duplicates: dict[str, int]  # repeated triples within a split
    shared_with_train: dict[str, int]  # triples of valid and test that train holds too
    leaks: dict[str, int]  # test triples (h, r, t) whose pair stands in train in another way
    per_relation: tuple[RelationRow, ...]
    notes: tuple[str, ...]  # what was left out when the graph was read


def statistics_of(dataset: Dataset) -> Statistics:
    """Count everything."""
    held: tuple[Split, ...] = ("valid", "test")
    unseen = {s: ~dataset.seen[dataset[s][:, [0, 2]]] for s in held}
    train = _keys(dataset, dataset.train)
    return Statistics(
        name=dataset.name,
        entities=len(dataset.entities),
        relations=len(dataset.relations),
        triples={s: len(dataset[s]) for s in SPLITS},
        unseen_entities={s: len(dataset[s][:, [0, 2]][unseen[s]].unique()) for s in held},
        unseen_triples={s: int(unseen[s].any(1).sum()) for s in held},
        self_loops={s: int((dataset[s][:, 0] == dataset[s][:, 2]).sum()) for s in SPLITS},
        duplicates={s: len(dataset[s]) - len(_keys(dataset, dataset[s]).unique()) for s in SPLITS},
        shared_with_train={s: int(torch.isin(_keys(dataset, dataset[s]), train).sum()) for s in held},
        leaks=_leaks(dataset),
        per_relation=_relation_rows(dataset),
        notes=dataset.notes,
    )


def cardinalities(dataset: Dataset) -> tuple[Float[Tensor, " r"], Float[Tensor, " r"]]:
    """Return tails per head and heads per tail of each relation, averaged over its train triples' ends."""
    heads, relations, tails = without_repeats(dataset.train).unbind(1)
    n, n_entities = len(dataset.relations), len(dataset.entities)
    count = torch.bincount(relations, minlength=n)

    def distinct(ends: Int[Tensor, " m"]) -> Int[Tensor, " r"]:
        return torch.bincount((relations * n_entities + ends).unique() // n_entities, minlength=n)

    return count / distinct(heads).clamp(min=1), count / distinct(tails).clamp(min=1)


def categories(dataset: Dataset) -> tuple[Category, ...]:
    """Return 1-1, 1-N, N-1 or N-N for each relation."""
    tails, heads = cardinalities(dataset)
    return tuple(
        CATEGORIES[2 * (h > _MANY) + (t > _MANY)] for t, h in zip(tails.tolist(), heads.tolist(), strict=True)
    )


def _relation_rows(dataset: Dataset) -> tuple[RelationRow, ...]:
    tails, heads = cardinalities(dataset)
    counts = {s: torch.bincount(dataset[s][:, 1], minlength=len(dataset.relations)) for s in SPLITS}
    return tuple(
        RelationRow(
            dataset.relations.label(i),
            {s: int(counts[s][i]) for s in SPLITS},
            round(float(tails[i]), 2),
            round(float(heads[i]), 2),
            category,
        )
        for i, category in enumerate(categories(dataset))
    )


def _keys(dataset: Dataset, triples: Triples) -> Int[Tensor, " m"]:
    """One number per triple."""
    h, r, t = triples.unbind(1)
    return (h * len(dataset.relations) + r) * len(dataset.entities) + t


def _leaks(dataset: Dataset) -> dict[str, int]:
    h, r, t = dataset.test.unbind(1)
    n = len(dataset.entities)
    train_h, train_r, train_t = dataset.train.unbind(1)
    forward, backward = _pairs(train_h, train_t, train_r, n), _pairs(train_t, train_h, train_r, n)
    mine = h * n + t
    reverse_same = torch.isin(_keys(dataset, dataset.test.flip(1)), _keys(dataset, dataset.train)) & (h != t)
    same_other = _with_other_relation(mine, r, forward)
    reverse_other = _with_other_relation(mine, r, backward)
    return {
        "reverse, same relation": int(reverse_same.sum()),
        "reverse, other relation": int(reverse_other.sum()),
        "same pair, other relation": int(same_other.sum()),
        "any of these": int((reverse_same | same_other | reverse_other).sum()),
    }


def _pairs(
    a: Int[Tensor, " m"], b: Int[Tensor, " m"], r: Int[Tensor, " m"], n: int
) -> tuple[Int[Tensor, " p"], Int[Tensor, " p"], Int[Tensor, " p"]]:
    """Return each distinct pair of entities with the least and the greatest relation that joins it."""
    keys, place = (a * n + b).unique(return_inverse=True)
    least = torch.full_like(keys, int(r.max()) + 1).scatter_reduce_(0, place, r, "amin")
    greatest = torch.full_like(keys, -1).scatter_reduce_(0, place, r, "amax")
    return keys, least, greatest


def _with_other_relation(
    mine: Int[Tensor, " m"], r: Int[Tensor, " m"], pairs: tuple[Tensor, Tensor, Tensor]
) -> Bool[Tensor, " m"]:
    """A pair is joined by another relation than ``r`` if its least or its greatest one is not ``r``."""
    keys, least, greatest = pairs
    place = torch.searchsorted(keys, mine).clamp(max=len(keys) - 1)
    return (keys[place] == mine) & ((least[place] != r) | (greatest[place] != r))
