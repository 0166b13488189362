"""The training loop, in sight: it reads top to bottom and yields a record of each epoch."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import isfinite

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim import Optimizer

from modulekge.config import Config
from modulekge.data.batches import batches
from modulekge.data.dataset import Dataset
from modulekge.errors import TrainingError
from modulekge.evaluation.evaluate import rank
from modulekge.evaluation.metrics import metrics
from modulekge.models.model import Model
from modulekge.shapes import Triples
from modulekge.training.losses import LOSSES, degree_weights
from modulekge.training.optimize import matmul_precision, set_rate
from modulekge.training.penalty import penalty

_GLANCE = 0.2  # seconds between two glances at an epoch under way


@dataclass(frozen=True)
class Glance:
    """How far an epoch has come."""

    epoch: int
    done: int
    questions: int


@dataclass(frozen=True)
class EpochRecord:
    """What an epoch was: its mean loss with penalty, its speed, and valid metrics where measured."""

    epoch: int
    loss: float
    lr: float
    seconds: float
    triples_per_second: float
    valid: dict[str, float] | None


def fit(
    model: Model, dataset: Dataset, optimizer: Optimizer, config: Config, first_epoch: int = 1
) -> Iterator[Glance | EpochRecord]:
    """Train from ``first_epoch`` to the last one, in place."""
    train, device = config.train, model.entity_vector.device
    questions = dataset.questions("train").to(device)
    weights = degree_weights(dataset, config.loss.degree)
    loss_of = partial(
        batch_loss, model, config=config, weights=None if weights is None else weights.to(device)
    )
    for epoch in range(first_epoch, train.epochs + 1):
        started = glanced = time.perf_counter()
        set_rate(optimizer, train, epoch)
        total, done = torch.zeros((), device=device), 0
        for batch in batches(questions, train.batch, train.seed, epoch):
            with matmul_precision(train.matmul, device):
                loss = loss_of(batch)
                optimizer.zero_grad()
                loss.backward()
            optimizer.step()
            total += loss.detach() * len(batch)
            done += len(batch)
            if time.perf_counter() - glanced > _GLANCE:
                glanced = time.perf_counter()
                yield Glance(epoch, done, len(questions))
        mean = float(total) / len(questions)
        seconds = time.perf_counter() - started
        if not isfinite(mean):
            raise TrainingError(
                f"the loss became {mean} in epoch {epoch}; the last good weights are kept. "
                f"Lower train.lr (now {train.lr:g}) or raise penalty.strength ({config.penalty.strength:g})"
            )
        due = epoch % train.every == 0 or epoch == train.epochs
        valid = validate(model, dataset) if due else None
        rate = optimizer.param_groups[0]["lr"]
        yield EpochRecord(epoch, mean, rate, seconds, len(questions) / 2 / seconds, valid)


def batch_loss(
    model: Model, batch: Triples, config: Config, weights: Float[Tensor, " e"] | None
) -> Float[Tensor, ""]:
    r"""$\mathcal L + \Phi$ of the questions of a batch."""
    heads, relations, tails = batch.unbind(1)
    scores = model(heads, relations)
    loss = LOSSES[config.loss.kind](scores, tails, weights, config.loss.smoothing)
    if config.penalty.strength:
        loss = loss + penalty(model, heads, relations, tails, config.penalty)
    return loss


def validate(model: Model, dataset: Dataset) -> dict[str, float] | None:
    """Return the metrics on valid, by which the best epoch is chosen; none without a valid split."""
    if len(dataset.valid) == 0:
        return None
    return metrics(rank(model, dataset.questions("valid"), dataset.known).rank("bottom"))
