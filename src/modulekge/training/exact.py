"""The exact loss: every entity against every question, without an intermediate for all of them."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from modulekge.config import LossConfig
from modulekge.machine import kernels
from modulekge.models.model import Model
from modulekge.shapes import Queries, Scores
from modulekge.training.losses import Answers, Weights
from modulekge.training.tables import Tables

_MOST_SCORES = {"cpu": 1 << 26, "cuda": 1 << 28}  # held at a time


def exact(
    model: Model,
    queries: Queries,
    answers: Answers,
    weights: Weights | None,
    config: LossConfig,
    tables: Tables,
) -> tuple[Float[Tensor, ""], Queries]:
    r"""$\sum_b w_b (\rho(f_b) - \sum_e y_{be} f_{be}) / \sum_b w_b$, and its slopes by the queries.

    $\rho$ is the logarithm of the sum of exponentials (softmax) or the sum of softplus (logistic), and
    $y = (1 - \epsilon) [e = t] + \epsilon / |E|$; of several answers softmax takes the mean. The slopes
    by the entities go to the tables, those by biases and weights of the score become their ``grad``.

    Entities are built, scored and given their slopes span by span. Where there is more than one span,
    softmax scores them twice: for the sums, then for the slopes.
    """
    b, n_entities = len(queries), len(model.entity_scalar)
    spans = _spans(n_entities, max(1, _MOST_SCORES[queries.device.type] // b))
    softmax, smooth = config.kind == "softmax", config.smoothing / n_entities
    share = queries.new_full((b,), 1 / b) if weights is None else weights / weights.sum()
    amounts = queries.new_full((len(answers.rows),), 1 - config.smoothing)
    if softmax and config.answers == "all":
        amounts = amounts / answers.count(queries.flatten(1))[answers.rows]
    sums = None
    if softmax and len(spans) > 1:
        with torch.no_grad():
            parts = (_Span(model, queries, span, tables).scores.logsumexp(1) for span in spans)
            sums = torch.stack(list(parts)).logsumexp(0)
    total, slopes = queries.new_zeros(b), torch.zeros_like(queries)
    for span in spans:
        part = _Span(model, queries, span, tables)
        scores = part.scores
        cells = _Cells(scores, answers, span)
        total -= cells.total(amounts)
        if smooth:
            total -= smooth * scores.sum(1)
        if softmax:
            sums = softmax_(scores, sums, share, smooth)
        else:
            total += F.softplus(scores).sum(1)
            scores.sigmoid_().sub_(smooth).mul_(share[:, None])
        cells.subtract_(amounts * share[answers.rows])
        slopes += part.pull()
    if sums is not None:
        total += sums
    return (share * total).sum(), slopes


def _spans(count: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


class _Span:
    """The entities of a span, scored for every query; the scores are then made their own slopes."""

    def __init__(self, model: Model, queries: Queries, span: slice, tables: Tables) -> None:
        self._model, self._tables, self._span = model, tables, span
        entities = tables.build(span)
        self._inputs = [x.detach().requires_grad_() for x in (queries, entities, model.score_weights)]
        self._made = model.spec.score.all_pairs(*self._inputs)
        self._whole = self._made.detach().to(queries.dtype)
        self.scores: Scores = self._whole[:, : span.stop - span.start]
        if len(model.entity_bias):
            self.scores += model.entity_bias.detach()[span]

    def pull(self) -> Queries:
        """Give the tables what the scores, now slopes, make of them; return the slopes by the queries."""
        model, bias = self._model, self._model.entity_bias
        if self.scores.shape[1] < self._whole.shape[1]:
            self._whole[:, self.scores.shape[1] :] = 0
        of_queries, of_entities, of_weights = torch.autograd.grad(
            self._made, self._inputs, self._whole.to(self._made.dtype), allow_unused=True
        )
        self._tables.pull(self._span, of_entities)
        if len(bias):
            bias.grad = torch.zeros_like(bias) if bias.grad is None else bias.grad
            bias.grad[self._span] = self.scores.sum(0)
        if of_weights is not None:
            before = model.score_weights.grad
            model.score_weights.grad = of_weights if before is None else before + of_weights
        return of_queries


class _Cells:
    """The answers among the scores of a span; those elsewhere count nothing."""

    def __init__(self, scores: Scores, answers: Answers, span: slice) -> None:
        column = answers.columns - span.start
        inside = (column >= 0) & (column < scores.shape[1])
        self._rows, self._inside, self._questions = answers.rows, inside.to(scores.dtype), len(scores)
        stride = scores.stride(0)
        self._flat = scores.as_strided(((len(scores) - 1) * stride + scores.shape[1],), (1,))
        self._places = answers.rows * stride + column.clamp(0, scores.shape[1] - 1)

    def total(self, amounts: Tensor) -> Float[Tensor, " b"]:
        """Return the sum of each question's scores times amounts."""
        values = self._flat[self._places] * self._inside * amounts
        total: Tensor = values.new_zeros(self._questions).index_add_(0, self._rows, values)
        return total

    def subtract_(self, amounts: Tensor) -> None:
        self._flat.index_add_(0, self._places, -self._inside * amounts)


def softmax_(
    scores: Scores, sums: Float[Tensor, " b"] | None, share: Float[Tensor, " b"], smooth: float
) -> Float[Tensor, " b"]:
    r"""$f \leftarrow w (\exp(f - \log\sum\exp f) - \epsilon / |E|)$ in place; return the $\log\sum\exp f$.

    The sums are those of these scores, unless given.
    """
    if gpu := kernels("modulekge.training.kernels", scores):
        return gpu.softmax_(scores, sums, share, smooth)  # type: ignore[no-any-return]
    if sums is None:
        top = scores.max(1)
        torch.softmax(scores, 1, out=scores)
        sums = top.values - scores.gather(1, top.indices[:, None])[:, 0].log()
    else:
        scores.sub_(sums[:, None]).exp_()
    if smooth:
        scores.sub_(smooth)
    scores.mul_(share[:, None])
    return sums
