"""A map of the entities: their vectors on the two axes along which they differ most."""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from modulekge.shapes import Entities

_SPARE = 6  # directions more than two, which make the iteration converge sooner
_STEPS = 12


@torch.no_grad()
def project(table: Entities) -> Float[Tensor, "e 2"]:
    r"""The first two principal components of $x_e / |x_e|$, each scaled to the range -1 to 1.

    Directions, since lengths say how often an entity occurs rather than what it is. Found by iteration on
    a subspace, so that no matrix larger than the table is made; the sign is such that the longer arm
    points up, and the same table gives the same map.
    """
    x = torch.nn.functional.normalize(table.flatten(1).float(), dim=1)
    mean = x.mean(0)
    start = torch.randn(x.shape[1], min(2 + _SPARE, *x.shape), generator=Generator().manual_seed(0))
    axes = torch.linalg.qr(start.to(x.device)).Q
    for _ in range(_STEPS):
        places = x @ axes - mean @ axes
        axes = torch.linalg.qr(x.T @ places - mean[:, None] * places.sum(0)).Q
    places = x @ axes - mean @ axes
    turn = torch.linalg.eigh(places.T @ places).eigenvectors.flip(1)[:, :2]
    best = torch.zeros(len(x), 2, device=x.device)
    best[:, : turn.shape[1]] = places @ turn
    reach = best.abs().max(0)
    signs = best.gather(0, reach.indices[None]).sign()
    return (best * signs / reach.values.clamp(min=1e-12)).cpu()
