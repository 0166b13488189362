"""Scores of section 4.3: how near a moved head is to every entity."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from modulekge.algebra.algebra import Algebra
from modulekge.shapes import Elements, Entities, Queries, Scores

_TILE = 1 << 18  # scores worked on at a time: a tile and its scratch stay in a core's cache


def product(a: Algebra, s: Elements, v: Elements) -> Elements:
    r"""$s \odot v$, the paper's combination $S \times V \to V$."""
    return a.mul(s, v)


def pair(a: Algebra, s: Elements, v: Elements) -> Elements:
    """$(s, v)$ side by side, for a score that looks at the two apart."""
    return torch.cat([s, v], dim=-2)


@dataclass(frozen=True)
class Score:
    """How scalar and vector are joined, and how a query meets every entity."""

    name: str
    join: Callable[[Algebra, Elements, Elements], Elements]
    all_pairs: Callable[[Queries, Entities, Float[Tensor, " weights"]], Scores]
    weights: tuple[float, ...] = ()  # learned; where they start


def inner(q: Queries, t: Entities, weights: Float[Tensor, " 0"]) -> Scores:
    r"""$\langle q, t \rangle$, which the paper calls cosine."""
    return q.flatten(1) @ t.flatten(1).T


def distance(q: Queries, t: Entities, weights: Float[Tensor, " 0"]) -> Scores:
    r"""$-\sum_i |q_i - t_i|$: minus a sum of moduli."""
    return -block_distance(q, t)


def split(q: Queries, t: Entities, weights: Float[Tensor, " 2"]) -> Scores:
    r"""$-w_1 \lVert a - c \cdot m_t \rVert_2 - \frac{w_2}{2} \sum_i |q_i - t_i|$, HAKE's score.

    Of a query $(a, c, q)$ and an entity $(m_t, t)$ with $q, t$ on circles, where
    $\frac12 |e^{i\alpha} - e^{i\beta}| = |\sin\frac{\alpha - \beta}2|$.
    """
    a, c, m = q[:, 0], q[:, 1], t[:, 0]
    squares = (
        a.square().sum(-1, keepdim=True) - 2 * (a * c) @ m.T + c.square() @ m.square().T
    )  # rounding can leave a square below 0; at 0 the root has no slope
    modulus = squares.clamp(min=torch.finfo(squares.dtype).tiny).sqrt()
    return -weights[0] * modulus - weights[1] / 2 * block_distance(q[:, 2:], t[:, 1:])


def block_distance(q: Queries, t: Entities) -> Scores:
    r"""$\sum_i |q_i - t_i|$ over blocks, for every pair, without the (b, e, n) intermediate."""
    distances: Tensor = _BlockDistance.apply(q, t)  # type: ignore[no-untyped-call]
    return distances


class _BlockDistance(torch.autograd.Function):
    """Forward and backward go tile by tile and block by block; backward computes moduli anew."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, q: Tensor, t: Tensor) -> Tensor:
        ctx.save_for_backward(q, t)
        out = q.new_zeros(len(q), len(t))
        for rows in _tiles(q, t):
            for i in range(q.shape[-1]):
                _, modulus = _differences(q[..., i], t[rows, :, i])
                out[:, rows] += modulus
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> tuple[Tensor, Tensor]:
        q, t = ctx.saved_tensors  # type: ignore[attr-defined]
        grad_q, grad_t = torch.zeros_like(q), torch.zeros_like(t)
        for rows in _tiles(q, t):
            for i in range(q.shape[-1]):
                differences, modulus = _differences(q[..., i], t[rows, :, i])
                slope = (grad[:, rows] / modulus).masked_fill_(modulus == 0, 0)
                for c, difference in enumerate(differences):
                    pull = slope * difference
                    grad_q[:, c, i] += pull.sum(1)
                    grad_t[rows, c, i] -= pull.sum(0)
        return grad_q, grad_t


def _tiles(q: Tensor, t: Tensor) -> list[slice]:
    width = max(1, _TILE // max(1, len(q)))
    return [slice(start, start + width) for start in range(0, len(t), width)]


def _differences(q: Float[Tensor, "b d"], t: Float[Tensor, "e d"]) -> tuple[list[Tensor], Tensor]:
    """$q_c - t_c$ for each component, and the modulus of their differences."""
    differences = [q[:, c, None] - t[:, c] for c in range(q.shape[1])]
    if len(differences) == 1:
        return differences, differences[0].abs()
    squares = differences[0].square()
    for difference in differences[1:]:
        squares.addcmul_(difference, difference)
    return differences, squares.sqrt_()


INNER = Score("inner", product, inner)
DISTANCE = Score("distance", product, distance)
SPLIT = Score("split", pair, split, weights=(1.0, 1.0))
SCORES = {score.name: score for score in (INNER, DISTANCE, SPLIT)}
