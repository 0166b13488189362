"""Choosing the weights with which candidates are asked back, by MRR on valid."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from modulekge.config import AskingConfig
from modulekge.data.dataset import Dataset
from modulekge.data.filter_index import KnownAnswers
from modulekge.evaluation.ranks import Ranks
from modulekge.evaluation.scoring import batch_size, best_back, by_relation, counted, said_back
from modulekge.models.back import NOT_ASKED, Back
from modulekge.models.embedding import Model
from modulekge.shapes import Triples

_COPIES = 8  # of the scores: four parts of them, their sums, and what ranks are made of
MOST_QUESTIONS = 1 << 15  # beyond so many, three weights are known well enough
_STEPS = (0.0, 0.25, 0.5, 1.0)
WEIGHTS = tuple(
    AskingConfig(back, share * back, counts)
    for counts in _STEPS
    for back in _STEPS
    for share in ((0.0, 0.5, 1.0) if back else (0.0,))
)


@dataclass(frozen=True)
class Weighed:
    """The MRR on valid with each of these weights."""

    tried: tuple[tuple[AskingConfig, float], ...]
    questions: int

    @property
    def plain(self) -> float:
        """The MRR where nobody is asked back."""
        return self.tried[0][1]

    @property
    def best(self) -> tuple[AskingConfig, float]:
        """The best weights, and their MRR; of equal ones the first."""
        return max(self.tried, key=lambda one: one[1])


Sums = Float[Tensor, " weights"]  # of 1 / rank, and at its end the number of questions
Watch = Callable[[Iterator[Sums]], Iterable[Sums]]


def weigh(
    model: Model, dataset: Dataset, watch: Watch = iter, choices: tuple[AskingConfig, ...] = WEIGHTS
) -> Weighed:
    """Rank the questions of valid, or as many as are enough, with every choice of weights.

    Nobody being asked is the first of them in any case, and the model's own weights are another.
    """
    dataset.check_split("valid", "to compare weights on; say which to take")
    questions = dataset.questions("valid")
    questions = questions[:: -(-len(questions) // MOST_QUESTIONS)]
    own, model.back = model.back, Back(train=dataset.questions("train"))
    choices = tuple(dict.fromkeys((NOT_ASKED, *choices, own.weights)))
    try:
        total = torch.stack(list(watch(_sums(model, questions, dataset.known, choices)))).sum(0)
    finally:
        model.back = own
    means = (total[:-1] / total[-1]).tolist()
    return Weighed(tuple(zip(choices, means, strict=True)), len(questions))


@torch.no_grad()
def _sums(
    model: Model, questions: Triples, known: KnownAnswers, choices: tuple[AskingConfig, ...]
) -> Iterator[Sums]:
    """Yield the sums of 1 / rank of some questions at a time, with each of the weights."""
    table = model.entities()
    questions, known = questions.to(table.device), known.to(table.device)
    questions = questions[questions[:, 1].argsort(stable=True)]

    @lru_cache(maxsize=1)  # many batches ask for one relation
    def in_any_case(relation: int) -> tuple[Tensor, Tensor]:
        return best_back(model, relation), counted(model, relation)

    for some in questions.split(max(1, batch_size(len(table), table.device) // _COPIES)):
        heads, relations, tails = some.unbind(1)
        plain = model.scores(model.queries(heads, relations), table)
        said, best, counts = (torch.empty_like(plain) for _ in range(3))
        for relation, rows in by_relation(relations):
            best[rows], counts[rows] = in_any_case(relation)
            for ids, part in said_back(model, heads[rows], relation, table):
                said[rows, ids] = part
        others = known.of_questions(heads, relations)
        ranks = [
            Ranks.of(plain + w.back * said - w.rivals * best + w.counts * counts, tails, others)
            for w in choices
        ]
        sums = [(1 / each.rank("bottom")).sum() for each in ranks]
        yield torch.stack([*sums, sums[0].new_tensor(len(some))]).cpu()
