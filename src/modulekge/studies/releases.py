"""Releases of a distribution: which links between names known before a later one adds, and who says so."""

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import nlargest
from itertools import islice
from math import log
from pathlib import Path

from modulekge.answers.triples import Named, NamedTriples

LINKS = ("depends_on", "recommends", "suggests")
BUILT = "built_from"
_FEW = 5  # of the most popular tails that a package has not yet
_HUB = 200  # neighbours from which a name says nothing about two that share it
MOST = 1000  # predictions that are looked at

Need = tuple[str, str]  # (relation, tail): a link without its head
Predicted = list[tuple[float, Named]]  # best first


@dataclass(frozen=True)
class Release:
    """The packages of a release, each with its source, and the links between names."""

    name: str
    sources: dict[str, str]
    links: dict[Named, None]

    @classmethod
    def of(cls, name: str, facts: Iterable[Named]) -> "Release":
        """Keep links and sources; a package of which no source is said is built from its own name.

        A name that ends in t64 is that of the same library before its times took 64 bits.
        """
        sources: dict[str, str] = {}
        links: dict[Named, None] = {}
        for head, relation, tail in facts:
            package = _renamed(head)
            sources.setdefault(package, f"source {package}")
            if relation == BUILT:
                sources[package] = tail
            elif relation in LINKS and _renamed(tail) != package:
                links[package, relation, _renamed(tail)] = None
        return cls(name, sources, links)

    @classmethod
    def read(cls, path: Path) -> "Release":
        """Read a file of scripts/build_graphs.py."""
        return cls.of(path.stem.rpartition("-")[2], NamedTriples.read(path).rows)

    @cached_property
    def names(self) -> frozenset[str]:
        """Every package, and every name that a package mentions."""
        return frozenset(self.sources) | {tail for _, _, tail in self.links}

    @cached_property
    def needs(self) -> dict[str, set[Need]]:
        """The links of each package that has any."""
        found: dict[str, set[Need]] = {}
        for head, *need in self.links:
            found.setdefault(head, set()).add((need[0], need[1]))
        return found

    def added_by(self, later: "Release") -> dict[Named, None]:
        """Return the links of a later release that are new, between a package and a name known here."""
        new = (x for x in later.links if x[0] in self.sources and x[2] in self.names)
        return {x: None for x in new if x not in self.links}

    def part(self, share: int) -> "Release":
        """Return the packages of one source in so many, the same sources in every release."""
        sources = {p: s for p, s in self.sources.items() if zlib.crc32(s.encode()) % share == 0}
        return Release(self.name, sources, {x: None for x in self.links if x[0] in sources})

    def facts(self) -> Iterator[Named]:
        """The links, and the source of each package."""
        yield from self.links
        yield from ((package, BUILT, source) for package, source in self.sources.items())


def _renamed(name: str) -> str:
    return re.sub(r"(?<=\d)t64$", "", name)


def by_popularity(release: Release, most: int = MOST) -> Predicted:
    """The links that most packages have, to those that have another of the relation: baseline."""
    tails = Counter((relation, tail) for _, relation, tail in release.links)
    heads = Counter(relation for needs in release.needs.values() for relation in {r for r, _ in needs})
    top = nlargest(most, ((n / heads[y[0]], y) for y, n in tails.items()))

    def each() -> Iterator[tuple[float, Named]]:
        for package, needs in release.needs.items():
            asked = {relation for relation, _ in needs}
            open_ = (x for x in top if x[1][0] in asked and x[1] not in needs and x[1][1] != package)
            yield from ((share, (package, *y)) for share, y in islice(open_, _FEW))

    return best(each(), most)


def by_neighbours(release: Release, most: int = MOST) -> Predicted:
    r"""Adamic and Adar: $\sum_z 1 / \log \deg z$ over the names $z$ linked with both: baseline.

    The relation is the first, which most links are of. Names with many neighbours are left out.
    """
    near: dict[str, set[str]] = defaultdict(set)
    for head, _, tail in release.links:
        near[head].add(tail)
        near[tail].add(head)
    weight = {z: 1 / log(len(others)) for z, others in near.items() if 1 < len(others) <= _HUB}

    def each() -> Iterator[tuple[float, Named]]:
        for package in release.needs:
            sums: dict[str, float] = defaultdict(float)
            for z in near[package] & weight.keys():
                for tail in near[z]:
                    sums[tail] += weight[z]
            some = ((round(x, 9), t) for t, x in sums.items() if t != package and t not in near[package])
            yield from ((x, (package, LINKS[0], t)) for x, t in nlargest(_FEW, some))

    return best(each(), most)


def best(each: Iterable[tuple[float, Named]], most: int) -> Predicted:
    """The highest, of equal ones the first by name: the same on every machine."""
    return sorted(nlargest(most, each), key=lambda found: (-found[0], found[1]))
