"""The training loop, in sight: it reads top to bottom and yields a record of each epoch."""

import time
from collections.abc import Iterator
from math import isfinite

from torch.optim import Optimizer

from modulekge.config import Config
from modulekge.data.batches import batches
from modulekge.data.dataset import Dataset
from modulekge.errors import TrainingError
from modulekge.evaluation.evaluate import rank, ranked_triples
from modulekge.evaluation.metrics import metrics
from modulekge.models.embedding import Embedding
from modulekge.models.scorer import Scorer
from modulekge.training.ema import averaged, update_mean
from modulekge.training.finite import not_finite
from modulekge.training.optimizers import begin_epoch
from modulekge.training.questions import Questions
from modulekge.training.records import EpochProgress, EpochRecord
from modulekge.training.step import Step

_MOST_SCORES = 2_000_000_000  # of a validation: questions times entities
_GLANCE = 0.2  # seconds between two glances at an epoch under way


def fit(
    model: Embedding, dataset: Dataset, optimizer: Optimizer, config: Config, first_epoch: int = 1
) -> Iterator[EpochProgress | EpochRecord]:
    """Train from ``first_epoch`` to the last one, in place."""
    train, device = config.train, model.entity_scalar.device
    questions = Questions.of(dataset, config.loss, device)
    step, count = Step(model, questions, optimizer, config), len(questions.triples)
    for epoch in range(first_epoch, train.epochs + 1):
        started = glanced = time.perf_counter()
        begin_epoch(optimizer, train, epoch)
        step.begin(epoch)
        done = 0
        for rows in batches(count, train.batch, train.seed, epoch, device):
            step(rows)
            done += len(rows)
            if time.perf_counter() - glanced > _GLANCE:
                glanced = time.perf_counter()
                yield EpochProgress(epoch, done, count)
        mean = step.mean(count)
        seconds = time.perf_counter() - started
        lost = f"the loss became {mean}" if not isfinite(mean) else not_finite(model, optimizer)
        if lost:
            raise TrainingError(
                f"{lost} in epoch {epoch}; what was kept before it stays. Train anew with a "
                f"lower train.lr (now {train.lr:g}) or a larger regularizer.weight "
                f"({config.regularizer.weight:g})"
            )
        due = epoch % train.eval_every == 0 or epoch == train.epochs
        update_mean(model, optimizer, train, epoch)
        with averaged(model, optimizer, train):
            valid = validate(model.scorer(), dataset) if due else None
        rate = float(optimizer.param_groups[0]["lr"])
        yield EpochRecord(epoch, mean, rate, seconds, len(dataset.train) / seconds, valid)


def validate(scorer: Scorer, dataset: Dataset) -> dict[str, float] | None:
    """Return the metrics on valid, or a sample of it, by which the best epoch is chosen; without it none."""
    if len(dataset.valid) == 0:
        return None
    triples = ranked_triples(dataset, "valid", _MOST_SCORES)
    return metrics(rank(scorer, dataset.with_inverses(triples), dataset.known).rank("bottom"))
