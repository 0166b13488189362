"""Choosing the weights of reranking by MRR on valid."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from modulekge.config import RerankConfig
from modulekge.data.dataset import Dataset
from modulekge.data.filter_index import FilterIndex
from modulekge.evaluation.ranks import Ranks
from modulekge.machine import frugal
from modulekge.models.reranked import NOT_RERANKED, Reranked
from modulekge.models.scorer import Scorer, batch_size, by_relation
from modulekge.shapes import Triples

_COPIES = 8  # of the scores: four parts of them, their sums, and what ranks are made of
MOST_QUESTIONS = 1 << 15  # beyond so many, three weights are known well enough
_STEPS = (0.0, 0.25, 0.5, 1.0)
WEIGHTS = tuple(
    RerankConfig(inverse, share * inverse, prior)
    for prior in _STEPS
    for inverse in _STEPS
    for share in ((0.0, 0.5, 1.0) if inverse else (0.0,))
)


@dataclass(frozen=True)
class Weighed:
    """The MRR on valid with each of these weights."""

    tried: tuple[tuple[RerankConfig, float], ...]
    questions: int

    @property
    def plain(self) -> float:
        """The MRR without reranking."""
        return self.tried[0][1]

    @property
    def best(self) -> tuple[RerankConfig, float]:
        """The best weights, and their MRR; of equal ones the first."""
        return max(self.tried, key=lambda one: one[1])


Sums = Float[Tensor, " weights"]  # of 1 / rank, and at its end the number of questions
Watch = Callable[[Iterator[Sums]], Iterable[Sums]]


def weigh(
    scorer: Scorer,
    dataset: Dataset,
    watch: Watch = iter,
    choices: tuple[RerankConfig, ...] = WEIGHTS,
    most: int = MOST_QUESTIONS,
    at_once: int | None = None,
) -> Weighed:
    """Rank the questions of valid, or ``most`` of them, with every choice of weights.

    No reranking is the first of them in any case, and the scorer's own weights are another.
    """
    dataset.check_split("valid", "to compare weights on; say which to take")
    questions = dataset.questions("valid")
    questions = questions[:: -(-len(questions) // most)]
    own = scorer.weights if isinstance(scorer, Reranked) else NOT_RERANKED
    choices = tuple(dict.fromkeys((NOT_RERANKED, *choices, own)))
    parts = Reranked(scorer.plain, NOT_RERANKED, dataset.questions("train"))
    at_once = at_once or max(1, batch_size(scorer.n_entities, scorer.device) // _COPIES)
    total = torch.stack(list(watch(_sums(parts, questions, dataset.known, choices, at_once)))).sum(0)
    means = (total[:-1] / total[-1]).tolist()
    return Weighed(tuple(zip(choices, means, strict=True)), len(questions))


@frugal
@torch.no_grad()
def _sums(
    parts: Reranked,
    questions: Triples,
    known: FilterIndex,
    choices: tuple[RerankConfig, ...],
    at_once: int,
) -> Iterator[Sums]:
    """Yield the sums of 1 / rank of some questions at a time, with each of the weights."""
    base, device = parts.base, parts.device
    questions, known = questions.to(device), known.to(device)
    questions = questions[questions[:, 1].argsort(stable=True)]

    @lru_cache(maxsize=1)  # many batches ask for one relation
    def in_any_case(relation: int) -> tuple[Tensor, Tensor]:
        return parts.hubness(relation), parts.prior(relation)

    for some in questions.split(at_once):
        heads, relations, tails = some.unbind(1)
        plain = base.scores(heads, relations)
        inverse, hubness, prior = (torch.empty_like(plain) for _ in range(3))
        for relation, rows in by_relation(relations):
            hubness[rows], prior[rows] = in_any_case(relation)
            inverse[rows] = base.inverse_scores(heads[rows], relation)
        others = known.of_questions(heads, relations)
        ranks = [
            Ranks.of(plain + w.inverse * inverse - w.hubness * hubness + w.prior * prior, tails, others)
            for w in choices
        ]
        sums = [(1 / each.rank("bottom")).sum() for each in ranks]
        yield torch.stack([*sums, sums[0].new_tensor(len(some))]).cpu()
