"""The norm maps of section 4.4: N of an element, and maps of an n-tuple to a real number."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from modulekge.shapes import Elements

NormMap = Callable[[Float[Tensor, "*rows n"], int], Float[Tensor, " *rows"]]


def N(x: Elements) -> Float[Tensor, "*rows n"]:
    r"""$N(x) = x \bar x = \sum_i x_i^2$: the *squared* modulus, as the paper defines it."""
    return x.square().sum(-2)


def modulus(x: Elements) -> Float[Tensor, "*rows n"]:
    r"""$|x| = \sqrt{N(x)}$; its gradient at 0 is undefined, and the smallest float added makes it 0 there."""
    return (N(x) + torch.finfo(x.dtype).tiny).sqrt()


def power(norms: Float[Tensor, "*rows n"], p: int) -> Float[Tensor, " *rows"]:
    r"""$\sum_i |x_i|^p$ from $N(x_i) = |x_i|^2$: the $p$-th power of the $L_p$ norm of the moduli."""
    return norms.pow(p / 2).sum(-1)


def rooted(norms: Float[Tensor, "*rows n"], p: int) -> Float[Tensor, " *rows"]:
    r"""$(\sum_i |x_i|^p)^{1/p}$: the $L_p$ norm of the moduli."""
    return _root(power(norms, p), p)


def G(norms: Float[Tensor, "*rows n"], p: int) -> Float[Tensor, " *rows"]:
    r"""$G_p(x) = (\sum_i N(x_i)^p)^{1/p}$: the paper's formula to the letter."""
    return _root(norms.pow(p).sum(-1), p)


def _root(total: Float[Tensor, " *rows"], p: int) -> Float[Tensor, " *rows"]:
    """The root's gradient is infinite at 0, where the sum under it has gradient 0: stay off that point."""
    return total.clamp(min=torch.finfo(total.dtype).tiny).pow(1 / p)


NORM_MAPS: dict[str, NormMap] = {"power": power, "rooted": rooted, "G": G}
