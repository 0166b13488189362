"""Sums of moduli of all pairs or chosen ones, without an intermediate per block; products of chosen ones."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from modulekge.algebra.norms import modulus
from modulekge.machine import can_compile, compiled, kernels
from modulekge.shapes import Entities, Queries, Scores

# Pairs times blocks worked on at a time: in a core's cache, in compiled loops, on a GPU
_TILE, _COMPILED_TILE, _CUDA_TILE = 1 << 20, 1 << 24, 1 << 26
_WORTH = 1 << 20  # pairs times blocks from which on compiling pays on a CPU


def block_distance(q: Queries, t: Entities, weights: Float[Tensor, "b n"] | None = None) -> Scores:
    r"""$\sum_i w_i |q_i - t_i|$ over blocks, for every pair, tile by tile: never the whole (b, e, n).

    On a GPU these are kernels of ours; on a CPU large problems run as compiled loops, if it has a compiler.
    """
    weights = q.new_ones(len(q), q.shape[-1]) if weights is None else weights
    distances: Tensor = _BlockDistance.apply(q, t, weights)  # type: ignore[no-untyped-call]
    return distances


class _BlockDistance(torch.autograd.Function):
    """Backward computes the moduli anew."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, t: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(q, t, weights)
        q, t, weights = q.detach(), t.detach(), weights.detach()  # compiled loops know no gradients
        if gpu := _kernels(q):
            return gpu.pairs(q, t, weights)  # type: ignore[no-any-return]
        wrap, tiles = _plan(q, t)
        return torch.cat([wrap(_forward)(q, part, weights) for part in t.split(tiles)], dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, t, weights = (x.detach() for x in ctx.saved_tensors)
        if gpu := _kernels(q):
            return gpu.pairs_backward(q, t, weights, grad)  # type: ignore[no-any-return]
        wrap, tiles = _plan(q, t)
        grad_q, grad_w, parts_t = torch.zeros_like(q), torch.zeros_like(weights), []
        for part, slope in zip(t.split(tiles), grad.split(tiles, dim=1), strict=True):
            of_q, of_w = wrap(_backward_q)(q, part, weights, slope)
            grad_q += of_q
            grad_w += of_w
            parts_t.append(wrap(_backward_t)(q, part, weights, slope))
        return grad_q, torch.cat(parts_t), grad_w


def row_distance(
    q: Queries, t: Entities, rows: Int[Tensor, "b k"], weights: Float[Tensor, "b n"] | None = None
) -> Float[Tensor, "b k"]:
    r"""$\sum_i w_i |q_i - t_i|$ of each query with the entities that its row names."""
    if _kernels(q):
        weights = q.new_ones(len(q), q.shape[-1]) if weights is None else weights
        distances: Tensor = _RowDistance.apply(q, t, rows, weights)  # type: ignore[no-untyped-call]
        return distances
    named = t.index_select(0, rows.flatten()).unflatten(0, rows.shape)
    moduli = modulus(q[:, None] - named)  # PyTorch's norm of so few takes 15 to 40 times as long on a CPU
    return moduli.sum(-1) if weights is None else (weights[:, None] * moduli).sum(-1)


class _RowDistance(torch.autograd.Function):
    """The same by kernels, which gather the entities themselves."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, t: Tensor, rows: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(q, t, rows, weights)
        return _kernels(q).rows(q, t, rows, weights)  # type: ignore[no-any-return]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, Tensor]:
        q, t, rows, weights = ctx.saved_tensors
        grad_q, grad_t, grad_w = _kernels(q).rows_backward(q, t, rows, weights, grad)
        return grad_q, grad_t, None, grad_w


def row_product(
    q: Float[Tensor, "b n"], t: Float[Tensor, "e n"], rows: Int[Tensor, "b k"]
) -> Float[Tensor, "b k"]:
    r"""$\langle q, t \rangle$ of each query with the entities that its row names."""
    if _kernels(q[:, None]):
        products: Tensor = _RowProduct.apply(q, t, rows)  # type: ignore[no-untyped-call]
        return products
    named = t.index_select(0, rows.flatten()).unflatten(0, rows.shape)
    return torch.bmm(named, q.unsqueeze(2)).squeeze(2)


class _RowProduct(torch.autograd.Function):
    """The same by kernels, which copy no rows."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, t: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(q, t, rows)
        return _kernels(q[:, None]).products(q, t, rows)  # type: ignore[no-any-return]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        q, t, rows = ctx.saved_tensors
        return *_kernels(q[:, None]).products_backward(q, t, rows, grad), None


def _kernels(q: Tensor) -> Any:
    return kernels("modulekge.algebra.kernels", q) if q.shape[1] <= 4 else None


def _plan(q: Tensor, t: Tensor) -> tuple[Callable[[Callable[..., Any]], Callable[..., Any]], int]:
    """Return how to run the functions below, and how many entities to give them at a time."""
    work = len(q) * q.shape[-1]
    if q.is_cuda:
        return _plain, max(1, _CUDA_TILE // max(1, work))
    if work * len(t) >= _WORTH and can_compile("cpu"):
        return _compiled, max(1, _COMPILED_TILE // max(1, work))
    return _plain, max(1, _TILE // max(1, work))


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return compiled(function, dynamic=True)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _squares(q: Tensor, t: Tensor) -> tuple[list[Tensor], Tensor]:
    """$q_c - t_c$ for each component $c$, and the sum of their squares."""
    differences = [q[:, c, None] - t[:, c] for c in range(q.shape[1])]
    total = differences[0].square()
    for difference in differences[1:]:
        total = total + difference.square()
    return differences, total


def _slopes(squares: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    inverse = torch.where(squares > 0, squares.rsqrt(), 0.0)
    return grad[:, :, None] * weights[:, None] * inverse


def _forward(q: Tensor, t: Tensor, weights: Tensor) -> Tensor:
    return (weights[:, None] * _squares(q, t)[1].sqrt()).sum(-1)


def _backward_q(q: Tensor, t: Tensor, weights: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    differences, squares = _squares(q, t)
    slopes = _slopes(squares, weights, grad)
    grad_q = torch.stack([(slopes * difference).sum(1) for difference in differences], dim=1)
    return grad_q, (grad[:, :, None] * squares.sqrt()).sum(1)


def _backward_t(q: Tensor, t: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    differences, squares = _squares(q, t)
    slopes = _slopes(squares, weights, grad)
    return -torch.stack([(slopes * difference).sum(0) for difference in differences], dim=1)
