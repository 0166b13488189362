"""Scores of section 4.3: how near a moved head is to every entity."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from modulekge.algebra.algebra import Algebra
from modulekge.algebra.norms import N
from modulekge.kernels.distance import block_distance, row_distance, row_product
from modulekge.shapes import Elements, Entities, Queries, Scores

Rows = Int[Tensor, "b k"]  # of the table of entities


def product(a: Algebra, s: Elements, v: Elements) -> Elements:
    r"""$s \odot v$, the paper's combination $S \times V \to V$."""
    return a.mul(s, v)


def pair(a: Algebra, s: Elements, v: Elements) -> Elements:
    """$(s, v)$ side by side, for a score that looks at the two apart."""
    return torch.cat([s, v], dim=-2)


def lift(a: Algebra, s: Elements, v: Elements) -> Elements:
    r"""$s\, \frac{i + x}{|i + x|} e^{i\theta}$: over $x \in S^2$ on its Hopf fibre, the point at $\theta$.

    At $x = -i$, where the fibre's start is not defined, $i + x$ is kept off 0.
    """
    x, fibre = v[..., :3, :], v[..., 3:, :]
    start = torch.cat([torch.zeros_like(x[..., :1, :]), 1 + x[..., :1, :], x[..., 1:, :]], dim=-2)
    length = N(start).unsqueeze(-2).clamp(min=torch.finfo(v.dtype).eps).sqrt()
    return s * a.mul(start / length, fibre)


@dataclass(frozen=True)
class Score:
    """How scalar and vector are joined, and how a query meets entities: all, or those its row names."""

    name: str
    join: Callable[[Algebra, Elements, Elements], Elements]
    all_pairs: Callable[[Queries, Entities, Float[Tensor, " weights"]], Scores]
    each: Callable[[Queries, Entities, Rows, Float[Tensor, " weights"]], Float[Tensor, "b k"]]
    weights: tuple[float, ...] = ()  # learned; where they start


def inner(q: Queries, t: Entities, weights: Float[Tensor, " 0"]) -> Scores:
    r"""$\langle q, t \rangle$, which the paper calls cosine."""
    scores: Tensor = _Products.apply(q.flatten(1), t.flatten(1))  # type: ignore[no-untyped-call]
    return scores


class _Products(torch.autograd.Function):
    """$q t^T$, whose gradients by $t$ lie in memory as $t$ does; gradients that nobody wants are not made."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, t: Tensor) -> Tensor:
        ctx.save_for_backward(q, t)
        return q @ t.T

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        (q, t), (by_q, by_t) = ctx.saved_tensors, ctx.needs_input_grad
        return (
            (grad @ t.to(grad.dtype)).to(q.dtype) if by_q else None,
            (grad.T @ q.to(grad.dtype)).to(t.dtype) if by_t else None,
        )


def distance(q: Queries, t: Entities, weights: Float[Tensor, " 0"]) -> Scores:
    r"""$-\sum_i |q_i - t_i|$: minus a sum of moduli."""
    return -block_distance(q, t)


def euclidean(q: Queries, t: Entities, weights: Float[Tensor, " 0"]) -> Scores:
    r"""$-\lVert q - t \rVert_2$ over all components of all blocks."""
    return -torch.cdist(q.flatten(1), t.flatten(1))


def squared(q: Queries, t: Entities, weights: Float[Tensor, " 0"]) -> Scores:
    r"""$-\lVert q - t \rVert_2^2 = 2 \langle q, t \rangle - \lVert q \rVert^2 - \lVert t \rVert^2$."""
    q, t = q.flatten(1), t.flatten(1)
    return 2 * q @ t.T - q.square().sum(1, keepdim=True) - t.square().sum(1)


def weighted(q: Queries, t: Entities, weights: Float[Tensor, " 0"]) -> Scores:
    r"""$-\frac1n \sum_i w_i |q_i - t_i|$ of a query $(q, w)$."""
    return -block_distance(q[:, :-1], t, q[:, -1]) / q.shape[-1]


def split(q: Queries, t: Entities, weights: Float[Tensor, " 2"]) -> Scores:
    r"""$-w_1 \lVert a - c \cdot m_t \rVert_2 - \frac{w_2}{2} \sum_i |q_i - t_i|$, HAKE's score.

    Of a query $(a, c, q)$ and an entity $(m_t, t)$ with $q, t$ on circles, where
    $\frac12 |e^{i\alpha} - e^{i\beta}| = |\sin\frac{\alpha - \beta}2|$.
    """
    a, c, m = q[:, 0], q[:, 1], t[:, 0]
    squares = a.square().sum(-1, keepdim=True) - 2 * (a * c) @ m.T + c.square() @ m.square().T
    return -weights[0] * _root(squares) - weights[1] / 2 * block_distance(q[:, 2:], t[:, 1:])


def _root(squares: Tensor) -> Tensor:
    """Rounding can leave a sum of squares below 0, and at 0 the root has no gradient."""
    return squares.clamp(min=torch.finfo(squares.dtype).tiny).sqrt()


def _named(t: Entities, rows: Rows) -> Float[Tensor, "b k _d n"]:
    named: Tensor = t.index_select(0, rows.flatten()).unflatten(0, rows.shape)
    return named


def _each_inner(q: Queries, t: Entities, rows: Rows, weights: Tensor) -> Tensor:
    return row_product(q.flatten(1), t.flatten(1), rows)


def _each_distance(q: Queries, t: Entities, rows: Rows, weights: Tensor) -> Tensor:
    return -row_distance(q, t, rows)


def _each_euclidean(q: Queries, t: Entities, rows: Rows, weights: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(q[:, None] - _named(t, rows), dim=(-2, -1))
    return -length


def _each_squared(q: Queries, t: Entities, rows: Rows, weights: Tensor) -> Tensor:
    return -(q[:, None] - _named(t, rows)).square().sum((-2, -1))


def _each_weighted(q: Queries, t: Entities, rows: Rows, weights: Tensor) -> Tensor:
    return -row_distance(q[:, :-1], t, rows, q[:, -1]) / q.shape[-1]


def _each_split(q: Queries, t: Entities, rows: Rows, weights: Tensor) -> Tensor:
    m = _named(t[:, :1], rows)[..., 0, :]
    modulus = _root((q[:, None, 0] - q[:, None, 1] * m).square().sum(-1))
    return -weights[0] * modulus - weights[1] / 2 * row_distance(q[:, 2:], t[:, 1:], rows)


INNER = Score("inner", product, inner, _each_inner)
DISTANCE = Score("distance", product, distance, _each_distance)
EUCLIDEAN = Score("euclidean", product, euclidean, _each_euclidean)
SQUARED = Score("squared", product, squared, _each_squared)
WEIGHTED = Score("weighted", product, weighted, _each_weighted)
LIFTED = Score("lifted", lift, distance, _each_distance)
SPLIT = Score("split", pair, split, _each_split, weights=(1.0, 1.0))
SCORES = {score.name: score for score in (INNER, DISTANCE, EUCLIDEAN, SQUARED, WEIGHTED, LIFTED, SPLIT)}
