"""Synthetic graphs of any size whose structure is known, made piece by piece.

Every held-out triple follows from train by a planted law, and no other entity is an equally right
answer: a perfect model has an MRR of 1, one that guesses about $\\ln n / n$.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, gcd, sqrt

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from modulekge.data.benchmarks import SPLITS, Split
from modulekge.data.synthetic.patterns import PATTERNS, Family
from modulekge.errors import ConfigError, one_of
from modulekge.shapes import Triples

STRUCTURES = tuple(name for name, pattern in PATTERNS.items() if pattern.implies)
CHUNK = 1 << 18  # triples made at a time
_LEAST_ENTITIES = 10
_LEAST_FACTS = 10  # of a relation
_TRIES = 100  # to draw moves that obey no law but those planted


@dataclass(frozen=True, eq=False)
class SyntheticGraph:
    """A graph that can be made, in ids: families of relations, and which implied facts are held out."""

    entities: int
    seed: int
    families: tuple[Family, ...]
    valid: Int[Tensor, " v"]  # places among the implied facts of all families, in order
    test: Int[Tensor, " t"]

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of the relations by id."""
        return tuple(name for family in self.families for name in family.names)

    @property
    def sizes(self) -> dict[str, int]:
        """How many triples each split has."""
        held = len(self.valid) + len(self.test)
        train = sum(family.facts for family in self.families) - held
        return dict(zip(SPLITS, (train, len(self.valid), len(self.test)), strict=True))

    def chunks(self, split: Split, rows: int = CHUNK) -> Iterator[Triples]:
        """Yield the triples of a split, family by family, at most so many at a time."""
        for family, valid, test in self._held():
            if split == "train":
                yield from _kept(family, torch.cat([valid, test]), rows)
            else:
                chosen = valid if split == "valid" else test
                yield from (family.triples(len(family.lengths) - 1, u) for u in chosen.split(rows) if len(u))

    def held_out(self) -> tuple[int, ...]:
        """Return how many triples of each family are in valid and test."""
        return tuple(len(valid) + len(test) for _, valid, test in self._held())

    def _held(self) -> Iterator[tuple[Family, Tensor, Tensor]]:
        """Yield each family with the facts of its last run that are in valid and in test."""
        start = 0
        for family in self.families:
            end = start + family.implied
            yield family, _between(self.valid, start, end), _between(self.test, start, end)
            start = end


def _between(held: Tensor, start: int, end: int) -> Tensor:
    first, last = torch.searchsorted(held, torch.tensor([start, end])).tolist()
    return held[first:last] - start


def _kept(family: Family, held: Int[Tensor, " h"], rows: int) -> Iterator[Triples]:
    last = len(family.lengths) - 1
    for run, length in enumerate(family.lengths):
        for start in range(0, length, rows):
            u = torch.arange(start, min(length, start + rows))
            yield family.triples(run, u[~torch.isin(u, held)] if run == last else u)


def synthesise(
    entities: int,
    relations: int,
    triples: int,
    patterns: Sequence[str] = STRUCTURES,
    held_out: int = 1000,
    seed: int = 0,
) -> SyntheticGraph:
    """Plan a graph of exactly this size; ``held_out`` of its triples are in valid, and as many in test.

    Relations are dealt out to the patterns alike; the later a family, the fewer triples it has. The first
    family joins all entities, so that train mentions each of them.
    """
    for name in patterns:
        one_of("pattern", name, PATTERNS)
    if entities < _LEAST_ENTITIES:
        raise ConfigError(f"entities = {entities}: too few for a structure; give at least {_LEAST_ENTITIES}")
    if seed < 0 or held_out < 0:
        raise ConfigError(f"seed = {seed}, held_out = {held_out}: neither can be negative")
    generator = np.random.default_rng(seed)
    families = _dealt(entities, relations, list(dict.fromkeys(patterns)))
    families = _placed(_filled(families, triples), generator)
    implied = sum(family.implied for family in families)
    if 4 * held_out > implied:  # of what is held out, as much must be left to learn the laws from
        most = f"at most {implied // 4:,} can be held out for valid and for test each"
        raise ConfigError(f"held_out = {held_out:,}: {implied:,} triples follow from others, so {most}")
    drawn = generator.choice(implied, 2 * held_out, replace=False) if held_out else np.empty(0, np.int64)
    valid, test = (torch.from_numpy(part).sort().values for part in (drawn[:held_out], drawn[held_out:]))
    return SyntheticGraph(entities, seed, tuple(families), valid, test)


