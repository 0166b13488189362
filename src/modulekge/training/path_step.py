"""A step of training of a model of paths: what is asked for is left out of the graph while it is asked."""

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from modulekge.config import Config
from modulekge.machine import repeatable
from modulekge.models.adjacency import Adjacency
from modulekge.models.paths import Paths
from modulekge.shapes import Ids, Scores, Triples
from modulekge.training.optimizers import set_rate
from modulekge.training.questions import Questions
from modulekge.training.tables import gradients_of

_MOST_GRADIENT = 1.0  # norm of the gradients, to which longer ones are cut


class PathStep:
    r"""$\theta \leftarrow \theta - \eta \nabla \mathcal L$ with the softmax over all but other known answers.

    All edges of a batch are left out for all of its questions, in both directions. Where there are several
    processes, each asks its part of the questions, and their gradients are added up.
    """

    def __init__(self, model: Paths, questions: Questions, optimizer: Optimizer, config: Config) -> None:
        self._model, self._questions, self._optimizer, self._config = model, questions, optimizer, config
        self._adjacency = model.adjacency.to(model.device)
        self._generator = torch.Generator(model.device)
        self._total, self._epoch, self._done = torch.zeros((), device=model.device), 1, 0
        self._weights = [table for table in model.parameters() if table.requires_grad]

    def begin(self, epoch: int) -> None:
        """Draw from here on what belongs to this epoch."""
        self._generator.manual_seed((self._config.train.seed << 32) + epoch)
        self._total.zero_()
        self._epoch, self._done = epoch, 0
        self._model.workers.broadcast_([table.detach() for table in self._weights])

    def __call__(self, rows: Ids) -> None:
        """Take one step, at the rate of its place in the schedule."""
        train = self._config.train
        set_rate(self._optimizer, train, self._epoch, self._done * train.parts / len(self._questions.triples))
        self._done += len(rows)
        self._take(rows)

    @repeatable()
    def _take(self, rows: Ids) -> None:
        model = self._model
        batch, own = self._questions.batch(rows), model.workers.questions(len(rows))
        self._optimizer.zero_grad()
        value = self._total.new_zeros(())
        adjacency = self._left(batch)
        if own.start < own.stop:
            for part in batch[own].split(model.most_questions):
                loss = self._loss(part, adjacency) / len(batch)
                loss.backward()
                value += loss.detach()
        if model.workers.copies > 1:
            model.workers.sum_copies_([value, *map(gradients_of, self._weights)])
        clip_grad_norm_(self._weights, _MOST_GRADIENT)
        self._optimizer.step()
        self._total.add_(value, alpha=len(rows))

    def mean(self, count: int) -> float:
        """Return the mean loss of the steps since :meth:`begin`, over so many questions."""
        return float(self._total) / count

    def _left(self, batch: Triples) -> Adjacency:
        """Return the graph without what a batch asks for, and without a share of all edges, drawn."""
        adjacency, share = self._adjacency, self._config.paths.dropout
        groups = adjacency.groups(*batch.unbind(1))
        if share:
            count = int(adjacency.left_out.max()) + 1
            drawn = torch.rand(count, generator=self._generator, device=groups.device) < share
            groups = torch.cat([groups, drawn.nonzero()[:, 0]])
        return adjacency.without(groups)

    def _loss(self, batch: Triples, adjacency: Adjacency) -> Tensor:
        """Return the sum of the losses of some questions."""
        heads, relations, tails = batch.unbind(1)
        scores = self._unknown(self._model(heads, relations, adjacency), heads, relations, tails)
        return F.cross_entropy(scores.float(), tails, reduction="sum")

    def _unknown(self, scores: Scores, heads: Ids, relations: Ids, tails: Ids) -> Scores:
        """Return the scores of what train does not know, and of the answer; no other answer competes."""
        others = torch.zeros_like(scores, dtype=torch.bool)
        others[self._questions.known.of_questions(heads, relations)] = True
        others[torch.arange(len(tails), device=tails.device), tails] = False
        return scores.masked_fill(others, -torch.inf)
