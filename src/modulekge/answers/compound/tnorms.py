"""T-norms: what "and" and "or" make of two values between 0 and 1."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from modulekge.choices import T_NORMS
from modulekge.errors import one_of

Values = Float[Tensor, "..."]


@dataclass(frozen=True)
class TNorm:
    r"""$\top(x, y)$ and $\bot(x, y) = 1 - \top(1 - x, 1 - y)$: monotone, so that maxima move inside."""

    name: str
    both: Callable[[Values, Values], Values]
    either: Callable[[Values, Values], Values]


PRODUCT = TNorm("product", lambda x, y: x * y, lambda x, y: x + y - x * y)
GODEL = TNorm("godel", torch.minimum, torch.maximum)
LUKASIEWICZ = TNorm("lukasiewicz", lambda x, y: (x + y - 1).clamp(min=0), lambda x, y: (x + y).clamp(max=1))
_BY_NAME = dict(zip(T_NORMS, (PRODUCT, GODEL, LUKASIEWICZ), strict=True))


def find_t_norm(name: str) -> TNorm:
    """Return the t-norm of a name."""
    return one_of("t-norm", name, _BY_NAME)
