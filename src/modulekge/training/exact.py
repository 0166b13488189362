"""The exact loss: every entity against every question, without an intermediate for all of them."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from modulekge.config import LossConfig
from modulekge.machine import kernels
from modulekge.models.model import Model
from modulekge.shapes import Elements, Numbers, Queries, Scores
from modulekge.training.losses import Answers, Weights

Build = Callable[[Numbers, Numbers], Elements]
_MOST_SCORES = {"cpu": 1 << 26, "cuda": 1 << 28}  # held at a time


def exact(
    model: Model,
    queries: Queries,
    answers: Answers,
    weights: Weights | None,
    config: LossConfig,
    build: Build | None = None,
) -> tuple[Float[Tensor, ""], Queries]:
    r"""$\sum_b w_b (\rho(f_b) - \sum_e y_{be} f_{be}) / \sum_b w_b$, and its slopes by the queries.

    $\rho$ is the logarithm of the sum of exponentials (softmax) or the sum of softplus (logistic), and
    $y = (1 - \epsilon) [e = t] + \epsilon / |E|$; of several answers softmax takes the mean. The slopes
    by the model's tables of entities become their ``grad``.

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
            parts = (_Span(model, queries, span, build).scores.logsumexp(1) for span in spans)
            sums = torch.stack(list(parts)).logsumexp(0)
    total, slopes = queries.new_zeros(b), torch.zeros_like(queries)
    for span in spans:
        part = _Span(model, queries, span, build)
        scores = part.scores.detach().to(queries.dtype)  # which soon become their own slopes
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
        slopes += part.pull(scores)
    if sums is not None:
        total += sums
    return (share * total).sum(), slopes


def _spans(count: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


class _Span:
    """The entities of a span, scored for every query, with the way back to the tables."""

    def __init__(self, model: Model, queries: Queries, span: slice, build: Build | None) -> None:
        def leaf(table: Tensor, rows: slice = span) -> Tensor:
            return table[rows].detach().requires_grad_()

        self._model, self._rows = model, span
        self._queries = queries.detach().requires_grad_()
        self._tables = (model.entity_scalar, model.entity_vector, model.entity_bias)
        self._leaves = [leaf(table) for table in self._tables]
        self._weights = leaf(model.score_weights, slice(None))
        scalar, vector, bias = self._leaves
        entities = (build or model.spec.entity)(scalar, vector)
        scores = model.spec.score.all_pairs(self._queries, entities, self._weights)
        self.scores: Scores = scores + bias if len(bias) else scores

    def pull(self, slopes: Scores) -> Queries:
        """Give the tables what these slopes of the scores make of them; return the slopes by queries."""
        inputs = (self._queries, self._weights, *self._leaves)
        of_queries, of_weights, *of_leaves = torch.autograd.grad(
            self.scores, inputs, slopes.to(self.scores.dtype), allow_unused=True
        )
        for table, grad in zip(self._tables, of_leaves, strict=True):
            if grad is not None and table.numel():
                self._give(table, grad)
        if of_weights is not None and of_weights.numel():
            before = self._model.score_weights.grad
            self._model.score_weights.grad = of_weights if before is None else before + of_weights
        return of_queries

    def _give(self, table: nn.Parameter, grad: Tensor) -> None:
        if len(grad) == len(table):
            table.grad = grad
        else:
            table.grad = torch.empty_like(table) if table.grad is None else table.grad
            table.grad[self._rows] = grad


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
