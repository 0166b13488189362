"""What a model needs to ask its candidates back."""

from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Back:
    r"""The weight $\lambda$ of what candidates say when asked back, and what their best answers score.

    $\max_c f_{r^{-1}}(e, c)$ of every entity $e$, for each relation $r$ for which it has been reckoned.
    """

    weight: float = 0.0
    best: dict[int, Tensor] = field(default_factory=dict)
