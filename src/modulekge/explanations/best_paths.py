r"""The paths with the greatest mean of $\partial f / \partial w_{l,e}$, each edge at a later layer.

Beam search over layers: at each, a path goes on by an edge or stays, since states are carried on. Paths are
kept by what they have with the best that can still follow, which is worked out backwards from the tail.
A path ends where it first reaches the tail and passes no entity twice.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from modulekge.explanations.edge_gradients import LayerGradients
from modulekge.kernels.gather_sum import ranges, starts_of
from modulekge.shapes import Triples

_BEAM = 64  # paths of one length kept at each layer


@dataclass(frozen=True)
class WeightedPath:
    """Edges one after another by their numbers, and the mean of their gradients."""

    edges: tuple[int, ...]
    weight: float


@dataclass(frozen=True, eq=False)
class _Beam:
    """Beginnings of paths: the entities passed and the edges taken, -1 where there are none yet."""

    entities: Int[Tensor, "paths most_plus_1"]
    edges: Int[Tensor, "paths most"]
    taken: Int[Tensor, " paths"]
    total: Float[Tensor, " paths"]

    @property
    def last(self) -> Int[Tensor, " paths"]:
        """Where each path stands."""
        return self.entities.gather(1, self.taken[:, None])[:, 0]

    def at(self, rows: Int[Tensor, " some"]) -> "_Beam":
        """Return some of the paths."""
        return _Beam(self.entities[rows], self.edges[rows], self.taken[rows], self.total[rows])

    def by(
        self, edges: Int[Tensor, " paths"], ends: Int[Tensor, " paths"], gain: Float[Tensor, " paths"]
    ) -> "_Beam":
        """Return each path with an edge more."""
        taken = self.taken[:, None]
        entities = self.entities.scatter(1, taken + 1, ends[:, None])
        return _Beam(
            entities, self.edges.scatter(1, taken, edges[:, None]), self.taken + 1, self.total + gain
        )


def best_paths(
    layers: list[LayerGradients], edges: Triples, n_entities: int, head: int, tail: int, k: int
) -> list[WeightedPath]:
    """Return at most ``k`` paths from head to tail that raise the score, the best first."""
    ahead = _ahead(layers, edges, n_entities, tail)
    found = []
    for length in range(1, len(layers) + 1):
        beam = _search(layers, edges, ahead, head, tail, length)
        for row, total in zip(beam.edges.tolist(), beam.total.tolist(), strict=True):
            found.append(WeightedPath(tuple(row[:length]), total / length))
    found = [path for path in found if path.weight > 0]
    return sorted(found, key=lambda path: (-path.weight, len(path.edges)))[:k]


def _ahead(
    layers: list[LayerGradients], edges: Triples, n_entities: int, tail: int
) -> list[Float[Tensor, "lengths e"]]:
    """Return, after each layer, the most that so many edges from each entity to the tail can add."""
    best = torch.full((len(layers) + 1, n_entities), -torch.inf)
    best[0, tail] = 0
    found = [best]
    for layer in reversed(layers):
        starts, ends = edges[layer.edges, 0], edges[layer.edges, 2]
        onward = layer.gradients + best[:-1, ends]
        best = best.clone()
        best[1:].scatter_reduce_(1, starts.expand_as(onward), onward, "amax")
        found.append(best)
    return found[::-1]


def _search(
    layers: list[LayerGradients],
    edges: Triples,
    ahead: list[Float[Tensor, "lengths e"]],
    head: int,
    tail: int,
    length: int,
) -> _Beam:
    """Return the best paths of so many edges; none where there are none."""
    most, n_entities = len(layers), ahead[0].shape[1]
    start = torch.full((1, most + 1), -1)
    start[0, 0] = head
    beam = _Beam(start, torch.full((1, most), -1), torch.zeros(1, dtype=torch.long), torch.zeros(1))
    for layer, best in zip(layers, ahead[1:], strict=True):
        steps = starts_of(edges[layer.edges, 0], n_entities)
        open_ = (beam.taken < length) & ((beam.last != tail) | (beam.taken == 0))
        rows = open_.nonzero()[:, 0]
        places, owner = ranges(steps, beam.last[rows])
        owner, ends = rows[owner], edges[layer.edges[places], 2]
        new = (beam.entities[owner] != ends[:, None]).all(1) | ((ends == tail) & (head == tail))
        places, owner, ends = places[new], owner[new], ends[new]
        gain = layer.gradients[places]
        stays = beam.total + best[length - beam.taken, beam.last]
        goes = beam.total[owner] + gain + best[length - beam.taken[owner] - 1, ends]
        hope = torch.cat([stays, goes])
        hope, order = hope.topk(min(most * _BEAM, len(hope)))
        order = order[hope > -torch.inf]
        on = order[order >= len(stays)] - len(stays)
        gone = beam.at(owner[on]).by(layer.edges[places[on]], ends[on], gain[on])
        beam = _distinct(_joined(beam.at(order[order < len(stays)]), gone), best, length)
    return beam


def _joined(first: _Beam, second: _Beam) -> _Beam:
    pairs = (
        (getattr(first, name), getattr(second, name)) for name in ("entities", "edges", "taken", "total")
    )
    return _Beam(*(torch.cat(pair) for pair in pairs))


def _distinct(beam: _Beam, best: Float[Tensor, "lengths e"], length: int) -> _Beam:
    """Return the most hopeful paths, of equal ones that took their edges at other layers the best."""
    order = (beam.total + best[length - beam.taken, beam.last]).argsort(descending=True, stable=True)
    beam = beam.at(order)
    number = beam.edges.unique(dim=0, return_inverse=True)[1] if len(order) else order
    first = torch.full((len(order),), len(order)).scatter_reduce(0, number, torch.arange(len(order)), "amin")
    return beam.at(first[first < len(order)].sort().values[:_BEAM])
