"""The groups of Table 1: where scalars and vectors live, and what relations do to them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from modulekge.algebra.algebra import ALGEBRAS, BIQUATERNIONS, Q8, Algebra, C, H, R
from modulekge.algebra.norms import N, modulus
from modulekge.algebra.parametrizations import FREE, MIXTURE, MOTION, NORMALISED, ONE, Parametrization
from modulekge.shapes import Elements, Numbers

_LEAST_WEIGHT = 0.01  # of a tail's modulus, where a modulus is made of a mixture


@dataclass(frozen=True)
class Group:
    """Elements multiplied in ``algebra``, each of whose factors is parametrized by itself."""

    name: str
    algebra: Algebra
    factors: tuple[int, ...]  # components of each factor
    parametrization: Parametrization

    @property
    def size(self) -> int:
        """$d$: how many components an element has."""
        return sum(self.factors)

    @property
    def width(self) -> int:
        """$w$: how many numbers are stored for one element."""
        return sum(map(self.parametrization.width, self.factors))

    @property
    def freedom(self) -> int:
        """The dimension of the group: how many numbers an element needs."""
        return sum(map(self.parametrization.freedom, self.factors))

    @property
    def trivial(self) -> bool:
        """The group is $1$ alone."""
        return self.freedom == 0

    def point(self, numbers: Numbers) -> Elements:
        """Return the elements these numbers name."""
        if len(self.factors) == 1:
            return self.parametrization.point(numbers)
        widths = [self.parametrization.width(d) for d in self.factors]
        return torch.cat([self.parametrization.point(part) for part in numbers.split(widths, dim=-2)], dim=-2)

    def parametrized(self, parametrization: Parametrization) -> "Group":
        """Return the same group under another parametrization, if it is one of unit elements."""
        return replace(self, parametrization=parametrization) if self.parametrization.kind == "unit" else self


def scalars(a: Algebra) -> Group:
    """All elements of $A$: a scalar group, and the scaling group $GL(1, A)$."""
    return Group(a.name, a, (a.dim,), FREE)


def units(a: Algebra, name: str = "") -> Group:
    r"""The elements of modulus 1 of $A$: a vector group, and a rotation group.

    Of $\mathbb R$ only the component of the identity, $1$.
    """
    return Group(name or a.name, a, (a.dim,), NORMALISED)


TRIVIAL = Group("1", R, (1,), ONE)
PLANE = units(C, "R^2")  # R^2 is C without its product
SPACE = Group("R^3", H, (3,), NORMALISED)  # R^3 is the imaginary part of H
FIBRED = Group("R^3 x S^1", H, (3, 2), NORMALISED)  # each point of space with a point of its Hopf fibre

FREE_SPACE = replace(SPACE, parametrization=FREE)
SCALARS = {g.name: g for g in (TRIVIAL, *map(scalars, (*ALGEBRAS, BIQUATERNIONS, Q8)), FREE_SPACE)}
VECTORS = {g.name: g for g in (TRIVIAL, *map(units, ALGEBRAS), PLANE, SPACE, FIBRED)}


def _whole(g: Elements) -> Elements:
    return g


@dataclass(frozen=True)
class Operation:
    """How an element of a group moves what it acts on, and what undoes or mirrors that.

    ``adjoint`` gives the element with which a question is asked the other way round: the score of
    (h, r, t) is that of t moved by it and compared with h. An operation without one asks for a relation of
    its own.
    """

    name: str
    act: Callable[[Algebra, Elements, Elements], Elements]
    adjoint: Callable[[Algebra, Elements], Elements] | None
    measured: Callable[[Elements], Elements] = _whole  # the part of an element whose norm a regularizer takes
    added: Callable[[Elements], Elements] | None = None  # the part that is added to what is then multiplied
    moved: Callable[[Elements], Elements] = _whole  # of what was moved, what can be moved again
    side: Literal["left", "right", ""] = ""  # from which it multiplies: then it is linear in the element
    adds: bool = False  # it adds an element, or a part of one
    turns: bool = False  # it turns space, R^3
    weighs: bool = False  # what is moved ends with a weight, for a score that takes it
    keeps: bool = False  # it keeps distances up to that weight, whatever the element


def _conj(a: Algebra, g: Elements) -> Elements:
    return a.conj(g)


def _turn(a: Algebra, g: Elements, x: Elements) -> Elements:
    r"""$g x \bar g$ of an imaginary $x$; components after the third are left alone."""
    pure = torch.cat([torch.zeros_like(x[..., :1, :]), x[..., :3, :]], dim=-2)
    moved = a.mul(a.mul(g, pure), a.conj(g))[..., 1:, :]
    return torch.cat([moved, x[..., 3:, :]], dim=-2) if x.shape[-2] > 3 else moved


def _mix(a: Algebra, g: Elements, x: Elements) -> Elements:
    r"""$(x (m + b),\; 1 - b)$ for $g = (m, b)$: HAKE's moved modulus and the weight of the tail's."""
    m, b = g[..., :1, :], g[..., 1:, :]
    return torch.cat([x * (m + b), 1 - b], dim=-2)


def _mix_back(a: Algebra, g: Elements) -> Elements:
    """$(m, 1 - m - b)$, which exchanges $m + b$ and $1 - b$."""
    m, b = g[..., :1, :], g[..., 1:, :]
    return torch.cat([m, 1 - m - b], dim=-2)


def _unmixed(x: Elements) -> Elements:
    r"""$x (m + b) / (1 - b)$, the tail's modulus that fits best; of an element not yet moved, itself.

    Where $1 - b$ is 0 every modulus fits; the quotient is kept finite.
    """
    if x.shape[-2] == 1:
        return x
    return x[..., :1, :] / x[..., 1:, :].clamp(min=_LEAST_WEIGHT)


def _stretch(a: Algebra, g: Elements, x: Elements) -> Elements:
    r"""$(g x \bar g / \rho,\; \frac12 (1 + 1/\rho))$ with $\rho = |g|$: space turned and stretched.

    With the weight a distance from there is the mean of those that $\rho$ makes there and back.
    """
    stretch = modulus(g).unsqueeze(-2)
    return torch.cat([_turn(a, g, x) / stretch, (1 + 1 / stretch) / 2], dim=-2)


def _shrink(a: Algebra, g: Elements) -> Elements:
    r"""$g^{-1} = \bar g / N(g)$, which turns back and stretches by $1/\rho$."""
    return a.conj(g) / (N(g).unsqueeze(-2) + torch.finfo(g.dtype).tiny)


def _affine(a: Algebra, g: Elements, x: Elements) -> Elements:
    """$(x + b) g$ for the element $(b, g)$."""
    return a.mul(x + g[..., : a.dim, :], g[..., a.dim :, :])


def _undone(a: Algebra, g: Elements) -> Elements:
    r"""$(-b u, \bar u)$, which undoes $x \mapsto (x + b) u$."""
    b, u = g[..., : a.dim, :], g[..., a.dim :, :]
    return torch.cat([-a.mul(b, u), a.conj(u)], dim=-2)


left = Operation("left", lambda a, g, x: a.mul(g, x), _conj, side="left")
right = Operation("right", lambda a, g, x: a.mul(x, g), _conj, side="right")
both = Operation("both", _turn, _conj, turns=True)
shift = Operation("shift", lambda a, g, x: x + g, lambda a, g: -g, adds=True)
affine = Operation(
    "affine", _affine, None, lambda g: g.chunk(2, dim=-2)[1], lambda g: g.chunk(2, dim=-2)[0], adds=True
)
moving = Operation("moving", _affine, _undone, lambda g: g.chunk(2, dim=-2)[1], adds=True)
mixed = Operation("mixed", _mix, _mix_back, lambda g: g[..., :1, :], moved=_unmixed, weighs=True)
stretched = Operation(
    "stretched", _stretch, _shrink, moved=lambda x: x[..., :3, :], turns=True, weighs=True, keeps=True
)


@dataclass(frozen=True)
class Action:
    r"""A group acting on elements, $x \mapsto T_g(x)$."""

    name: str
    group: Group
    operation: Operation

    def move(
        self, numbers: Numbers, x: Elements, a: Algebra, back: Bool[Tensor, " b"] | None = None
    ) -> Elements:
        r"""$T_g(x)$ in $A$ for the $g$ that these numbers name; for its adjoint in rows that go ``back``.

        $A$ is the algebra of what is moved; that of the group lies in it.
        """
        if self.group.trivial:
            return x
        g = self.group.point(numbers)
        if back is not None and self.operation.adjoint is not None:
            g = torch.where(back[:, None, None], self.operation.adjoint(a, g), g)
        return self.operation.act(a, g, x)

    @property
    def linear(self) -> bool:
        """Whether what is moved is linear in the element."""
        return self.group.trivial or bool(self.operation.side)

    def parametrized(self, parametrization: Parametrization) -> "Action":
        """Return the same action with its group under another parametrization."""
        return replace(self, group=self.group.parametrized(parametrization))


def scaling(a: Algebra, operation: Operation = right) -> Action:
    """$GL(1, A)$: multiplication by any element."""
    return Action(_sided("GL(1)" if a is R else f"GL(1,{a.name})", a, operation), scalars(a), operation)


def rotation(a: Algebra, operation: Operation = right) -> Action:
    r"""$U(1)$ for $\mathbb C$, $U_{\mathbb H}(1)$ for $\mathbb H$: multiplication by a unit element."""
    return Action(_sided("U(1)" if a is C else f"U_{a.name}(1)", a, operation), units(a), operation)


def translation(a: Algebra) -> Action:
    """$(A, +)$: addition of any element."""
    return Action(f"({a.name},+)", scalars(a), shift)


def affinity(a: Algebra) -> Action:
    r"""$\mathrm{Aff}(1, A)$: addition of any element, then multiplication by any element."""
    return Action(f"Aff(1,{a.name})", Group(f"{a.name} x {a.name}", a, (2 * a.dim,), FREE), affine)


def motion(a: Algebra) -> Action:
    r"""$\mathrm{E}(1, A)$: addition of any element, then multiplication by a unit element."""
    return Action(f"E(1,{a.name})", Group(f"{a.name} x U_{a.name}(1)", a, (2 * a.dim,), MOTION), moving)


def _sided(name: str, a: Algebra, operation: Operation) -> str:
    """Where the side matters and is not the usual one (the right), the name says it."""
    return name if a.commutative or operation is right else f"{name} {operation.name}"


FIXED_SCALE = Action("S^f", TRIVIAL, right)
FIXED_TURN = Action("V^f", TRIVIAL, right)
SO2 = Action("SO(2)", PLANE, right)
SO3 = Action("SO(3)", units(H), both)
MIXED = Action("GL(1)+b", Group("R+b", R, (2,), MIXTURE), mixed)
STRETCH = Action("R+ x SO(3)", scalars(H), stretched)

_EVERY = (*ALGEBRAS, BIQUATERNIONS, Q8)
_TURNS = tuple(rotation(a, operation) for a in (C, H) for operation in (left, right))
SCALINGS = {
    action.name: action
    for action in (
        FIXED_SCALE, MIXED, SO3, STRETCH, *_TURNS, motion(C), motion(H),
        *(make(a) for make in (translation, affinity) for a in _EVERY),
        *(scaling(a, operation) for a in _EVERY for operation in (left, right)),
    )
}  # fmt: skip
ROTATIONS = {action.name: action for action in (FIXED_TURN, SO2, SO3, *_TURNS)}
