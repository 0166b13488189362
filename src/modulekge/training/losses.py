"""Losses over the scores of candidates (section 4.6), for questions with one answer or several."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from modulekge.config import LossConfig
from modulekge.shapes import Scores

Weights = Float[Tensor, " b"]


@dataclass(frozen=True, eq=False)
class Answers:
    """Where the answers stand: ``columns[i]`` of the candidates answers question ``rows[i]``."""

    rows: Int[Tensor, " answers"]
    columns: Int[Tensor, " answers"]

    def total(self, values: Scores) -> Float[Tensor, " b"]:
        """Return the sum of the values at the answers of each question."""
        return values.new_zeros(len(values)).index_add(0, self.rows, values[self.rows, self.columns])

    def count(self, values: Scores) -> Float[Tensor, " b"]:
        """Return how many answers each question has."""
        return values.new_zeros(len(values)).index_add(0, self.rows, values.new_ones(len(self.rows)))


def softmax(scores: Scores, answers: Answers, config: LossConfig) -> Float[Tensor, " b"]:
    r"""$-\sum_e y_e \log \mathrm{softmax}(f)_e$ with $y = (1 - \epsilon) [e = t] + \epsilon / |E|$.

    Of several answers, the mean.
    """
    logs = scores.log_softmax(1)
    fit = answers.total(logs) / answers.count(logs)
    if config.smoothing:
        fit = (1 - config.smoothing) * fit + config.smoothing * logs.mean(1)
    return -fit


def logistic(scores: Scores, answers: Answers, config: LossConfig) -> Float[Tensor, " b"]:
    r"""$\sum_e \log(1 + \exp(-y_e f_e))$ with $y = 1$ for answers and $-1$ for the others.

    The paper's $y = 0$ for the others would give them no gradient. Written as
    $\sum_e \mathrm{softplus}(f_e) - z_e f_e$, with $z = (1 - \epsilon) [e = t] + \epsilon / |E|$.
    """
    fit = answers.total(scores)
    if config.smoothing:
        fit = (1 - config.smoothing) * fit + config.smoothing * scores.mean(1)
    return F.softplus(scores).sum(1) - fit


def self_adversarial(scores: Scores, answers: Answers, config: LossConfig) -> Float[Tensor, " b"]:
    r"""$-\frac12 [\log\sigma(\gamma + f_t) + \sum_e p_e \log\sigma(-\gamma - f_e)]$ over the negatives $e$.

    $p = \mathrm{softmax}(\alpha f)$ among them, taken as given: self-adversarial weights (Sun et al. 2019).
    """
    f = config.margin + scores
    right = answers.total(F.logsigmoid(f)) / answers.count(f)
    wrong = f.index_put((answers.rows, answers.columns), f.new_full((), -torch.inf))
    none = wrong.detach() == -torch.inf  # the answer, negatives known to be true: perhaps all there are
    chance = (
        (config.temperature * wrong.detach()).masked_fill(none, -torch.inf).softmax(1).masked_fill(none, 0)
    )
    return -(right + (chance * F.logsigmoid(-wrong)).sum(1)) / 2


LOSSES: dict[str, Callable[[Scores, Answers, LossConfig], Float[Tensor, " b"]]] = {
    "softmax": softmax,
    "logistic": logistic,
    "self-adversarial": self_adversarial,
}


def average(losses: Float[Tensor, " b"], weights: Weights | None) -> Float[Tensor, ""]:
    r"""$\sum w_i \ell_i / \sum w_i$."""
    return losses.mean() if weights is None else (weights * losses).sum() / weights.sum()
