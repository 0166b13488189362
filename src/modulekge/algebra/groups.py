"""The groups of Table 1: where scalars and vectors live, and what relations do to them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import pi
from typing import Literal

import torch
from torch import Generator, Tensor

from modulekge.algebra.algebra import ALGEBRAS, Algebra, C, H, R
from modulekge.algebra.norms import N
from modulekge.shapes import Elements, Numbers

Kind = Literal["one", "free", "unit", "mixed"]


@dataclass(frozen=True)
class Chart:
    r"""How real numbers name the elements of a group: $\mathbb R^w \to \mathbb R^d$."""

    name: str
    kind: Kind
    width: Callable[[int], int]  # d -> w, the numbers stored for an element of d components
    freedom: Callable[[int], int]  # d -> the dimension of the group
    point: Callable[[Numbers], Elements]
    draw: Callable[[tuple[int, ...], Generator], Tensor]  # numbers to start from, of unit scale


def _normal(shape: tuple[int, ...], generator: Generator) -> Tensor:
    return torch.randn(shape, generator=generator)


def _angles(shape: tuple[int, ...], generator: Generator) -> Tensor:
    return (2 * torch.rand(shape, generator=generator) - 1) * pi


def _one(x: Numbers) -> Elements:
    """$1$, whatever the numbers (there are none)."""
    return x.new_ones(1).expand(*x.shape[:-2], 1, x.shape[-1])


def _normalised(x: Numbers) -> Elements:
    r"""$x / |x|$; an $x$ so near 0 that the slope, of order $N(x)^{-3/2}$, is no float counts as $1 + x$."""
    if x.shape[-2] == 0:
        return _one(x)
    norm = N(x).unsqueeze(-2)
    zero = norm < 2 * torch.finfo(x.dtype).max ** (-2 / 3)
    unit = x * norm.masked_fill(zero, 1).rsqrt()
    unit.narrow(-2, 0, 1).add_(zero)
    return unit


def _exponential(u: Numbers) -> Elements:
    r"""$\exp u = \cos|u| + \frac{u}{|u|} \sin|u|$ of an imaginary $u$."""
    if u.shape[-2] == 0:
        return _one(u)
    # The slope of |u| at 0 is undefined; the smallest float added makes it 0 there.
    angle = (N(u).unsqueeze(-2) + torch.finfo(u.dtype).tiny).sqrt()
    return torch.cat([angle.cos(), u * torch.sinc(angle / pi)], dim=-2)


def _hyperspherical(theta: Numbers) -> Elements:
    r"""$(\cos\alpha, \sin\alpha\cos\beta, \sin\alpha\sin\beta\cos\gamma, \dots)$."""
    rest = _one(theta)[..., 0, :]
    components = []
    for angle in theta.unbind(-2):
        components.append(rest * angle.cos())
        rest = rest * angle.sin()
    return torch.stack([*components, rest], dim=-2)


def _mixture(x: Numbers) -> Elements:
    r"""$(|m|, b)$ with $-|m| \le b \le 1$: HAKE's modulus and mixture bias."""
    m, b = x[..., :1, :].abs(), x[..., 1:, :]
    return torch.cat([m, torch.maximum(b.clamp(max=1), -m)], dim=-2)


def _mixture_start(shape: tuple[int, ...], generator: Generator) -> Tensor:
    return torch.cat([torch.ones(*shape[:-2], 1, shape[-1]), torch.zeros(*shape[:-2], 1, shape[-1])], -2)


ONE = Chart("one", "one", lambda d: 0, lambda d: 0, _one, _normal)
FREE = Chart("free", "free", lambda d: d, lambda d: d, lambda x: x, _normal)
NORMALISED = Chart("normalised", "unit", lambda d: d if d > 1 else 0, lambda d: d - 1, _normalised, _normal)
EXPONENTIAL = Chart("exponential", "unit", lambda d: d - 1, lambda d: d - 1, _exponential, _angles)
ANGLES = Chart("angles", "unit", lambda d: d - 1, lambda d: d - 1, _hyperspherical, _angles)
MIXTURE = Chart("mixture", "mixed", lambda d: 2, lambda d: 2, _mixture, _mixture_start)

UNIT_CHARTS = {chart.name: chart for chart in (NORMALISED, EXPONENTIAL, ANGLES)}


