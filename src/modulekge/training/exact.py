"""The exact loss: every entity against every question, without an intermediate for all of them."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from modulekge.config import LossConfig
from modulekge.machine import kernels
from modulekge.models.embedding import Embedding
from modulekge.shapes import Queries, Scores
from modulekge.training.losses import Answers
from modulekge.training.tables import EVEN, Tables

PerQuestion = Float[Tensor, " b"]
_MOST_SCORES = {"cpu": 1 << 26, "cuda": 1 << 28}  # held at a time
_IN_CACHE = 1 << 19  # scores that stay in the cores' own caches from one operation to the next


def exact(
    model: Embedding,
    queries: Queries,
    target: "Target",
    kind: str,
    tables: Tables,
) -> tuple[Float[Tensor, ""], Queries]:
    r"""$\sum_b w_b (\rho(f_b) - \sum_e y_{be} f_{be}) / \sum_b w_b$, and its gradients by the queries.

    $\rho$ is the logarithm of the sum of exponentials (softmax) or the sum of softplus (logistic), and
    $y = (1 - \epsilon) [e = t] + \epsilon / |E|$; of several answers softmax takes the mean. The gradients
    by the entities go to the tables, those by biases and weights of the score become their ``grad``.

    Entities are built, scored and given their gradients span by span. Where there is more than one span,
    softmax scores them twice: for the sums, then for the gradients. Where processes hold the entities between
    them, each takes its own; they tell each other the sums of exponentials and the gradients by the queries.
    """
    b, count, workers = len(queries), len(model.entity_scalar), model.workers
    size = max(1, _MOST_SCORES[queries.device.type] // b // EVEN) * EVEN
    spans = [slice(start, min(start + size, count)) for start in range(0, count, size)]
    gpu = kernels("modulekge.kernels.step_triton", target.share)
    alone = len(spans) == workers.shards == 1 and len(target.columns) == b
    as_made = gpu is not None and kind == "softmax" and alone
    whole = _Span(model, queries, spans[0], tables, as_made) if len(spans) == 1 else None
    sums = None
    if kind == "softmax" and (workers.shards > 1 or not whole):
        with torch.no_grad():
            found = [(whole or _Span(model, queries, span, tables)).scores.logsumexp(1) for span in spans]
        sums = workers.log_sum_exp(torch.stack(found).logsumexp(0))
    losses, gradients = [], []
    for span in spans:
        part = whole or _Span(model, queries, span, tables)
        first = model.held.start + span.start
        if kind == "softmax":
            losses.append(softmax_(part.scores, target, first, sums))
        else:
            losses.append(logistic_(part.scores, target, first))
        gradients.append(part.pull())
    found = [_sum(losses).sum(), _sum(gradients)]
    if model.score_weights.grad is not None:
        found.append(model.score_weights.grad)
    loss, gradient, *of_weights = workers.sum(*found)
    if of_weights:
        model.score_weights.grad = of_weights[0]
    return loss if sums is None else loss + (target.share * sums).sum(), gradient


def _sum(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.stack(parts).sum(0)


@dataclass(frozen=True, eq=False)
class Target:
    """$y$, and the weight of each question."""

    columns: Int[Tensor, " answers"]  # answers, in the order of their questions
    rows: Int[Tensor, " answers"]
    starts: Int[Tensor, " b_plus_1"]  # where the answers of each question start
    amount: PerQuestion  # $y$ of an answer, but for what every entity has
    everywhere: float  # which is this
    share: PerQuestion

    @classmethod
    def of(cls, answers: Answers, share: PerQuestion, n_entities: int, config: LossConfig) -> "Target":
        """Return the target of questions that weigh so much, which in all is 1."""
        starts = torch.arange(len(share) + 1, device=share.device)
        amount = torch.full_like(share, 1 - config.smoothing)
        if config.targets == "all":
            starts = torch.searchsorted(answers.rows, starts)
            if config.kind == "softmax":
                amount = amount / starts.diff()
        return cls(answers.columns, answers.rows, starts, amount, config.smoothing / n_entities, share)


class _Span:
    """The entities of a span, scored for every query; the scores are then made their own gradients.

    They have the precision of the queries, or ``as_made`` that of the products.
    """

    def __init__(
        self, model: Embedding, queries: Queries, span: slice, tables: Tables, as_made: bool = False
    ) -> None:
        self._model, self._tables, self._span = model, tables, span
        entities = tables.build(span)
        self._inputs = [x.detach().requires_grad_() for x in (queries, entities, model.score_weights)]
        self._made = model.spec.score.all_pairs(*self._inputs)
        self._whole = self._made.detach().to(self._made.dtype if as_made else queries.dtype)
        self.scores: Scores = self._whole[:, : span.stop - span.start]
        if len(model.entity_bias):
            self.scores += model.entity_bias.detach()[span]

    def pull(self) -> Queries:
        """Give the tables what the scores, now gradients, make of them; return those of the queries."""
        model, bias = self._model, self._model.entity_bias
        if self.scores.shape[1] < self._whole.shape[1] and not model.spec.score.bilinear:
            self._whole[:, self.scores.shape[1] :] = 0  # which products with rows of zeros are
        of_queries, of_entities, of_weights = torch.autograd.grad(
            self._made, self._inputs, self._whole.to(self._made.dtype), allow_unused=True
        )
        self._tables.pull(self._span, of_entities)
        if len(bias):
            bias.grad = torch.zeros_like(bias) if bias.grad is None else bias.grad
            bias.grad[self._span] = self.scores.sum(0, dtype=bias.dtype)
        if of_weights is not None:
            before = model.score_weights.grad
            model.score_weights.grad = of_weights if before is None else before + of_weights
        return of_queries


def softmax_(scores: Scores, target: Target, first: int, sums: PerQuestion | None) -> PerQuestion:
    r"""$f \leftarrow w (\exp(f - \rho) - y)$ in place; return $w (\rho - \sum_e y_e f_e)$.

    $\rho = \log\sum\exp f$. ``first`` is the entity of the first column. If the sums are given, they are left
    out of the result.
    """
    if gpu := kernels("modulekge.kernels.step_triton", target.share):
        losses: Tensor = gpu.softmax_(scores, target, first, sums)
        return losses
    cells = _Cells(scores, target, first)
    fit = cells.fit()
    rows = max(1, _IN_CACHE // scores.shape[1])
    parts = zip(*(x.split(rows) for x in (scores, target.share, fit if sums is None else sums)), strict=True)
    for part, share, known in parts:
        shift = part.amax(1) if sums is None else known
        part.sub_(shift[:, None]).exp_()
        if sums is None:
            total = part.sum(1)
            known -= shift + total.log()
            share = share / total
        part.mul_(share[:, None])
    cells.subtract_()
    return -target.share * fit


def logistic_(scores: Scores, target: Target, first: int) -> PerQuestion:
    r"""$f \leftarrow w (\sigma(f) - y)$ in place; return $w \sum_e (\log(1 + e^{f_e}) - y_e f_e)$."""
    cells = _Cells(scores, target, first)
    loss = F.softplus(scores).sum(1) - cells.fit()
    scores.sigmoid_().mul_(target.share[:, None])
    cells.subtract_()
    return target.share * loss


class _Cells:
    """The answers among some columns of the scores; those elsewhere count nothing."""

    def __init__(self, scores: Scores, target: Target, first: int) -> None:
        self._scores, self._target = scores, target
        rows, column = target.rows, target.columns - first
        inside = (column >= 0) & (column < scores.shape[1])
        stride = scores.stride(0)
        self._flat = scores.as_strided(((len(scores) - 1) * stride + scores.shape[1],), (1,))
        self._places = rows * stride + column.clamp(0, scores.shape[1] - 1)
        self._amounts = target.amount[rows] * inside

    def fit(self) -> PerQuestion:
        """$\\sum_e y_e f_e$."""
        values = self._flat[self._places] * self._amounts
        fit = torch.zeros_like(self._target.share).index_add_(0, self._target.rows, values)
        if self._target.everywhere:
            fit += self._target.everywhere * self._scores.sum(1)
        return fit

    def subtract_(self) -> None:
        """$f \\leftarrow f - w y$."""
        share = self._target.share
        if self._target.everywhere:
            self._scores.sub_(self._target.everywhere * share[:, None])
        self._flat.index_add_(0, self._places, -self._amounts * share[self._target.rows])
