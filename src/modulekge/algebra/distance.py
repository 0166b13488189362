"""The distance of sums of moduli, for every pair of a query and an entity, in bounded memory."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from modulekge.shapes import Entities, Queries, Scores

_TILE = 1 << 18  # pairs worked on at a time: a tile and its scratch stay in a core's cache
_WORTH = 1 << 20  # pairs times blocks from which on compiling pays on a CPU


def block_distance(q: Queries, t: Entities, weights: Float[Tensor, "b n"] | None = None) -> Scores:
    r"""$\sum_i w_i |q_i - t_i|$ over blocks, for every pair, without the (b, e, n) intermediate.

    Large problems, and all on a GPU, run as compiled loops that keep a block's differences in
    registers; others, and all where nothing can be compiled, block by block in tiles.
    """
    weights = q.new_ones(len(q), q.shape[-1]) if weights is None else weights
    distances: Tensor = _BlockDistance.apply(q, t, weights)  # type: ignore[no-untyped-call]
    return distances


class _BlockDistance(torch.autograd.Function):
    """Backward computes the moduli anew."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, t: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(q, t, weights)
        if _worth_compiling(q, t):
            distances: Tensor = _compiled(_whole_forward)(q, t, weights)
            return distances
        return _tiled_forward(q, t, weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, t, weights = ctx.saved_tensors
        if _worth_compiling(q, t):
            grad = grad.contiguous()
            grad_q, grad_w = _compiled(_whole_backward_q)(q, t, weights, grad)
            return grad_q, _compiled(_whole_backward_t)(q, t, weights, grad), grad_w
        return _tiled_backward(q, t, weights, grad)


def _worth_compiling(q: Tensor, t: Tensor) -> bool:
    return _can_compile() and (q.is_cuda or len(q) * len(t) * q.shape[-1] >= _WORTH)


@cache
def _can_compile() -> bool:
    """Whether this machine has what torch.compile needs; tried once on a small sum."""
    try:
        torch.compile(lambda x: x + 1)(torch.ones(2))
    except Exception:  # whatever is missing, the tiles do without it
        return False
    return True


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(function, dynamic=True)


def _squares(q: Tensor, t: Tensor) -> tuple[list[Tensor], Tensor]:
    """$q_c - t_c$ for each component $c$, and the sum of their squares: (b, e, n), never in memory."""
    differences = [q[:, c, None] - t[:, c] for c in range(q.shape[1])]
    total = differences[0].square()
    for difference in differences[1:]:
        total = total + difference.square()
    return differences, total


def _whole_forward(q: Tensor, t: Tensor, weights: Tensor) -> Tensor:
    return (weights[:, None] * _squares(q, t)[1].sqrt()).sum(-1)


def _slopes(squares: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    inverse = torch.where(squares > 0, squares.rsqrt(), 0.0)
    return grad[:, :, None] * weights[:, None] * inverse


def _whole_backward_q(q: Tensor, t: Tensor, weights: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    differences, squares = _squares(q, t)
    slopes = _slopes(squares, weights, grad)
    grad_q = torch.stack([(slopes * difference).sum(1) for difference in differences], dim=1)
    return grad_q, (grad[:, :, None] * squares.sqrt()).sum(1)


def _whole_backward_t(q: Tensor, t: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    differences, squares = _squares(q, t)
    slopes = _slopes(squares, weights, grad)
    return -torch.stack([(slopes * difference).sum(0) for difference in differences], dim=1)


def _tiled_forward(q: Tensor, t: Tensor, weights: Tensor) -> Tensor:
    out = q.new_zeros(len(q), len(t))
    for rows in _tiles(q, t):
        for i in range(q.shape[-1]):
            _, modulus = _differences(q[..., i], t[rows, :, i])
            out[:, rows].addcmul_(modulus, weights[:, i, None])
    return out


def _tiled_backward(q: Tensor, t: Tensor, weights: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    grad_q, grad_t, grad_w = torch.zeros_like(q), torch.zeros_like(t), torch.zeros_like(weights)
    for rows in _tiles(q, t):
        for i in range(q.shape[-1]):
            differences, modulus = _differences(q[..., i], t[rows, :, i])
            grad_w[:, i] += (grad[:, rows] * modulus).sum(1)
            slope = (grad[:, rows] * weights[:, i, None] / modulus).masked_fill_(modulus == 0, 0)
            for c, difference in enumerate(differences):
                pull = slope * difference
                grad_q[:, c, i] += pull.sum(1)
                grad_t[rows, c, i] -= pull.sum(0)
    return grad_q, grad_t, grad_w


def _tiles(q: Tensor, t: Tensor) -> list[slice]:
    width = max(1, _TILE // max(1, len(q)))
    return [slice(start, start + width) for start in range(0, len(t), width)]


def _differences(q: Float[Tensor, "b d"], t: Float[Tensor, "e d"]) -> tuple[list[Tensor], Tensor]:
    """$q_c - t_c$ for each component, and the modulus of their differences, of one block."""
    differences = [q[:, c, None] - t[:, c] for c in range(q.shape[1])]
    if len(differences) == 1:
        return differences, differences[0].abs()
    squares = differences[0].square()
    for difference in differences[1:]:
        squares.addcmul_(difference, difference)
    return differences, squares.sqrt_()
