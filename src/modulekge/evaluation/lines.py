"""Log-odds counted in cells, and the line through them that makes probabilities."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from modulekge.evaluation.odds import FARTHEST
from modulekge.shapes import Scores

_MOST_STEPS = 200
# Log-odds are counted in cells by the leading bits of a float32: sign, exponent, and 6 of the fraction, so
# that a cell is at most 1/64 of x wide; all below 1/64 are in the cell of 0
_BITS = 17  # that are left out


def _leading(x: float) -> int:
    """Return the leading bits of a positive number."""
    return int(torch.tensor(x, dtype=torch.float32).view(torch.int32)) >> _BITS


_LEAST = _leading(1 / 64)
_REACH = _leading(FARTHEST) - _LEAST
_EDGES = (torch.arange(_REACH + 2, dtype=torch.int32) + _LEAST << _BITS).view(torch.float32).double()
_ABOVE = (_EDGES[1:-1] + _EDGES[2:]) / 2
CENTRES = torch.cat([-_ABOVE.flip(0), torch.zeros(1), _ABOVE])


def cells_of(odds: Scores) -> Int[Tensor, "b e"]:
    """Return the cell of each log-odds."""
    bits = odds.float().view(torch.int32)
    far = ((bits & 0x7FFFFFFF) >> _BITS).sub_(_LEAST).clamp_(0, _REACH)
    return torch.where(bits < 0, -far, far).long().add_(_REACH)


def fit_line(cells: Float[Tensor, "2 c"], odds: Float[Tensor, " c"]) -> tuple[float, float]:
    r"""The $(a \ge 0, b)$ of greatest likelihood, of so many false and true candidates at each log-odds.

    By Newton's method, each step halved until it is one forward, in sums alone: what LAPACK makes of the same
    numbers depends on where they lie in memory. The targets are Platt's, $(N_+ + 1) / (N_+ + 2)$ and
    $1 / (N_- + 2)$, for which the best line is finite even where true and false lie apart. Without
    candidates it is the plain softmax.
    """
    if not cells.any():
        return 1.0, 0.0
    false, true = cells[0].sum(), cells[1].sum()
    weight = cells.sum(0)
    target = cells[0] / (false + 2) + cells[1] * (true + 1) / (true + 2)
    here = weight > 0
    x, weight, target = odds[here], weight[here], target[here]

    def loss(line: Tensor) -> Tensor:
        z = line[0] * x + line[1]
        return (weight * torch.nn.functional.softplus(z) - target * z).sum()

    base = torch.logit(target.sum() / weight.sum())
    line = torch.stack([torch.zeros_like(base), base])
    now = loss(line)
    for _ in range(_MOST_STEPS):
        chance = (line[0] * x + line[1]).sigmoid()
        step = _newton(x, weight * chance - target, weight * chance * (1 - chance))
        while (after := loss(line - step)) > now and step.abs().max() > 0:
            step = step / 2
        gained, line, now = now - after, line - step, after
        if gained <= 1e-12 * now:
            break
    a, b = (line if line[0] >= 0 else torch.stack([torch.zeros_like(base), base])).tolist()
    return a, b


def _newton(
    x: Float[Tensor, " c"], gradient: Float[Tensor, " c"], curvature: Float[Tensor, " c"]
) -> Float[Tensor, "2"]:
    """The step of a line by gradients and curvatures at its points; it only rises where all are at one x."""
    total = curvature.sum()
    mean = (curvature * x).sum() / total
    spread = (curvature * (x - mean) ** 2).sum()
    apart = spread > 1e-24 * (curvature * x**2).sum()  # else it is what rounding left
    tilt = (gradient * (x - mean)).sum() / spread if apart else torch.zeros_like(mean)
    return torch.stack([tilt, gradient.sum() / total - mean * tilt])
