"""Sums of moduli of all pairs or chosen ones, without an intermediate per block; products of chosen ones."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

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
        wrap, tiles = _plan(q, len(q) * q.shape[-1], len(t))
        return torch.cat([wrap(_forward)(q, part, weights) for part in t.split(tiles)], dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, t, weights = (x.detach() for x in ctx.saved_tensors)
        if gpu := _kernels(q):
            return gpu.pairs_backward(q, t, weights, grad)  # type: ignore[no-any-return]
        wrap, tiles = _plan(q, len(q) * q.shape[-1], len(t))
        grad_q, grad_w, parts_t = torch.zeros_like(q), torch.zeros_like(weights), []
        for part, gradient in zip(t.split(tiles), grad.split(tiles, dim=1), strict=True):
            of_q, of_w = wrap(_backward_q)(q, part, weights, gradient)
            grad_q += of_q
            grad_w += of_w
            parts_t.append(wrap(_backward_t)(q, part, weights, gradient))
        return grad_q, torch.cat(parts_t), grad_w


def row_distance(
    q: Queries, t: Entities, rows: Int[Tensor, "b k"], weights: Float[Tensor, "b n"] | None = None
) -> Float[Tensor, "b k"]:
    r"""$\sum_i w_i |q_i - t_i|$ of each query with the entities that its row names."""
    weights = q.new_ones(len(q), q.shape[-1]) if weights is None else weights
    distances: Tensor = _RowDistance.apply(q, t, rows, weights)  # type: ignore[no-untyped-call]
    return distances


class _RowDistance(torch.autograd.Function):
    """Entities are gathered where they are used, never all at once."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, t: Tensor, rows: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(q, t, rows, weights)
        if gpu := _kernels(q):
            return gpu.rows(q, t, rows, weights)  # type: ignore[no-any-return]
        return torch.cat([out for _, out in _by_rows(_forward_rows, t, q, rows, weights)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, Tensor]:
        q, t, rows, weights = ctx.saved_tensors
        if gpu := _kernels(q):
            grad_q, grad_t, grad_w = gpu.rows_backward(q, t, rows, weights, grad)
        else:
            gradients = _by_rows(_backward_rows, t, q, rows, weights, grad)
            grad_t, grad_q, grad_w = _added(t, gradients)
        return grad_q, grad_t, None, grad_w


def row_product(
    q: Float[Tensor, "b n"], t: Float[Tensor, "e n"], rows: Int[Tensor, "b k"]
) -> Float[Tensor, "b k"]:
    r"""$\langle q, t \rangle$ of each query with the entities that its row names."""
    products: Tensor = _RowProduct.apply(q, t, rows)  # type: ignore[no-untyped-call]
    return products


class _RowProduct(torch.autograd.Function):
    """Likewise."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, t: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(q, t, rows)
        if gpu := _kernels(q[:, None]):
            return gpu.products(q, t, rows)  # type: ignore[no-any-return]
        return torch.cat([out for _, out in _by_rows(_product_rows, t, q, rows, loops=False)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        q, t, rows = ctx.saved_tensors
        if gpu := _kernels(q[:, None]):
            grad_q, grad_t = gpu.products_backward(q, t, rows, grad)
        else:
            gradients = _by_rows(_product_rows_backward, t, q, rows, grad, loops=False)
            grad_t, grad_q = _added(t, gradients)
        return grad_q, grad_t, None


def _by_rows(
    function: Callable[..., Any], t: Tensor, q: Tensor, rows: Tensor, *more: Tensor, loops: bool = True
) -> Iterator[tuple[Tensor, Any]]:
    """Yield the rows of some queries at a time, and what this gives for them and what goes with them."""
    wrap, tiles = _plan(q, rows.shape[1] * q.shape[-1], len(q), loops)
    for part in zip(*(x.detach().split(tiles) for x in (q, rows, *more)), strict=True):
        yield part[1], wrap(function)(t.detach(), *part)


def _added(t: Tensor, gradients: Iterable[tuple[Tensor, tuple[Tensor, ...]]]) -> list[Tensor]:
    """Return the gradients of entities, added up over the rows that name them, then the others."""
    grad_t, others = t.new_zeros(len(t), t[:1].numel()), []
    for rows, (of_t, *rest) in gradients:
        grad_t.index_add_(0, rows.flatten(), of_t.reshape(-1, grad_t.shape[1]))
        others.append(rest)
    return [grad_t.view(t.shape), *map(torch.cat, zip(*others, strict=True))]


def _kernels(q: Tensor) -> Any:
    return kernels("modulekge.kernels.distance_triton", q) if q.shape[1] <= 4 else None


def _plan(
    q: Tensor, work: int, pieces: int, loops: bool = True
) -> tuple[Callable[[Callable[..., Any]], Callable[..., Any]], int]:
    """Return how to run the functions below, and how many pieces of so much work to give them at a time.

    Products are not loops: PyTorch's own are as fast.
    """
    if q.is_cuda:
        return _plain, max(1, _CUDA_TILE // max(1, work))
    if loops and work * pieces >= _WORTH and can_compile("cpu"):
        return _compiled, max(1, _COMPILED_TILE // max(1, work))
    return _plain, max(1, _TILE // max(1, work))


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return compiled(function, dynamic=True)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _squares(q: Tensor, t: Tensor) -> tuple[list[Tensor], Tensor]:
    """$q_c - t_c$ for each component $c$, and the sum of their squares; of all entities or each query's."""
    differences = [q[:, c, None] - t[..., c, :] for c in range(q.shape[1])]
    total = differences[0].square()
    for difference in differences[1:]:
        total = total + difference.square()
    return differences, total


def _gradients(squares: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    inverse = torch.where(squares > 0, squares.rsqrt(), 0.0)
    return grad[:, :, None] * weights[:, None] * inverse


def _forward(q: Tensor, t: Tensor, weights: Tensor) -> Tensor:
    return (weights[:, None] * _squares(q, t)[1].sqrt()).sum(-1)


def _backward_q(q: Tensor, t: Tensor, weights: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    differences, squares = _squares(q, t)
    gradients = _gradients(squares, weights, grad)
    grad_q = torch.stack([(gradients * difference).sum(1) for difference in differences], dim=1)
    return grad_q, (grad[:, :, None] * squares.sqrt()).sum(1)


def _backward_t(q: Tensor, t: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    differences, squares = _squares(q, t)
    gradients = _gradients(squares, weights, grad)
    return -torch.stack([(gradients * difference).sum(0) for difference in differences], dim=1)


def _named(t: Tensor, rows: Tensor) -> Tensor:
    """Return $t$ of each row; plain indexing takes twice as long on a CPU."""
    return t.index_select(0, rows.flatten()).view(*rows.shape, *t.shape[1:])


def _forward_rows(t: Tensor, q: Tensor, rows: Tensor, weights: Tensor) -> Tensor:
    return _forward(q, _named(t, rows), weights)


def _backward_rows(
    t: Tensor, q: Tensor, rows: Tensor, weights: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    named = _named(t, rows)
    differences, squares = _squares(q, named)
    gradients = _gradients(squares, weights, grad)
    of_t = torch.stack([-gradients * difference for difference in differences], dim=2)
    return of_t, *_backward_q(q, named, weights, grad)


def _product_rows(t: Tensor, q: Tensor, rows: Tensor) -> Tensor:
    return torch.bmm(_named(t, rows), q[:, :, None]).squeeze(2)


def _product_rows_backward(t: Tensor, q: Tensor, rows: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    return grad[:, :, None] * q[:, None], torch.bmm(grad[:, None], _named(t, rows)).squeeze(1)
