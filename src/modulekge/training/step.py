"""A step of training: the loss of a batch, its slopes, an update."""

import warnings
from contextlib import nullcontext
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F
from torch.optim import Optimizer

from modulekge.config import Config
from modulekge.machine import can_compile, compiled
from modulekge.models.model import Model, Some
from modulekge.shapes import Ids, Queries
from modulekge.training.exact import Target, exact
from modulekge.training.losses import LOSSES, Answers, average
from modulekge.training.optimize import matmul_precision
from modulekge.training.penalty import penalty
from modulekge.training.plateau import ease
from modulekge.training.questions import Questions, answers_of, candidate_scores, dropout
from modulekge.training.tables import tables_of

_EAGER = 3  # full batches before a step is recorded; they load and tune what it is made of
# Numbers in the tables of entities times steps, from which on compiling pays
_WORTH_COMPILING = {"cpu": 4e9, "cuda": 2e10}


class Step:
    r"""$\theta \leftarrow \theta - \eta \nabla (\mathcal L + \Phi)$ on a batch of the questions.

    On a GPU a step is compiled, recorded once as a graph of kernels and then replayed without the host.
    """

    def __init__(self, model: Model, questions: Questions, optimizer: Optimizer, config: Config) -> None:
        self._model, self._questions, self._optimizer, self._config = model, questions, optimizer, config
        device = self._device = model.entity_scalar.device
        self._generator, self._total = torch.Generator(device), torch.zeros((), device=device)
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        if self._stream:  # autograd's own thread multiplies first, which PyTorch mends and warns of
            warnings.filterwarnings("ignore", "Attempting to run cuBLAS")
        self._rows = torch.empty(config.train.batch, dtype=torch.long, device=device)
        self._asked = model.part(2 * config.train.batch)
        each = torch.arange(config.train.batch, device=device)
        share = model.entity_scalar.new_full(each.shape, 1 / len(each))
        self._even = Target.of(Answers(each, each), share, len(model.entity_scalar), config.loss)
        self._one = share.new_ones(())
        self._graph: torch.cuda.CUDAGraph | None = None
        # Where questions have any number of answers, no two steps are alike
        alike = config.loss.answers == "one"
        self._to_go = _EAGER if self._stream and alike else -1
        steps = config.train.epochs * len(questions.triples) // config.train.batch
        numbers = model.entity_scalar.numel() + model.entity_vector.numel()
        worth = steps * numbers >= _WORTH_COMPILING[device.type]
        self._compile = alike and worth and can_compile(device.type)
        build = compiled(model.spec.entity) if self._compile else None
        self._tables = tables_of(model, optimizer, build)

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
                self._replay(rows)

    def mean(self, count: int) -> float:
        """Wait for the steps since :meth:`begin` and return their mean loss over so many questions."""
        if self._stream:
            torch.cuda.current_stream(self._device).wait_stream(self._stream)
        return float(self._total) / count

    def _replay(self, rows: Ids) -> None:
        """Take a step as recorded; where none can be recorded, this one and all others as they come."""
        self._rows.copy_(rows)
        try:
            self._graph = self._graph or self._recorded()
        except RuntimeError as error:
            warnings.warn(f"steps are not replayed, which is slower: {error}", stacklevel=2)
            self._to_go = -1
            self._take(rows)
        else:
            self._graph.replay()

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
            batch = self._questions.triples[rows]
            value = loss(batch, None if weights is None else weights[rows])
        self._optimizer.step()
        if self._config.train.plateau:
            ease(self._optimizer, value, self._config.train)
        self._total.add_(value, alpha=len(rows))

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

        What is asked is worked out on a model of the batch's few entities, so that their slopes are added
        to those of the whole tables, and no second whole table is made for them.
        """
        heads, relations, _ = batch.unbind(1)
        model, config, b = self._model, self._config, len(batch)
        target = self._target(batch, weights)
        ids = torch.cat([heads, target.columns])
        target = replace(target, columns=ids[b:])
        usual = len(ids) == len(self._asked.entity_scalar)
        few = self._asked if usual else model.part(len(ids))
        self._tables.gather(ids, few)
        ask = compiled(asked, dynamic=False) if self._compile and usual else asked
        one = config.loss.answers == "one"
        rows: Some = slice(b) if one else target.rows
        answered = relations if one else relations[target.rows]
        queries, rest = ask(
            few, slice(b), relations, rows, answered, slice(b, len(ids)), config, self._generator
        )
        value, slopes = exact(model, queries, target, config.loss.kind, self._tables)
        roots = [(queries, slopes), (rest, self._one)]
        torch.autograd.backward(*zip(*(root for root in roots if root[0].requires_grad), strict=True))
        self._tables.add(ids, few)
        total: Tensor = value + rest.detach()
        return total

    def _target(self, batch: Tensor, weights: Tensor | None) -> Target:
        """Return what a batch asks for; where a question has one answer, little of it is made anew."""
        b, even = len(batch), self._even
        share = None if weights is None else weights / weights.sum()
        if self._config.loss.answers == "one" and b == len(even.share):
            return replace(even, columns=batch[:, 2], share=even.share if share is None else share)
        if share is None:
            share = even.share.new_full((b,), 1 / b)
        answers = answers_of(batch, self._questions.known, self._config.loss)
        return Target.of(answers, share, len(self._model.entity_scalar), self._config.loss)


def asked(
    model: Model,
    heads: Some,
    relations: Ids,
    answered_heads: Int[Tensor, " answers"] | slice,
    answered_relations: Int[Tensor, " answers"],
    tails: Int[Tensor, " answers"] | slice,
    config: Config,
    generator: torch.Generator,
) -> tuple[Queries, Float[Tensor, ""]]:
    r"""Return the queries of a batch, and $\Phi$ with the loss of relations of its triples."""
    queries = dropout(model.queries(heads, relations), config.train.dropout, generator)
    rest = queries.new_zeros(())
    if config.penalty.strength:
        rest = penalty(model, answered_heads, answered_relations, tails, config.penalty)
    if config.loss.relations:
        guesses = model.relation_scores(answered_heads, tails)
        rest = rest + config.loss.relations * F.cross_entropy(guesses, answered_relations)
    return queries, rest