@dataclass(frozen=True)
class Group:
    """Elements of ``size`` components, multiplied in ``algebra``, named by the numbers of a chart."""

    name: str
    algebra: Algebra
    size: int
    chart: Chart

    @property
    def width(self) -> int:
        """$w$: how many numbers are stored for one element."""
        return self.chart.width(self.size)

    @property
    def freedom(self) -> int:
        """The dimension of the group: how many numbers an element needs."""
        return self.chart.freedom(self.size)

    @property
    def trivial(self) -> bool:
        """The group is $1$ alone."""
        return self.freedom == 0

    def point(self, numbers: Numbers) -> Elements:
        """Return the elements these numbers name."""
        return self.chart.point(numbers)

    def charted(self, chart: Chart) -> "Group":
        """Return the same group under another chart, if it is one of unit elements."""
        return replace(self, chart=chart) if self.chart.kind == "unit" else self


def scalars(a: Algebra) -> Group:
    """All elements of $A$: a scalar group, and the scaling group $GL(1, A)$."""
    return Group(a.name, a, a.dim, FREE)


def units(a: Algebra, name: str = "") -> Group:
    r"""The elements of modulus 1 of $A$: a vector group, and a rotation group.

    Of $\mathbb R$ only the component of the identity, $1$.
    """
    return Group(name or a.name, a, a.dim, NORMALISED)


TRIVIAL = Group("1", R, 1, ONE)
PLANE = units(C, "R^2")  # R^2 is C without its product
SPACE = Group("R^3", H, 3, NORMALISED)  # R^3 is the imaginary part of H

SCALARS = {g.name: g for g in (TRIVIAL, *map(scalars, ALGEBRAS))}
VECTORS = {g.name: g for g in (TRIVIAL, *map(units, ALGEBRAS), PLANE, SPACE)}

Law = Callable[[Algebra, Elements, Elements], Elements]


def left(a: Algebra, g: Elements, x: Elements) -> Elements:
    """$g x$."""
    return a.mul(g, x)


def right(a: Algebra, g: Elements, x: Elements) -> Elements:
    """$x g$."""
    return a.mul(x, g)


def both(a: Algebra, g: Elements, x: Elements) -> Elements:
    r"""$g x \bar g$ of an imaginary $x$: a turn of $\mathbb R^3$."""
    pure = torch.cat([torch.zeros_like(x[..., :1, :]), x], dim=-2)
    return a.mul(a.mul(g, pure), a.conj(g))[..., 1:, :]


def mixed(a: Algebra, g: Elements, x: Elements) -> Elements:
    r"""$(x (m + b),\; 1 - b)$ for $g = (m, b)$: HAKE's moved modulus and the weight of the tail's."""
    m, b = g[..., :1, :], g[..., 1:, :]
    return torch.cat([x * (m + b), 1 - b], dim=-2)


@dataclass(frozen=True)
class Action:
    r"""A group acting on elements, $x \mapsto T_g(x)$."""

    name: str
    group: Group
    law: Law

    def move(self, numbers: Numbers, x: Elements) -> Elements:
        r"""$T_g(x)$ for the $g$ that these numbers name."""
        if self.group.trivial:
            return x
        return self.law(self.group.algebra, self.group.point(numbers), x)

    def charted(self, chart: Chart) -> "Action":
        """Return the same action with its group under another chart."""
        return replace(self, group=self.group.charted(chart))


def scaling(a: Algebra, law: Law = right) -> Action:
    """$GL(1, A)$: multiplication by any element."""
    return Action(_sided("GL(1)" if a is R else f"GL(1,{a.name})", a, law), scalars(a), law)


def rotation(a: Algebra, law: Law = right) -> Action:
    r"""$U(1)$ for $\mathbb C$, $U_{\mathbb H}(1)$ for $\mathbb H$: multiplication by a unit element."""
    return Action(_sided("U(1)" if a is C else f"U_{a.name}(1)", a, law), units(a), law)


def _sided(name: str, a: Algebra, law: Law) -> str:
    """Where the side matters and is not the usual one (the right), the name says it."""
    return name if a.commutative or law is right else f"{name} {law.__name__}"


FIXED_SCALE = Action("S^f", TRIVIAL, right)
FIXED_TURN = Action("V^f", TRIVIAL, right)
SO2 = Action("SO(2)", PLANE, right)
SO3 = Action("SO(3)", units(H), both)
MIXED = Action("GL(1)+b", Group("R+b", R, 2, MIXTURE), mixed)

ACTIONS = {
    action.name: action
    for action in (
        FIXED_SCALE, FIXED_TURN, SO2, SO3, MIXED,
        *(make(a, law) for make in (scaling, rotation) for a in ALGEBRAS for law in (left, right)),
    )
}  # fmt: skip
