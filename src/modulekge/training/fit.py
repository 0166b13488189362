"""The training loop, in sight: it reads top to bottom and yields a record of each epoch."""

import time
from collections.abc import Generator, Iterator
from math import isfinite

from torch.optim import Optimizer

from modulekge.config import Config
from modulekge.data.batches import batches
from modulekge.data.dataset import Dataset
from modulekge.errors import TrainingError
from modulekge.evaluation.evaluate import rank, rank_in_batches, ranked_triples
from modulekge.evaluation.metrics import metrics
from modulekge.evaluation.ranks import Ranks
from modulekge.models.embedding import Embedding
from modulekge.models.model import Model
from modulekge.models.paths import Paths
from modulekge.models.scorer import Scorer
from modulekge.shapes import Triples
from modulekge.training.ema import averaged, update_mean
from modulekge.training.finite import not_finite
from modulekge.training.optimizers import begin_epoch
from modulekge.training.path_step import PathStep
from modulekge.training.questions import Questions
from modulekge.training.records import EpochProgress, EpochRecord
from modulekge.training.step import Step

_MOST_SCORES = 2_000_000_000  # of a validation: questions times entities
_TELL_EVERY = 0.2  # seconds, how far an epoch has come


def fit(
    model: Model, dataset: Dataset, optimizer: Optimizer, config: Config, first_epoch: int = 1
) -> Iterator[EpochProgress | EpochRecord]:
    """Train from ``first_epoch`` to the last one, in place."""
    train, device = config.train, model.device
    questions = Questions.of(dataset, config.loss, device, known=isinstance(model, Paths))
    step = make_step(model, questions, optimizer, config)
    for epoch in range(first_epoch, train.epochs + 1):
        started = told = time.perf_counter()
        begin_epoch(optimizer, train, epoch)
        step.begin(epoch)
        asked = list(batches(len(questions.triples), train.batch, train.seed, epoch, device, train.parts))
        done, count = 0, sum(map(len, asked))
        for rows in asked:
            step(rows)
            done += len(rows)
            if time.perf_counter() - told > _TELL_EVERY:
                told = time.perf_counter()
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
            valid = (yield from _validation(model.scorer(), dataset, epoch)) if due else None
        rate = float(optimizer.param_groups[0]["lr"])
        yield EpochRecord(epoch, mean, rate, seconds, len(dataset.train) / train.parts / seconds, valid)


def make_step(model: Model, questions: Questions, optimizer: Optimizer, config: Config) -> Step | PathStep:
    """Return what takes a step for such a model."""
    if isinstance(model, Paths):
        return PathStep(model, questions, optimizer, config)
    assert isinstance(model, Embedding)
    return Step(model, questions, optimizer, config)


def validate(scorer: Scorer, dataset: Dataset) -> dict[str, float] | None:
    """Return the metrics on valid, by which the best epoch is chosen; none without a valid split."""
    questions = valid_questions(scorer, dataset)
    return metrics(rank(scorer, questions, dataset.known).rank("bottom")) if len(questions) else None


def _validation(
    scorer: Scorer, dataset: Dataset, epoch: int
) -> Generator[EpochProgress, None, dict[str, float] | None]:
    """Return the same, and tell meanwhile how far it has come."""
    questions, found, done = valid_questions(scorer, dataset), [], 0
    for ranks in rank_in_batches(scorer, questions, dataset.known):
        found.append(ranks)
        done += len(ranks.above)
        yield EpochProgress(epoch, done, len(questions), "validating")
    return metrics(Ranks.join(found).rank("bottom")) if found else None


def valid_questions(scorer: Scorer, dataset: Dataset) -> Triples:
    """Return what valid asks; of a large one on many entities, a sample."""
    return dataset.with_inverses(ranked_triples(scorer, dataset, "valid", _MOST_SCORES))
