"""A step of training: the loss of a batch, its slopes, an update."""

from contextlib import nullcontext

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from torch.optim import Optimizer

from modulekge.config import Config
from modulekge.models.model import Model
from modulekge.shapes import Ids
from modulekge.training.losses import LOSSES, average
from modulekge.training.optimize import matmul_precision
from modulekge.training.penalty import penalty
from modulekge.training.questions import Questions, candidate_scores, dropout

_EAGER = 3  # full batches before a step is recorded; they load and tune what it is made of


def batch_loss(
    model: Model, questions: Questions, rows: Ids, config: Config, generator: torch.Generator
) -> Float[Tensor, ""]:
    r"""$\mathcal L + \Phi$ of some of the questions."""
    batch, loss = questions.triples[rows], config.loss
    heads, relations, tails = batch.unbind(1)
    weights = None if questions.weights is None else questions.weights[rows]
    queries = dropout(model.queries(heads, relations), config.train.dropout, generator)
    scores, answers = candidate_scores(model, queries, batch, questions.known, loss, generator)
    scores = scores.float() if scores.dtype == torch.bfloat16 else scores
    total = average(LOSSES[loss.kind](scores, answers, loss), weights)
    if loss.answers == "all":
        heads, relations, tails = heads[answers.rows], relations[answers.rows], answers.columns
    if loss.relations:
        guesses = model.relation_scores(heads, tails)
        total = total + loss.relations * F.cross_entropy(guesses, relations)
    if config.penalty.strength:
        total = total + penalty(model, heads, relations, tails, config.penalty)
    return total


class Step:
    r"""$\theta \leftarrow \theta - \eta \nabla (\mathcal L + \Phi)$ on a batch of the questions.

    On a GPU the step is recorded once as a graph of kernels and then replayed, without the host.
    """

    def __init__(self, model: Model, questions: Questions, optimizer: Optimizer, config: Config) -> None:
        self._model, self._questions, self._optimizer, self._config = model, questions, optimizer, config
        device = self._device = model.entity_scalar.device
        self._generator, self._total = torch.Generator(device), torch.zeros((), device=device)
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._rows = torch.empty(config.train.batch, dtype=torch.long, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None
        # Where questions have any number of answers, no two steps are alike
        self._to_go = _EAGER if self._stream and config.loss.answers == "one" else -1

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

    def _take(self, rows: Ids) -> None:
        with matmul_precision(self._config.train.matmul, self._device):
            loss = batch_loss(self._model, self._questions, rows, self._config, self._generator)
            self._optimizer.zero_grad()
            loss.backward()
        self._optimizer.step()
        self._total += loss.detach() * len(rows)

    def _recorded(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        self._optimizer.zero_grad()
        with torch.cuda.graph(graph, stream=self._stream):
            self._take(self._rows)
        return graph
