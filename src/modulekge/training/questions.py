"""What an epoch asks, how much each question weighs, and against which candidates it is scored."""

from dataclasses import dataclass

import torch
from torch import Generator
from torch.nn import functional as F

from modulekge.config import LossConfig
from modulekge.data.dataset import Dataset
from modulekge.data.known import KnownAnswers
from modulekge.models.model import Model
from modulekge.shapes import Queries, Scores, Triples
from modulekge.training.losses import Answers, Weights


@dataclass(frozen=True, eq=False)
class Questions:
    """The questions of an epoch; where one stands for all its answers, its tail is only the first."""

    triples: Triples
    weights: Weights | None
    known: KnownAnswers  # answers in train: what a negative must not be, and all that a question may have

    @classmethod
    def of(cls, dataset: Dataset, config: LossConfig, device: torch.device) -> "Questions":
        """Collect the questions of train with their weights."""
        triples = dataset.questions("train")
        known = KnownAnswers.of(triples, dataset.n_questions)
        if config.answers == "all":
            heads, relations = known.keys // known.n_relations, known.keys % known.n_relations
            triples = torch.stack([heads, relations, known.tails[known.starts[:-1]]], dim=1)
        weights = question_weights(dataset, triples, known, config)
        return cls(triples.to(device), None if weights is None else weights.to(device), known.to(device))


def question_weights(
    dataset: Dataset, triples: Triples, known: KnownAnswers, config: LossConfig
) -> Weights | None:
    r"""$(1 - a + a \frac{\deg t}{\max\deg}) \cdot (\#(h, r) + \#(t, r^{-1}))^{-b}$; none where $a = b = 0$.

    Degrees and counts are those of train, and counts start at 4 (as in RotatE's code, where $b = 1/2$).
    """
    if config.degree == 0 and config.frequency == 0:
        return None
    heads, relations, tails = triples.unbind(1)
    degrees = torch.bincount(dataset.train[:, [0, 2]].flatten(), minlength=len(dataset.entities))
    share = 1 - config.degree + config.degree * degrees[tails] / degrees.max()
    half = known.n_relations // 2
    mirrored = (relations + half) % known.n_relations
    counts = 4 + known.counts(heads, relations) + known.counts(tails, mirrored)
    return (share * counts.double().pow(-config.frequency)).float()


def answers_of(batch: Triples, known: KnownAnswers, config: LossConfig) -> Answers:
    """Return the answers of each question among all entities: its tail, or all that train knows."""
    heads, relations, tails = batch.unbind(1)
    if config.answers == "all":
        return Answers(*known.of_questions(heads, relations))
    return Answers(torch.arange(len(batch), device=batch.device), tails)


def candidate_scores(
    model: Model,
    queries: Queries,
    batch: Triples,
    known: KnownAnswers,
    config: LossConfig,
    generator: Generator,
) -> tuple[Scores, Answers]:
    """Score a batch against its candidates and say where the answers stand among them."""
    heads, relations, tails = batch.unbind(1)
    if config.candidates == "all":
        return model.scores(queries, model.entities()), answers_of(batch, known, config)
    size = (config.negatives,) if config.candidates == "shared" else (len(batch), config.negatives)
    drawn = torch.randint(len(model.entity_scalar), size, generator=generator, device=batch.device)
    truth = known.among(heads, relations, drawn.expand(len(batch), -1))
    if config.candidates == "shared":
        scores = model.scores(queries, model.entities(drawn), drawn)
        scores = torch.cat([model.scores_each(queries, tails[:, None]), scores], dim=1)
    else:
        scores = model.scores_each(queries, torch.cat([tails[:, None], drawn], dim=1))
    scores = scores.masked_fill(F.pad(truth, (1, 0)), -torch.inf)
    return scores, Answers(torch.arange(len(batch), device=batch.device), torch.zeros_like(tails))


def dropout(queries: Queries, share: float, generator: Generator) -> Queries:
    """Set a share of the numbers to 0 and scale up the rest; the draw comes from the generator."""
    if share == 0:
        return queries
    keep = torch.rand(queries.shape, generator=generator, device=queries.device) >= share
    return queries * keep / (1 - share)