def _dealt(entities: int, relations: int, patterns: list[str]) -> list[Family]:
    """Deal relations out to the pattern that has the fewest, a family at a time."""
    size = {name: PATTERNS[name].relations for name in patterns}
    if relations < sum(size.values()):
        asked = " and ".join(f"{name} ({n})" for name, n in size.items())
        raise ConfigError(f"relations = {relations}: too few for {asked}; give at least {sum(size.values())}")
    families: list[Family] = []
    dealt = dict.fromkeys(patterns, 0)
    left = relations
    while fitting := [name for name in patterns if size[name] <= left]:
        name = min(fitting, key=dealt.__getitem__)
        families.append(Family(name, len(families), relations - left, 0, entities))
        dealt[name] += size[name]
        left -= size[name]
    if left:
        together = ", ".join(f"{name} takes {n}" for name, n in size.items())
        raise ConfigError(
            f"relations = {relations}: {left} is left over ({together}); give {relations - left}"
        )
    return families


def _filled(families: list[Family], triples: int) -> list[Family]:
    """Give the first family all it can hold, and the others less and less, to the exact number."""
    most = [family.row.capacity(family.entities) for family in families]
    least = [most[0], *(_LEAST_FACTS * family.row.relations for family in families[1:])]
    room = [high - low for high, low in zip(most, least, strict=True)]
    if triples > sum(most):
        finding = f"{families[0].entities:,} entities and these relations hold at most {sum(most):,}"
        raise ConfigError(
            f"triples = {triples:,}: {finding}; give more entities or relations, or fewer triples"
        )
    if triples < sum(least):
        reason = f"to mention each entity, and each relation {_LEAST_FACTS} times"
        raise ConfigError(f"triples = {triples:,}: too few {reason}; give at least {sum(least):,}")
    weight = [family.row.relations / sqrt(family.number + 1) for family in families]
    order = sorted(range(1, len(families)), key=lambda i: room[i] / weight[i])  # the first to be full first
    rest, weights, facts = triples - sum(least), sum(weight[1:]), least
    for i in order:
        more = min(room[i], rest, ceil(rest * weight[i] / weights))
        facts[i] += more
        rest, weights = rest - more, weights - weight[i]
    return [replace(family, facts=count) for family, count in zip(families, facts, strict=True)]


def _placed(families: list[Family], generator: np.random.Generator) -> list[Family]:
    """Draw where each family lies on the ring, and how it moves along it, free of chance laws if possible."""
    n = families[0].entities
    placed: list[Family] = []
    taken = np.empty(0, np.int64)
    for family in families:
        for _ in range(_TRIES):
            stride, gap, start = (int(x) for x in generator.integers([1, 3, 0], [n, n - 2, n]))
            while gcd(stride, n) != 1:  # else it would not reach every place
                stride += 1
            drawn = replace(family, start=start, stride=stride, gap=gap)
            shifts = np.array(drawn.shifts, np.int64)
            if not _obeys_more(shifts, taken, n):
                break
        placed.append(drawn)
        taken = np.append(taken, shifts)
    return placed


def _obeys_more(new: NDArray[np.int64], taken: NDArray[np.int64], n: int) -> bool:
    """Say whether new moves equal, undo or make up old ones, or the other way round, alone or by twos."""
    old = np.append(taken, 0)
    made = np.add.outer(new, old) % n
    return bool(np.isin(made, old).any() or np.isin(np.add.outer(new, new) % n, taken).any())
