"""A map of the entities: who is alike in all dimensions lies together on the plane."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from modulekge.shapes import Entities

Places = Float[Tensor, "e 2"]

_SPARE = 6  # directions more than two, with which the iteration converges sooner
_STEPS = 12

_SAMPLE = 8000  # entities that are laid out; the others are placed beside them
_NEAR = 10  # entities that draw one nearer, and as many by chance push it away
_MOVES = 250
_WIDE = 3.0  # reach of the plane at first, in units of the distance at which the pull is greatest
_PUSH = 3.0  # of those by chance, against the pull of those that are near
_FAR = 4.0  # what one move goes at most
_BESIDE = 3  # entities of the sample by which another one is placed
_ROWS = 1 << 25  # likenesses worked out at once


def directions(table: Entities) -> Float[Tensor, "e f"]:
    """x_e / |x_e|: lengths say how often an entity occurs rather than what it is."""
    return torch.nn.functional.normalize(table.flatten(1).float(), dim=1)


@torch.no_grad()
def principal_plane(x: Float[Tensor, "e f"]) -> Places:
    """The first two principal components, each scaled to the range -1 to 1.

    The longer arm of an axis points up, and the same table gives the same map.
    """
    with torch.random.fork_rng([x.device] if x.is_cuda else []):
        torch.manual_seed(0)
        u, s, _ = torch.pca_lowrank(x, min(2 + _SPARE, *x.shape), niter=_STEPS)
    best = x.new_zeros(len(x), 2)
    best[:, : u.shape[1]] = (u * s)[:, :2]
    reach = best.abs().max(0)
    signs = best.gather(0, reach.indices[None]).sign()
    return (best * signs / reach.values.clamp(min=1e-12)).cpu()


@torch.no_grad()
def project(table: Entities) -> Places:
    r"""Places that keep neighbours: $\min \sum_{near} \log(1 + d^2) - c \sum_{any} \log(d^2 / (1 + d^2))$.

    The first sum goes over the entities most alike in the whole space, the second over as many by chance. It
    begins on the principal plane, and each axis ends within -1 to 1. Of a large table a sample is laid out,
    and the others are put among the ones they are most like. The same table gives the same map.
    """
    x = directions(table)
    start, n = principal_plane(x), len(x)
    if n <= _NEAR:
        return start
    chance = torch.Generator().manual_seed(0)
    chosen = torch.randperm(n, generator=chance)[:_SAMPLE].sort().values
    sample = x[chosen.to(x.device)]
    places = _laid_out(_WIDE * start[chosen], _most_alike(sample, sample, _NEAR + 1)[:, 1:], chance)
    if len(chosen) < n:
        beside = _most_alike(x, sample, _BESIDE)
        places = places[beside].mean(1)
    low, high = places.min(0).values, places.max(0).values
    return (2 * places - low - high) / (high - low).clamp(min=1e-12)


def _most_alike(x: Float[Tensor, "a f"], among: Float[Tensor, "b f"], k: int) -> Int[Tensor, "a k"]:
    """The rows with the greatest x . y, best first."""
    parts = x.split(max(1, _ROWS // len(among)))
    return torch.cat([(part @ among.T).topk(k).indices.cpu() for part in parts])


def _laid_out(places: Places, near: Int[Tensor, "s k"], chance: torch.Generator) -> Places:
    """Let each entity be drawn to those it is near and pushed away from others, ever less."""
    n, k = near.shape
    for step in range(_MOVES):
        there = places[:, None] - places[near]
        pull = there / (1 + there.square().sum(2, keepdim=True))
        move = (-pull.sum(1)).index_add_(0, near.flatten(), pull.flatten(0, 1))
        there = places[:, None] - places[torch.randint(n, (n, k), generator=chance)]
        square = there.square().sum(2, keepdim=True)
        move += _PUSH * (there / ((square + 1e-3) * (1 + square))).clamp(-_FAR, _FAR).sum(1)
        places = places + 0.5 * (1 - step / _MOVES) * move.clamp(-_FAR, _FAR)
    return places
