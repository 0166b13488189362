"""A step of training of a model of paths: what is asked for is left out of the graph while it is asked."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from modulekge.config import Config
from modulekge.machine import repeatable
from modulekge.models.adjacency import Adjacency
from modulekge.models.paths import Paths
from modulekge.shapes import Ids, Triples
from modulekge.training.optimizers import rate_of, set_rate
from modulekge.training.questions import Questions
from modulekge.training.recorded import Recorded
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
        batch = questions.triples.new_empty(config.train.batch, 3, device=model.device)
        others = torch.empty(len(batch), model.n_entities, dtype=torch.bool, device=model.device)
        shaped = batch, torch.ones_like(self._adjacency.left_out).bool(), others, self._rate(0.0)
        self._recorded = Recorded(self._take, shaped, self._generator, model.workers.size == 1)

    def begin(self, epoch: int) -> None:
        """Draw from here on what belongs to this epoch."""
        self._generator.manual_seed((self._config.train.seed << 32) + epoch)
        self._total.zero_()
        self._epoch, self._done = epoch, 0
        self._model.workers.broadcast_([table.detach() for table in self._weights])

    def __call__(self, rows: Ids) -> None:
        """Take one step, at the rate of its place in the schedule."""
        self._recorded.catch_up()
        train, batch = self._config.train, self._questions.batch(rows)
        share = self._done * train.parts / len(self._questions.triples)
        self._done += len(rows)
        inputs = batch, self._kept(batch), self._known(batch), self._rate(share)
        self._recorded.begin(*inputs)
        self._recorded(*inputs)

    @repeatable()
    def _take(
        self,
        batch: Triples,
        kept: Bool[Tensor, " edges"],
        known: Bool[Tensor, "b e"],
        rate: Float[Tensor, ""],
    ) -> None:
        model = self._model
        own = model.workers.questions(len(batch))
        set_rate(self._optimizer, rate)
        self._optimizer.zero_grad()
        value = self._total.new_zeros(())
        adjacency = self._adjacency.only(kept)
        if own.start < own.stop:
            size = model.most_questions
            several = own.stop - own.start > size  # parts, for which what arrives is worked out once
            arriving = model.arriving(adjacency) if several else None
            leaf = arriving if arriving is None else arriving.detach().requires_grad_()
            for part, others in zip(batch[own].split(size), known[own].split(size), strict=True):
                loss = self._loss(part, others, adjacency, leaf) / len(batch)
                loss.backward()
                value += loss.detach()
            if arriving is not None and leaf is not None:
                arriving.backward(leaf.grad)
        if model.workers.copies > 1:
            model.workers.sum_copies_([value, *map(gradients_of, self._weights)])
        clip_grad_norm_(self._weights, _MOST_GRADIENT)
        self._optimizer.step()
        self._total.add_(value, alpha=len(batch))

    def _rate(self, done: float) -> Float[Tensor, ""]:
        """Return the rate where a share of the epoch is done."""
        rate = rate_of(self._optimizer, self._config.train, self._epoch, done)
        return torch.full((), rate, dtype=torch.double, device=self._model.device)

    def mean(self, count: int) -> float:
        """Wait for the steps since :meth:`begin` and return their mean loss over so many questions."""
        self._recorded.wait()
        return float(self._total) / count

    def _kept(self, batch: Triples) -> Bool[Tensor, " edges"]:
        """Say which edges a step follows: not what the batch asks for, nor a share of all, drawn."""
        adjacency, share = self._adjacency, self._config.paths.dropout
        groups, drawn = adjacency.groups(*batch.unbind(1)), None
        if share:
            drawn = torch.rand(adjacency.n_groups, generator=self._generator, device=groups.device) < share
        return adjacency.outside(groups, drawn)

    def _known(self, batch: Triples) -> Bool[Tensor, "b e"]:
        """Say which entities answer each question in train, but for the one asked for: none competes."""
        heads, relations, tails = batch.unbind(1)
        known = torch.zeros(len(batch), self._model.n_entities, dtype=torch.bool, device=batch.device)
        known[self._questions.known.of_questions(heads, relations)] = True
        known[torch.arange(len(batch), device=batch.device), tails] = False
        return known

    def _loss(
        self,
        batch: Triples,
        known: Bool[Tensor, "b e"],
        adjacency: Adjacency,
        arriving: Float[Tensor, "e d"] | None,
    ) -> Float[Tensor, ""]:
        """Return the sum of the losses of some questions."""
        heads, relations, tails = batch.unbind(1)
        scores = self._model(heads, relations, adjacency, arriving).float().masked_fill(known, -torch.inf)
        return F.cross_entropy(scores, tails, reduction="sum")
