"""A map of the entities: their vectors on the two axes along which they differ most."""

from collections import Counter
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from modulekge.server.facts import DIRECTIONS
from modulekge.server.lookup import Lookup
from modulekge.server.views import EntityMap, MapGroup, MapPoint
from modulekge.shapes import Entities

_SPARE = 6  # directions more than two, with which the iteration converges sooner
_STEPS = 12


@torch.no_grad()
def project(table: Entities) -> Float[Tensor, "e 2"]:
    r"""The first two principal components of $x_e / |x_e|$, each scaled to the range -1 to 1.

    Directions, since lengths say how often an entity occurs rather than what it is. The longer arm of an axis
    points up, and the same table gives the same map.
    """
    x = torch.nn.functional.normalize(table.flatten(1).float(), dim=1)
    with torch.random.fork_rng([x.device] if x.is_cuda else []):
        torch.manual_seed(0)
        u, s, _ = torch.pca_lowrank(x, min(2 + _SPARE, *x.shape), niter=_STEPS)
    best = x.new_zeros(len(x), 2)
    best[:, : u.shape[1]] = (u * s)[:, :2]
    reach = best.abs().max(0)
    signs = best.gather(0, reach.indices[None]).sign()
    return (best * signs / reach.values.clamp(min=1e-12)).cpu()


@dataclass(frozen=True, eq=False)
class MapMaker:
    """Maps of any number of entities of one run, which are projected once.

    An entity is of the group of the relation and direction it occurs in most.
    """

    lookup: Lookup
    places: list[list[float]]
    questions: list[int]  # relation, or r + |R| as its tail; -1 where it has no facts

    @classmethod
    def of(cls, table: Entities, lookup: Lookup) -> "MapMaker":
        """Project the entities of a run."""
        return cls(lookup, project(table).tolist(), lookup.facts.most_asked().tolist())

    def of_best(self, limit: int) -> EntityMap:
        """Return the best-connected entities."""
        chosen, names = self.lookup.by_degree[:limit], self.lookup.dataset.entities
        counts = Counter(self.questions[i] for i in chosen)
        groups = {q: self._group(q, count) for q, count in counts.most_common() if q >= 0}
        points = [
            MapPoint(names.names[i], names.label(i), x, y, self._name(self.questions[i]))
            for i in chosen
            for x, y in [self.places[i]]
        ]
        return EntityMap(points, list(groups.values()))

    def _group(self, question: int, count: int) -> MapGroup:
        n = len(self.lookup.dataset.relations)
        relation = self.lookup.relation(question % n)
        return MapGroup(self._name(question) or "", relation, DIRECTIONS[question // n], count)

    def _name(self, question: int) -> str | None:
        n = len(self.lookup.dataset.relations)
        return (
            f"{DIRECTIONS[question // n]} {self.lookup.relation(question % n).name}"
            if question >= 0
            else None
        )
