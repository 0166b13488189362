"""Losses over the scores of all entities (section 4.6), for questions with one answer each."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from modulekge.data.dataset import Dataset
from modulekge.shapes import Ids, Scores

Weights = Float[Tensor, " e"]
Loss = Callable[[Scores, Ids, Weights | None, float], Float[Tensor, ""]]


def softmax(
    scores: Scores, answers: Ids, weights: Weights | None = None, smoothing: float = 0.0
) -> Float[Tensor, ""]:
    r"""$-\sum_e y_e \log \mathrm{softmax}(f)_e$, averaged over questions with weight $w_t$.

    $y = (1 - \epsilon) [e = t] + \epsilon / |E|$ with smoothing $\epsilon$.
    """
    logs = scores.float().log_softmax(1) if scores.dtype == torch.bfloat16 else scores.log_softmax(1)
    fit = logs.gather(1, answers[:, None])[:, 0]
    if smoothing:
        fit = (1 - smoothing) * fit + smoothing * logs.mean(1)
    return _average(-fit, answers, weights)


def logistic(
    scores: Scores, answers: Ids, weights: Weights | None = None, smoothing: float = 0.0
) -> Float[Tensor, ""]:
    r"""$\sum_e \log(1 + \exp(-y_e f_e))$ with $y_t = 1$ and $y_e = -1$ else, averaged likewise.

    The paper's $y = 0$ for the other entities would give them no gradient. Written as
    $\sum_e \mathrm{softplus}(f_e) - z_e f_e$, with $z$ smoothed as above.
    """
    scores = scores.float() if scores.dtype == torch.bfloat16 else scores
    fit = scores.gather(1, answers[:, None])[:, 0]
    if smoothing:
        fit = (1 - smoothing) * fit + smoothing * scores.mean(1)
    return _average(F.softplus(scores).sum(1) - fit, answers, weights)


LOSSES: dict[str, Loss] = {"softmax": softmax, "logistic": logistic}


def degree_weights(dataset: Dataset, share: float) -> Weights | None:
    r"""$w_e = 1 - a + a \deg(e) / \max \deg$, degrees counted in train; none where $a = 0$."""
    if share == 0:
        return None
    degrees = torch.bincount(dataset.train[:, [0, 2]].flatten(), minlength=len(dataset.entities))
    return 1 - share + share * degrees.float() / degrees.max()


def _average(losses: Float[Tensor, " b"], answers: Ids, weights: Weights | None) -> Float[Tensor, ""]:
    if weights is None:
        return losses.mean()
    chosen = weights[answers]
    return (chosen * losses).sum() / chosen.sum()
