"""Parametrizations: how stored numbers describe the elements of a group, and where training starts."""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi
from typing import Literal

import torch
from torch import Generator, Tensor

from modulekge.algebra.norms import N, modulus
from modulekge.shapes import Elements, Numbers

GroupKind = Literal["one", "free", "unit", "mixed"]


@dataclass(frozen=True)
class Parametrization:
    r"""How real numbers name the elements of a group: $\mathbb R^w \to \mathbb R^d$."""

    name: str
    kind: GroupKind
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
    r"""$x / |x|$; an $x$ so near 0 that the gradient, of order $N(x)^{-3/2}$, overflows counts as $1 + x$."""
    if x.shape[-2] == 0:
        return _one(x)
    norm = N(x).unsqueeze(-2)
    zero = norm < 2 * torch.finfo(x.dtype).max ** (-2 / 3)
    first = torch.arange(x.shape[-2], device=x.device).unsqueeze(-1) == 0  # as a mask, loops stay one
    unit: Tensor = x * norm.masked_fill(zero, 1).rsqrt() + (zero & first)
    return unit


def _exponential(u: Numbers) -> Elements:
    r"""$\exp u = \cos|u| + \frac{u}{|u|} \sin|u|$ of an imaginary $u$."""
    if u.shape[-2] == 0:
        return _one(u)
    angle = modulus(u).unsqueeze(-2)
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


def _motion(x: Numbers) -> Elements:
    r"""$(b, e^u)$ with any $b$ and an imaginary $u$."""
    b, u = x.split([x.shape[-2] // 2 + 1, x.shape[-2] // 2], dim=-2)
    return torch.cat([b, _exponential(u)], dim=-2)


def _motion_start(shape: tuple[int, ...], generator: Generator) -> Tensor:
    half = shape[-2] // 2
    b = 1e-3 * _normal((*shape[:-2], half + 1, shape[-1]), generator)
    return torch.cat([b, _angles((*shape[:-2], half, shape[-1]), generator)], dim=-2)


ONE = Parametrization("one", "one", lambda d: 0, lambda d: 0, _one, _normal)
FREE = Parametrization("free", "free", lambda d: d, lambda d: d, lambda x: x, _normal)
NORMALISED = Parametrization(
    "normalised", "unit", lambda d: d if d > 1 else 0, lambda d: d - 1, _normalised, _normal
)
EXPONENTIAL = Parametrization("exponential", "unit", lambda d: d - 1, lambda d: d - 1, _exponential, _angles)
ANGLES = Parametrization("angles", "unit", lambda d: d - 1, lambda d: d - 1, _hyperspherical, _angles)
MIXTURE = Parametrization("mixture", "mixed", lambda d: 2, lambda d: 2, _mixture, _mixture_start)
MOTION = Parametrization("motion", "mixed", lambda d: d - 1, lambda d: d - 1, _motion, _motion_start)

UNIT_PARAMETRIZATIONS = {
    parametrization.name: parametrization for parametrization in (NORMALISED, EXPONENTIAL, ANGLES)
}
