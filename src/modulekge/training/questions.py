"""What an epoch asks, how much each question weighs, and against which candidates it is scored."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor
from torch.nn import functional as F

from modulekge.config import LossConfig
from modulekge.data.dataset import Dataset
from modulekge.data.filter_index import FilterIndex
from modulekge.models.embedding import Embedding
from modulekge.models.spec import Build
from modulekge.shapes import Ids, Queries, Scores, Triples
from modulekge.training.losses import Answers, Weights


@dataclass(frozen=True, eq=False)
class Questions:
    """The questions of an epoch; where one stands for all its answers, its tail is only the first."""

    triples: Triples
    weights: Weights | None
    # Answers in train, where they are asked for: what a negative must not be, all that a question may have
    known: FilterIndex

    @classmethod
    def of(
        cls, dataset: Dataset, config: LossConfig, device: torch.device, known: bool = False
    ) -> "Questions":
        """Collect the questions of train with their weights, and all ``known`` answers to them if asked."""
        triples = dataset.questions("train")
        asked_for = known or config.candidates != "all" or config.targets == "all" or config.subsampling > 0
        nothing = FilterIndex.of(triples[:0], dataset.n_relations_with_inverses)
        index = dataset.known_in_train if asked_for else nothing
        if config.targets == "all":
            heads, relations = index.keys // index.n_relations, index.keys % index.n_relations
            triples = torch.stack([heads, relations, index.tails[index.starts[:-1]]], dim=1)
        weights = question_weights(dataset, triples, index, config)
        columns = triples.T.contiguous().to(device)
        return cls(columns.T, None if weights is None else weights.to(device), index.to(device))

    def batch(self, rows: Ids) -> Triples:
        """Return some of the questions; heads, relations and tails are each in one piece."""
        return self.triples.T.index_select(1, rows).T


def question_weights(
    dataset: Dataset, triples: Triples, known: FilterIndex, config: LossConfig
) -> Weights | None:
    r"""$(1 - a + a \frac{\deg t}{\max\deg}) \cdot (\#(h, r) + \#(t, r^{-1}))^{-b}$; none where $a = b = 0$.

    Degrees and counts are those of train, and counts start at 4 (as in RotatE's code, where $b = 1/2$). A
    question that stands for all its answers weighs what they do on average.
    """
    if config.degree_weight == 0 and config.subsampling == 0:
        return None
    answers = answers_of(triples, known, config)
    rows, tails = answers.rows, answers.columns
    heads, relations, _ = triples[rows].unbind(1)
    degrees = torch.bincount(dataset.train[:, [0, 2]].flatten(), minlength=len(dataset.entities))
    share = 1 - config.degree_weight + config.degree_weight * degrees[tails] / degrees.max()
    half = known.n_relations // 2
    mirrored = (relations + half) % known.n_relations
    counts = 4 + known.counts(heads, relations) + known.counts(tails, mirrored)
    each = share * counts.double().pow(-config.subsampling)
    mean = each.new_zeros(len(triples)).scatter_reduce(0, rows, each, "mean", include_self=False)
    return mean.float()


def answers_of(batch: Triples, known: FilterIndex, config: LossConfig) -> Answers:
    """Return the answers of each question among all entities: its tail, or all that train knows."""
    heads, relations, tails = batch.unbind(1)
    if config.targets == "all":
        return Answers(*known.of_questions(heads, relations))
    return Answers(torch.arange(len(batch), device=batch.device), tails)


class Draw(NamedTuple):
    """Random numbers for a batch: drawn for all of its questions, of which only some may be asked here."""

    generator: Generator
    total: int
    own: slice

    def rand(self, like: Tensor) -> Tensor:
        """Return numbers from 0 to 1, one for each of the tensor, whose rows are the questions."""
        shape = (self.total, *like.shape[1:])
        return torch.rand(shape, generator=self.generator, device=like.device)[self.own]

    def entities(self, below: int, negatives: int, config: LossConfig) -> Int[Tensor, "_b k"]:
        """Return entities for each question, or the same ones for all."""
        rows = 1 if config.candidates == "shared" else self.total
        device = self.generator.device
        drawn = torch.randint(below, (rows, negatives), generator=self.generator, device=device)
        return drawn if config.candidates == "shared" else drawn[self.own]


def candidate_scores(
    model: Embedding,
    queries: Queries,
    tails: Int[Tensor, " b"],
    drawn: Int[Tensor, "_b k"],
    true: Bool[Tensor, "b k"],
    build: Build | None = None,
) -> tuple[Scores, Answers]:
    """Score each answer, which comes first, and what was drawn, but for what is known to be true."""
    if len(drawn) < len(tails):
        scores = model.scores(queries, model.entities(drawn[0]), drawn[0])
        scores = torch.cat([model.scores_each(queries, tails[:, None]), scores], dim=1)
    else:
        scores = model.scores_each(queries, torch.cat([tails[:, None], drawn], dim=1), build)
    scores = scores.masked_fill(F.pad(true, (1, 0)), -torch.inf)
    return scores, Answers(torch.arange(len(tails), device=tails.device), torch.zeros_like(tails))


def dropout(queries: Queries, share: float, draw: Draw) -> Queries:
    """Set a share of the numbers to 0 and scale up the rest."""
    if share == 0:
        return queries
    return queries * (draw.rand(queries) >= share) / (1 - share)
