"""Finite-dimensional real algebras, each given by its structure constants."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from modulekge.shapes import Elements

Places = tuple[tuple[int, ...], ...]


def _places(signs: Int[Tensor, "i j d"]) -> Places:
    r"""Say which of $x_0, \dots, x_{d-1}, -x_0, \dots$ is $\sum_k s_{ijk} x_k$, one $s_{ijk}$ being not 0."""
    both = torch.cat([signs > 0, signs < 0], dim=-1)
    return tuple(tuple(row) for row in both.int().argmax(-1).tolist())


@dataclass(frozen=True, eq=False)
class Algebra:
    r"""A real algebra with basis $1 = e_0, \dots, e_{d-1}$ and $e_i e_j = \sum_k c_{ijk} e_k$."""

    name: str
    constants: Int[Tensor, "d d d"]
    _terms: tuple[tuple[tuple[int, int, int], ...], ...] = field(init=False, repr=False)
    _places: dict[str, Places] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Unroll the sum: per component $k$ of a product, the $(i, j, c_{ijk})$ that are not zero."""
        found = [tuple(c.nonzero().tolist()) for c in self.constants.unbind(-1)]
        terms = tuple(
            tuple((i, j, int(self.constants[i, j, k])) for i, j in pairs) for k, pairs in enumerate(found)
        )
        object.__setattr__(self, "_terms", terms)
        axes = {"left": (0, 2, 1), "right": (1, 2, 0), "pair": (0, 1, 2)}
        places = {way: _places(self.constants.permute(order)) for way, order in axes.items()}
        object.__setattr__(self, "_places", places)

    @property
    def dim(self) -> int:
        """$d$, the number of components of an element."""
        return len(self._terms)

    @cached_property
    def commutative(self) -> bool:
        """$e_i e_j = e_j e_i$ for all $i, j$."""
        return torch.equal(self.constants, self.constants.transpose(0, 1))

    def mul(self, x: Elements, y: Elements) -> Elements:
        r"""$xy$, with $(xy)_k = \sum_{ij} c_{ijk} x_i y_j$.

        An operand with fewer components lies in the span of its first basis elements, so that a
        shorter $x$ times $y$ is the module map $S \times V \to V$ of the paper.
        """
        if max(x.shape[-2], y.shape[-2]) > self.dim:
            raise ValueError(f"{x.shape[-2]} and {y.shape[-2]} components do not lie in {self.name}")
        if x.shape[-2] == 1 or y.shape[-2] == 1:
            return x * y  # R is central in every algebra
        return torch.stack(self.products(x.unbind(-2), y.unbind(-2)), dim=-2)

    def products(self, xs: Sequence[Tensor], ys: Sequence[Tensor]) -> list[Tensor]:
        r"""$(xy)_k$ of the components of $x$ and $y$; those that no $c_{ijk}$ reaches are left out."""
        components = []
        for terms in self._terms:
            pairs = [(xs[i], ys[j], c) for i, j, c in terms if i < len(xs) and j < len(ys)]
            if pairs:
                (x, y, c), *rest = pairs
                total = x * y if c == 1 else c * x * y
                for x, y, c in rest:
                    total = torch.addcmul(total, x, y, value=c)
                components.append(total)
        return components

    def by_basis(
        self, x: Elements, way: Literal["left", "right", "pair"], rows: int, columns: int
    ) -> Float[Tensor, "*b rows columns n"]:
        r"""$(e_i x)_j$, $(x e_i)_j$ or, of a pair, $\langle e_i e_j, x \rangle$, for the first $i$ and $j$.

        A product of basis elements is one of them but for its sign, so nothing need be multiplied.
        """
        signed = torch.cat([x, -x], dim=-2).unbind(-2)
        table = [place for row in self._places[way][:rows] for place in row[:columns]]
        stacked = torch.stack([signed[place] for place in table], dim=-2)
        return stacked.reshape(*x.shape[:-2], rows, columns, x.shape[-1])

    def conj(self, x: Elements) -> Elements:
        r"""$\bar x = x_0 e_0 - \sum_{i>0} x_i e_i$."""
        return torch.cat([x[..., :1, :], -x[..., 1:, :]], dim=-2)

    def __repr__(self) -> str:
        return self.name


def double(a: Algebra, name: str) -> Algebra:
    r"""Cayley-Dickson: pairs over $A$ with $(p, q)(r, s) = (pr - \bar s q,\; sp + q \bar r)$.

    $A$ is kept as the span of the first basis elements; no sign is typed by hand.
    """
    d, c = a.dim, a.constants
    bar = torch.tensor([1] + [-1] * (d - 1))
    out = c.new_zeros(2 * d, 2 * d, 2 * d)
    out[:d, :d, :d] = c  # p r
    out[d:, d:, :d] = -(bar[:, None, None] * c).transpose(0, 1)  # -conj(s) q
    out[:d, d:, d:] = c.transpose(0, 1)  # s p
    out[d:, :d, d:] = c * bar[:, None]  # q conj(r)
    return Algebra(name, out)


def tensor(a: Algebra, b: Algebra, name: str) -> Algebra:
    r"""$A \otimes B$: basis $e_i \otimes f_j$, multiplied factor by factor."""
    d = a.dim * b.dim
    return Algebra(name, torch.einsum("ijk,pqr->ipjqkr", a.constants, b.constants).reshape(d, d, d))


def group_algebra(a: Algebra, name: str) -> Algebra:
    r"""$\mathbb R[G]$ of the group $G = \{\pm e_0, \dots, \pm e_{d-1}\}$: basis $e_i$, then $-e_i$."""
    d = a.dim
    out = a.constants.new_zeros(2, d, 2, d, 2, d)
    for i, j, k in a.constants.nonzero().tolist():
        negative = int(a.constants[i, j, k] < 0)
        for p, q in ((0, 0), (0, 1), (1, 0), (1, 1)):
            out[p, i, q, j, (p + q + negative) % 2, k] = 1
    return Algebra(name, out.reshape(2 * d, 2 * d, 2 * d))


R = Algebra("R", torch.ones(1, 1, 1, dtype=torch.int64))
C = double(R, "C")
H = double(C, "H")
ALGEBRAS = (R, C, H)
BIQUATERNIONS = tensor(H, C, "H_C")
Q8 = group_algebra(H, "R[Q8]")  # of the quaternion group of eight elements
