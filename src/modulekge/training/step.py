"""A step of training: the loss of a batch, its slopes, an update."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F
from torch.optim import Optimizer

from modulekge.config import Config
from modulekge.machine import can_compile, compiled
from modulekge.models.model import Model
from modulekge.shapes import Ids, Queries
from modulekge.training.exact import Build, exact
from modulekge.training.losses import LOSSES, average
from modulekge.training.optimize import matmul_precision
from modulekge.training.penalty import penalty
from modulekge.training.questions import Questions, answers_of, candidate_scores, dropout

_EAGER = 3  # full batches before a step is recorded; they load and tune what it is made of
_WORTH_COMPILING = 2_000  # steps


class Step:
    r"""$\theta \leftarrow \theta - \eta \nabla (\mathcal L + \Phi)$ on a batch of the questions.

    On a GPU a step is compiled, recorded once as a graph of kernels and then replayed without the host.
    """

    def __init__(self, model: Model, questions: Questions, optimizer: Optimizer, config: Config) -> None:
        self._model, self._questions, self._optimizer, self._config = model, questions, optimizer, config
        device = self._device = model.entity_scalar.device
        self._generator, self._total = torch.Generator(device), torch.zeros((), device=device)
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._rows = torch.empty(config.train.batch, dtype=torch.long, device=device)
        self._asked = model.part(2 * config.train.batch)
        self._graph: torch.cuda.CUDAGraph | None = None
        # Where questions have any number of answers, no two steps are alike
        alike = config.loss.answers == "one"
        self._to_go = _EAGER if self._stream and alike else -1
        steps = config.train.epochs * len(questions.triples) // config.train.batch
        self._compile = bool(self._stream) and alike and steps >= _WORTH_COMPILING and can_compile("cuda")

    def begin(self, epoch: int) -> None:
        """Draw from here on what belongs to this epoch."""
        self._generator.manual_seed((self._config.train.seed << 32) + epoch)
        self._total.zero_()
        if self._stream:
            self._stream.wait_stream(torch.cuda.current_stream(self._device))

    def __call__(self, rows: Ids) -> None:
        """Take one step, or on a GPU have it taken soon."""
        with torch.cuda.stream(self._stream) if self._stream else nullcontext():
            if len(rows) < len(self._rows) or self._to_go < 0:
                self._take(rows)
            elif self._to_go:
                self._to_go -= 1
                self._take(rows)
            else:
                self._rows.copy_(rows)
                self._graph = self._graph or self._recorded()
                self._graph.replay()

    def mean(self, count: int) -> float:
        """Wait for the steps since :meth:`begin` and return their mean loss over so many questions."""
        if self._stream:
            torch.cuda.current_stream(self._device).wait_stream(self._stream)
        return float(self._total) / count

    def _recorded(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        with torch.cuda.graph(graph, stream=self._stream):
            self._take(self._rows)
        return graph

    def _take(self, rows: Ids) -> None:
        exact = self._config.loss.candidates == "all" and self._config.loss.kind in ("softmax", "logistic")
        loss = self._exact_loss if exact else self._plain_loss
        weights = self._questions.weights
        self._optimizer.zero_grad()
        with matmul_precision(self._config.train.matmul, self._device):
            value = loss(self._questions.triples[rows], None if weights is None else weights[rows])
        self._optimizer.step()
        self._total += value * len(rows)

    def _plain_loss(self, batch: Tensor, weights: Tensor | None) -> Float[Tensor, ""]:
        """Return the loss of a batch with its candidates; its slopes come as autograd makes them."""
        heads, relations, _ = batch.unbind(1)
        model, known, config, generator = self._model, self._questions.known, self._config, self._generator
        true = answers_of(batch, known, config.loss)
        rows, tails = true.rows, true.columns
        queries, rest = asked(model, heads, relations, heads[rows], relations[rows], tails, config, generator)
        scores, answers = candidate_scores(model, queries, batch, known, config.loss, generator)
        scores = scores.float() if scores.dtype == torch.bfloat16 else scores
        value = average(LOSSES[config.loss.kind](scores, answers, config.loss), weights) + rest
        value.backward()
        return value.detach()

    def _exact_loss(self, batch: Tensor, weights: Tensor | None) -> Float[Tensor, ""]:
        """Return the loss of a batch against all entities.

        What is asked is worked out on a small model of the batch's entities, so that the slopes of a few
        rows are added to those of the whole tables, and no second whole table is made for them.
        """
        heads, relations, _ = batch.unbind(1)
        model, config = self._model, self._config
        answers = answers_of(batch, self._questions.known, config.loss)
        everyone = torch.arange(len(batch), device=self._device)
        ids = torch.cat([heads, answers.columns])
        usual = len(ids) == len(self._asked.entity_scalar)
        small = self._asked if usual else model.part(len(ids))
        pairs = [(model.entity_scalar, small.entity_scalar), (model.entity_vector, small.entity_vector)]
        for whole, rows in pairs:
            rows.grad = None
            torch.index_select(whole.detach(), 0, ids, out=rows.detach())
        places = torch.arange(len(batch), len(ids), device=self._device)
        queries, rest = self._fast(asked, usual)(
            small, everyone, relations, answers.rows, relations[answers.rows], places, config, self._generator
        )
        build: Build = self._fast(model.spec.entity, usual)
        value, slopes = exact(model, queries, answers, weights, config.loss, build)
        torch.autograd.backward([queries, rest], [slopes, torch.ones_like(rest)])
        for whole, rows in pairs:
            if rows.grad is not None and whole.grad is not None:
                whole.grad.index_add_(0, ids, rows.grad)
        total: Tensor = value + rest.detach()
        return total

    def _fast(self, function: Callable[..., Any], usual: bool) -> Callable[..., Any]:
        return compiled(function) if self._compile and usual else function


def asked(
    model: Model,
    heads: Ids,
    relations: Ids,
    answered_heads: Int[Tensor, " answers"],
    answered_relations: Int[Tensor, " answers"],
    tails: Int[Tensor, " answers"],
    config: Config,
    generator: torch.Generator,
) -> tuple[Queries, Float[Tensor, ""]]:
    r"""Return the queries of a batch, and $\Phi$ with the loss of relations of its triples."""
    queries = dropout(model.queries(heads, relations), config.train.dropout, generator)
    rest = 0 * queries.sum()
    if config.penalty.strength:
        rest = penalty(model, answered_heads, answered_relations, tails, config.penalty)
    if config.loss.relations:
        guesses = model.relation_scores(answered_heads, tails)
        rest = rest + config.loss.relations * F.cross_entropy(guesses, answered_relations)
    return queries, rest
