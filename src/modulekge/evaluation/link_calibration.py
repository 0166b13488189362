r"""Probabilities of links, where nobody says that the question misses an answer.

$$P(h, r, t) = \sigma(a \operatorname{logit}(\pi_r(h)\, p_t) + b), \quad a \ge 0$$

$p_t$ is the probability of a tail if its question (h, r, ?) misses an answer
(:mod:`modulekge.evaluation.calibration`). $\pi_r(h)$ is how often such a question does: the share of heads of
the same class to whom valid gives an answer. The class of a head is how many answers it has in train: none,
one, two or three, four to seven, and so on; or that nothing like it is a head of this relation. $(a, b)$ is
fitted to the best candidates of the questions that valid answers and of a sample of all others. So the
probability is that of a graph that misses as many facts as valid holds.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from modulekge.data.dataset import Dataset
from modulekge.data.type_constraints import TypeConstraints
from modulekge.evaluation.lines import CENTRES, cells_of, fit_line
from modulekge.evaluation.odds import ScoredBatch, evenly_drawn, most_questions, scored_questions
from modulekge.models.scorer import Scorer
from modulekge.shapes import Ids, Scores

_CLASSES = 8  # by answers: none, 1, 2 to 3, ..., 32 and more; the last is of heads of another kind
_BEST = 64  # candidates of a question that the line is fitted to: links are chosen from these
_BORROWED = 2  # heads' worth of the relation that each class is estimated from besides its own
_MOST_RELATIONS = 512  # whose classes are counted, those that valid asks most
_SURE = 1e-7  # how near to 0 and 1 a chance may be

Shares = tuple[float, ...]


@dataclass(frozen=True)
class LinkCalibration:
    """The shares of questions that miss an answer, by the class of their head, and the line of all."""

    own: dict[int, Shares]
    together: Shares
    slope: float
    offset: float

    def __post_init__(self) -> None:
        if any(len(shares) != _CLASSES for shares in (self.together, *self.own.values())):
            raise ValueError(f"links: expected {_CLASSES} shares for each relation")

    def probability(self, chances: Scores, relations: Ids, classes: Ids) -> Scores:
        """Return the probabilities of links by those of their tails, a question in each row."""
        pairs = zip(relations.tolist(), classes.tolist(), strict=True)
        shares = chances.new_tensor([self.own.get(r, self.together)[s] for r, s in pairs])
        return (self.slope * _logit(chances * shares[:, None]) + self.offset).sigmoid()


class Best(NamedTuple):
    """The best candidates of questions for tails: their log-odds, and which are true."""

    heads: Ids
    relations: Ids
    odds: Float[Tensor, "b k"]
    true: Bool[Tensor, "b k"]

    @classmethod
    def of(cls, asked: ScoredBatch, n_relations: int) -> "Best":
        """Take those of a batch; questions for heads, of reciprocal relations, are left out."""
        tails = asked.relations < n_relations
        odds = asked.odds.masked_fill(~asked.candidate, -torch.inf)[tails]
        best = odds.topk(min(_BEST, odds.shape[1]), 1)
        true = asked.true[tails].gather(1, best.indices)
        parts = asked.heads[tails], asked.relations[tails], best.values, true
        return cls(*(part.cpu() for part in parts))

    @classmethod
    def joined(cls, parts: list["Best"]) -> "Best":
        """Join those of several batches."""
        return cls(*(torch.cat(column) for column in zip(*parts, strict=True)))


def degree_classes(answers: Int[Tensor, " b"], fitting: Bool[Tensor, " b"]) -> Ids:
    """Return the classes of heads with so many answers, or of those without that are of another kind."""
    few = (1 + answers.clamp(min=1).double().log2().long()).clamp(max=_CLASSES - 2)
    return torch.where(answers > 0, few, torch.where(fitting, 0, _CLASSES - 1))


def fit_links(
    scorer: Scorer,
    dataset: Dataset,
    chances: Callable[[Scores, Ids], Scores],
    opened: Best,
    watch: Callable[[Iterator[ScoredBatch]], Iterable[ScoredBatch]],
) -> LinkCalibration:
    """Fit shares, and the line to questions that valid answers, ``opened``, and to a sample of the others.

    ``chances`` are the probabilities of tails by their log-odds and relations.
    """
    count = len(dataset.relations)
    asked = dataset.valid[:, 1].bincount(minlength=count)
    commonest = asked.argsort(descending=True, stable=True)[: min(_MOST_RELATIONS, int((asked > 0).sum()))]
    types, most = TypeConstraints.of(dataset), ceil(most_unanswered(scorer) / len(commonest))
    counted, drawn, stands_for = dict[int, Tensor](), list[Tensor](), torch.ones(count)
    for relation in commonest.tolist():
        classes, answered, others = _heads(dataset, types, relation)
        both = [heads.bincount(minlength=_CLASSES).double() for heads in (classes, classes[answered])]
        counted[relation] = torch.stack(both)
        some = evenly_drawn(others, most)
        drawn.append(torch.stack([some, torch.full_like(some, relation)]))
        stands_for[relation] = len(others) / max(1, len(some))
    everyone = torch.stack(list(counted.values())).sum(0)
    shares = {relation: _shares(each, everyone) for relation, each in counted.items()}
    plain = LinkCalibration(shares, _shares(everyone, everyone), 1.0, 0.0)
    batches = watch(scored_questions(scorer, dataset, *torch.cat(drawn, 1)))
    best = Best.joined([opened, *(Best.of(batch, count) for batch in batches)])
    weights = stands_for[best.relations]
    weights[: len(opened.heads)] = len(dataset.valid[:, :2].unique(dim=0)) / max(1, len(opened.heads))
    answers = dataset.known_in_train.counts(best.heads, best.relations)
    classes = degree_classes(answers, types.fit(best.heads, best.relations + count))
    p = plain.probability(chances(best.odds, best.relations), best.relations, classes)
    slope, offset = _line(p, best, weights)
    return replace(plain, slope=slope, offset=offset)


def most_unanswered(scorer: Scorer) -> int:
    """Return about how many questions that valid does not answer are asked at most."""
    return most_questions(scorer.n_entities, scorer.cost) // 2


def _heads(
    dataset: Dataset, types: TypeConstraints, relation: int
) -> tuple[Int[Tensor, " e"], Ids, Int[Tensor, " others"]]:
    """Return the class of every entity as a head in train, whom valid answers, and who else may be asked."""
    every = torch.arange(len(dataset.entities))
    answers = dataset.known_in_train.counts(every, torch.full_like(every, relation))
    classes = degree_classes(answers, types.allowed(relation + len(dataset.relations)))
    answered = dataset.valid[dataset.valid[:, 1] == relation, 0].unique()
    others = classes < (1 if dataset.functional[relation] else _CLASSES - 1)  # a second answer is no link
    others[answered] = False
    return classes, answered, others.nonzero()[:, 0]


def _shares(counted: Float[Tensor, "2 s"], everyone: Float[Tensor, "2 s"]) -> Shares:
    """Return the share of each class that valid answers, drawn a little towards all of the relation."""
    overall = float(everyone[1].sum() / everyone[0].sum())
    of_relation = (float(counted[1].sum()) + _BORROWED * overall) / (float(counted[0].sum()) + _BORROWED)
    found = (counted[1] + _BORROWED * of_relation) / (counted[0] + _BORROWED)
    return tuple(found.tolist())


def _line(p: Scores, best: Best, weights: Float[Tensor, " b"]) -> tuple[float, float]:
    """Fit the line to candidates of these probabilities, each as many times as it stands for."""
    odds, each = _logit(p), weights[:, None].expand_as(p)
    here = p.isfinite() & best.odds.isfinite()
    cells = cells_of(odds) + len(CENTRES) * best.true
    counts = torch.bincount(cells[here], each[here].double(), 2 * len(CENTRES)).view(2, -1)
    return fit_line(counts, CENTRES)


def _logit(p: Scores) -> Scores:
    return p.clamp(_SURE, 1 - _SURE).logit()
