"""How a triple stands: the ranks of its tail and its head among all entities."""

from dataclasses import dataclass

import torch

from modulekge.data.dataset import Dataset
from modulekge.evaluation.ranks import Ranks
from modulekge.models.scorer import Scorer


@dataclass(frozen=True)
class Standing:
    """How an answer stands among all entities that are not known answers; ties count against it."""

    rank: int
    score: float


def standings(scorer: Scorer, dataset: Dataset, triple: tuple[int, int, int]) -> list[Standing]:
    """Return how the tail stands among tails, and the head among heads."""
    h, r, t = triple
    return _standings(scorer, dataset, [(h, r, t), (t, r + len(dataset.relations), h)])


def tail_standing(scorer: Scorer, dataset: Dataset, triple: tuple[int, int, int]) -> Standing:
    """Return how the tail stands among tails."""
    return _standings(scorer, dataset, [triple])[0]


def _standings(scorer: Scorer, dataset: Dataset, triples: list[tuple[int, int, int]]) -> list[Standing]:
    heads, relations, tails = torch.tensor(triples).unbind(1)
    scores = scorer.scores(heads, relations)
    ranks = Ranks.of(scores, tails, dataset.known.of_questions(heads, relations)).rank("bottom")
    own = scores.gather(1, tails[:, None])[:, 0]
    return [Standing(int(place), score) for place, score in zip(ranks.tolist(), own.tolist(), strict=True)]
