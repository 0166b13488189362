"""Known structures to plant: moves along a ring of entities, trees, and chance.

The facts of a family of relations come in runs. Fact ``u`` of a run is a pair of places, made by
arithmetic alone, so that any part of a graph can be made without the rest. But for chance, the last run
is what the runs before it imply.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import torch
from jaxtyping import Int
from torch import Tensor

from modulekge.shapes import Triples

Places = Int[Tensor, " u"]
Pairs = tuple[Places, Places]  # where facts start and end
LETTERS = "abc"


@dataclass(frozen=True)
class Family:
    """Relations that obey one law. Place $p$ of its ring is the entity start + stride $p$, modulo all."""

    pattern: str
    number: int
    relation: int  # the id of its first relation
    facts: int
    entities: int
    start: int = 0
    stride: int = 1
    gap: int = 0  # places that the second move of a composition spans; the factor of chance

    @property
    def row(self) -> "Pattern":
        """The pattern itself."""
        return PATTERNS[self.pattern]

    @property
    def names(self) -> tuple[str, ...]:
        """What its relations are called: the pattern, the number, and a letter where they are several."""
        letters = LETTERS[: self.row.relations] if self.row.relations > 1 else ("",)
        return tuple(f"{self.pattern}_{self.number}{letter}" for letter in letters)

    @property
    def law(self) -> str:
        """What holds between its relations."""
        return self.row.law.format(**dict(zip(LETTERS, self.names, strict=False)))

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many facts each run has; the last one takes what the others leave."""
        if self.pattern == "hierarchical":
            before = [_tree(self).middles + _tree(self).leaves]
        else:
            runs = len(self.row.runs)
            before = [ceil(self.facts / runs)] * (runs - 1)
        return *before, self.facts - sum(before)

    @property
    def implied(self) -> int:
        """How many of its facts the others imply: those of the last run."""
        return self.lengths[-1] if self.row.implies else 0

    @property
    def shifts(self) -> tuple[int, ...]:
        """By how many entities its relations move along the ring, where that is all they do."""
        return tuple(places * self.stride % self.entities for places in self.row.moves(self.gap))

    def triples(self, run: int, u: Places) -> Triples:
        """Return facts ``u`` of a run, in ids."""
        heads, tails = self.row.places(self, run, u)
        relations = torch.full_like(u, self.relation + self.row.runs[run])
        return torch.stack([self._entity(heads), relations, self._entity(tails)], dim=1)

    def _entity(self, places: Places) -> Places:
        return (self.start + self.stride * (places % self.entities)) % self.entities


@dataclass(frozen=True)
class Pattern:
    """A structure: how its facts are made, and what is known of them."""

    law: str
    runs: tuple[int, ...]  # which of its relations each run is of
    places: Callable[[Family, int, Places], Pairs]
    capacity: Callable[[int], int]  # facts that a family has when every entity takes part
    moves: Callable[[int], tuple[int, ...]] = lambda gap: ()
    implies: bool = True

    @property
    def relations(self) -> int:
        """How many relations a family has."""
        return max(self.runs) + 1


@dataclass(frozen=True)
class _Tree:
    """Places of trees of three levels: roots first, then their children, then the leaves.

    Children are to parents as squares are to their roots, so that a few parents have very many.
    """

    roots: int
    middles: int
    leaves: int

    @classmethod
    def of(cls, nodes: int) -> "_Tree":
        """Share nodes out: five children to a root and four leaves to a child, on average."""
        middles = 5 * nodes // 26
        roots = max(1, middles // 5)
        return cls(roots, middles, nodes - roots - middles)

    def above_middle(self, u: Places) -> Places:
        """Return the root of each child."""
        return (self.roots * (u / self.middles) ** 2).long()

    def above_leaf(self, u: Places) -> Places:
        """Return which child of a root each leaf belongs to."""
        return (self.middles * (u / self.leaves) ** 2).long()


def _tree(family: Family) -> _Tree:
    return _Tree.of(min(family.entities, family.facts * 26 // 45 + 3))  # 45 facts join 26 nodes


def _tree_capacity(entities: int) -> int:
    tree = _Tree.of(entities)
    return tree.middles + 2 * tree.leaves


def _symmetric(family: Family, run: int, u: Places) -> Pairs:
    pair = 2 * u, 2 * u + 1
    return pair if run == 0 else pair[::-1]


def _inverse(family: Family, run: int, u: Places) -> Pairs:
    return (u, u + 1) if run == 0 else (u + 1, u)


def _composed(family: Family, run: int, u: Places) -> Pairs:
    middle, end = u + 1, u + 1 + family.gap
    return ((u, middle), (middle, end), (u, end))[run]


def _hierarchical(family: Family, run: int, u: Places) -> Pairs:
    tree = _tree(family)
    if run == 1:
        return tree.roots + tree.middles + u, tree.above_middle(tree.above_leaf(u))
    of_leaf = tree.roots + tree.above_leaf((u - tree.middles).clamp(min=0))
    return tree.roots + u, torch.where(u < tree.middles, tree.above_middle(u), of_leaf)


def _random(family: Family, run: int, u: Places) -> Pairs:
    """A square is no move that could be learned; no fact is a loop."""
    others = family.entities - 1
    return u, u + 1 + u * u % others * family.gap % others


PATTERNS = {
    "symmetric": Pattern(
        "{a}(x, y) if {a}(y, x)", (0, 0), _symmetric, lambda n: n + n % 2, lambda gap: (1, -1)
    ),
    "inverse": Pattern(
        "{b}(y, x) if {a}(x, y)", (0, 1), _inverse, lambda n: 2 * n, lambda gap: (1, -1)
    ),
    "composed": Pattern(
        "{c}(x, z) if {a}(x, y) and {b}(y, z)", (0, 1, 2), _composed, lambda n: 3 * n,
        lambda gap: (1, -1, gap, -gap, gap + 1, -gap - 1),
    ),
    "hierarchical": Pattern("{a}(x, z) if {a}(x, y) and {a}(y, z)", (0, 0), _hierarchical, _tree_capacity),
    "random": Pattern("none", (0,), _random, lambda n: n, implies=False),
}  # fmt: skip
