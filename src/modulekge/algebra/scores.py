"""Scores of section 4.3: how near a moved head is to every entity."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

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
class Search:
    """How an index finds the best entities: points of entities and of queries, and what compares them."""

    metric: Literal["ip", "l2sq"]  # the greatest inner product, or the least squared distance
    entities: Callable[[Entities], Entities] = lambda t: t
    queries: Callable[[Queries, Float[Tensor, " weights"]], Queries] = lambda q, weights: q


@dataclass(frozen=True)
class Score:
    """How scalar and vector are joined, and how a query meets entities: all, or those its row names.

    ``bilinear``: it is linear in the query and in the entity. ``weighs``: a query ends with weights, which
    the scaling makes; such a scaling and such a score go together by the name of the ``scaling``.
    """

    name: str
    join: Callable[[Algebra, Elements, Elements], Elements]
    all_pairs: Callable[[Queries, Entities, Float[Tensor, " weights"]], Scores]
    each: Callable[[Queries, Entities, Rows, Float[Tensor, " weights"]], Float[Tensor, "b k"]]
    numpy: str  # the scores of every entity for one query, for people who have the vectors alone
    search: Search = Search("l2sq")
    weights: tuple[float, ...] = ()  # learned; where they start
    bilinear: bool = False
    scaling: str = ""  # of the operation without which there is no such score


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


def _with_square(t: Entities) -> Entities:
    r"""$(t, |t|^2)$, where each question weighs the blocks differently."""
    return torch.cat([t, N(t)[:, None]], 1)


def _as_weighted_product(q: Queries, weights: Tensor) -> Queries:
    r"""What makes $-\sum_i w_i^2 |q_i - t_i|^2$ an inner product with $(t, |t|^2)$, but for a constant.

    The squares stand in for the score's sum of roots, which then ranks the candidates.
    """
    square = q[:, -1:].square()
    return torch.cat([2 * square * q[:, :-1], -square], 1)


def _as_split_product(q: Queries, weights: Tensor) -> Queries:
    r"""The same of HAKE's score, with entities $(m_t, t, m_t^2)$: the phases are of length 1."""
    moduli, phases = weights.square() * torch.tensor([1.0, 0.25]).to(q)
    a, c, turned = q[:, :1], q[:, 1:2], q[:, 2:]
    return torch.cat([2 * moduli * a * c, 2 * phases * turned, -moduli * c.square()], 1)


_MODULI = "scores = -np.linalg.norm(t - q, axis=1).sum(1)"
INNER = Score(
    "inner", product, inner, _each_inner, "scores = entities @ queries[0]", Search("ip"), bilinear=True
)
DISTANCE = Score("distance", product, distance, _each_distance, _MODULI)
EUCLIDEAN = Score(
    "euclidean", product, euclidean, _each_euclidean,
    "scores = -np.linalg.norm(entities - queries[0], axis=1)",
)  # fmt: skip
SQUARED = Score(
    "squared", product, squared, _each_squared, "scores = -np.square(entities - queries[0]).sum(1)"
)
WEIGHTED = Score(
    "weighted", product, weighted, _each_weighted,
    "scores = -(q[-1] * np.linalg.norm(t - q[:-1], axis=1)).mean(1)",
    Search("ip", _with_square, _as_weighted_product),
    scaling="stretched",
)  # fmt: skip
LIFTED = Score("lifted", lift, distance, _each_distance, _MODULI)
SPLIT = Score(
    "split", pair, split, _each_split,
    "modulus = np.linalg.norm(q[0] - q[1] * t[:, 0], axis=1)\n"
    "phase = np.linalg.norm(t[:, 1:] - q[2:], axis=1).sum(1)\n"
    "scores = -w[0] * modulus - w[1] / 2 * phase",
    Search("ip", lambda t: torch.cat([t, t[:, :1].square()], 1), _as_split_product),
    weights=(1.0, 1.0),
    scaling="mixed",
)  # fmt: skip
SCORES = {score.name: score for score in (INNER, DISTANCE, EUCLIDEAN, SQUARED, WEIGHTED, LIFTED, SPLIT)}
