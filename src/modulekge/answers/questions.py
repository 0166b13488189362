"""Questions and answers as values, and one kind of question over the ids of a graph."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from modulekge.choices import FEW
from modulekge.data.benchmarks import SPLITS, Split
from modulekge.data.filter_index import FilterIndex
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import QuestionError
from modulekge.evaluation.odds import log_odds, loops, marked
from modulekge.frames import Columns, Rows, Table
from modulekge.shapes import Ids, Scores


@dataclass(frozen=True)
class Question:
    """A triple of names with exactly one left out, which is asked for."""

    head: str | None = None
    relation: str | None = None
    tail: str | None = None

    def __post_init__(self) -> None:
        if (self.head, self.relation, self.tail).count(None) != 1:
            raise QuestionError("leave out exactly one of head, relation and tail; it is what is asked for")

    def __str__(self) -> str:
        return "  ".join("?" if name is None else name for name in (self.head, self.relation, self.tail))


class QuestionIds(NamedTuple):
    """A question by ids: (head, relation) asks for entities, (head, tail) for relations."""

    head: int
    other: int
    for_relations: bool

    @classmethod
    def of(cls, head: int | None, relation: int | None, tail: int | None, n_relations: int) -> "QuestionIds":
        """Return the question that leaves one out; for a head, it is asked by the reciprocal relation."""
        if relation is None:
            return cls(head or 0, tail or 0, True)
        return cls(tail or 0, relation + n_relations, False) if head is None else cls(head, relation, False)


@dataclass(frozen=True)
class Answer:
    """An entity, or a relation, that may complete a triple."""

    rank: int
    name: str
    label: str
    score: float
    probability: float | None  # None without a calibration, for facts of train and for impossible loops
    split: Split | None  # where the triple stands; None where it is new

    @property
    def known(self) -> bool:
        """The triple is a fact of the graph, though perhaps one held out from training."""
        return self.split is not None


class Answers(Rows[Answer]):
    """The answers to a question, best first: a list that is a table too."""

    kind, what = Answer, ("answer", "answers")

    def _about(self) -> dict[str, object]:
        return _without_probabilities(self)


@dataclass(frozen=True, repr=False)
class PredictionSet(Table):
    """A prediction set: of missing facts like those of valid, a share ``coverage`` lies in such sets.

    The share is one over questions, not the chance that this set holds an answer; where the model is less
    sure, sets are wider. Its answers are new ones, the best first.
    """

    answers: Answers
    coverage: float
    candidates: int  # entities that are not known to answer
    triples: int  # valid facts that say how wide a set has to be
    own: bool  # they are of this relation and direction; else of all
    measured: float | None  # share of test facts that lie in such sets; None where it was not measured

    @property
    def everything(self) -> bool:
        """No candidate could be left out."""
        return len(self.answers) == self.candidates

    def _about(self) -> dict[str, object]:
        return {"coverage": self.coverage, "answers": f"{len(self.answers):,} of {self.candidates:,}"}

    def _columns(self) -> Columns:
        return self.answers._columns()


@dataclass(frozen=True)
class Link:
    """A triple by name: its score, its probability, its filtered ranks, and the split that holds it."""

    head: str
    relation: str
    tail: str
    score: float
    probability: float | None  # that it is a missing fact; None as for an answer
    tail_rank: int  # among the tails of (head, relation, ?); ties count as above it
    head_rank: int  # among the heads of (?, relation, tail)
    split: Split | None


class Links(Rows[Link]):
    """Triples with their scores: a list that is a table too."""

    kind, what = Link, ("link", "links")

    def _about(self) -> dict[str, object]:
        return _without_probabilities(self)


def _without_probabilities(found: Sequence[Answer | Link]) -> dict[str, object]:
    """Say how to get probabilities, where something is new and nothing has one."""
    none = any(each.split is None for each in found) and all(each.probability is None for each in found)
    return (
        {"no probabilities": "modulekge.calibrate(run) fits them, on the graph it was trained on"}
        if none
        else {}
    )


class Scored(NamedTuple):
    """Scores of every entity for every question, log-odds, which are known answers, and which are none.

    Log-odds of what is no answer are no numbers.
    """

    scores: Scores
    odds: Scores
    known: Bool[Tensor, "b e"]
    loops: Bool[Tensor, "b e"]


@dataclass(frozen=True, eq=False)
class QueryType:
    """A kind of question: (head, relation) asks for entities, (head, tail) asks for relations."""

    vocabulary: Vocabulary  # of the answers
    facts: Mapping[Split, FilterIndex]
    score: Callable[[Ids, Ids], Scores]
    chance: Callable[[Scores, Ids], Scores] | None  # probabilities from log-odds; None: not calibrated
    at_once: int  # questions
    irreflexive: Bool[Tensor, " r"] | None = None  # relations by which no entity answers for itself

    def count(self, k: int | None) -> int:
        """Return how many answers to give: ten unless said, or all where there are fewer."""
        size = len(self.vocabulary)
        if k is None:
            return min(FEW, size)
        if k < 1:
            raise QuestionError(f"k = {k}: ask for at least one answer")
        if k > size:
            what = "entities" if self.vocabulary.kind == "entity" else "relations"
            raise QuestionError(f"k = {k}: the graph has {size:,} {what}; ask for {size} at most")
        return k

    def rate(self, heads: Ids, others: Ids) -> Scored:
        """Score every candidate to each question."""
        scores = self.score(heads, others)
        known = torch.zeros_like(scores, dtype=torch.bool)
        for facts in self.facts.values():
            known |= marked(facts, heads, others, scores)
        none = torch.zeros_like(known)
        itself = none if self.irreflexive is None else loops(self.irreflexive, heads, others, scores)
        odds = log_odds(scores, known | itself).masked_fill(itself, torch.nan)  # nor any probability
        return Scored(scores, odds, known, itself)

    def best(self, scored: Scored, heads: Ids, others: Ids, closed: Tensor, k: int) -> list[Answers]:
        """Return the best answers to each question that are not closed; where there are too few, fewer."""
        best = scored.scores.masked_fill(closed, -torch.inf).topk(k).indices
        left = (~closed).sum(1).tolist()
        rows = self.answers(scored, heads, others, best)
        return [Answers(row[:count]) for row, count in zip(rows, left, strict=True)]

    def splits(self, heads: Ids, others: Ids, ids: Int[Tensor, "b k"]) -> list[list[Split | None]]:
        """Return where the triple of each answer stands."""
        place = torch.full_like(ids, len(SPLITS))
        for i, split in reversed(list(enumerate(SPLITS))):
            place[self.facts[split].among(heads, others, ids)] = i
        return [[(*SPLITS, None)[i] for i in row] for row in place.tolist()]

    def chances(
        self, odds: Scores, others: Ids, splits: list[list[Split | None]]
    ) -> list[list[float | None]]:
        """Return the probabilities of answers; of what was trained on, or has no rivals, there is none."""
        if self.chance is None:
            return [[None] * len(row) for row in splits]
        rows = self.chance(odds, others).tolist()
        return [
            [
                None if split == "train" or isnan(chance) else chance
                for chance, split in zip(*pair, strict=True)
            ]
            for pair in zip(rows, splits, strict=True)
        ]

    def answers(self, scored: Scored, heads: Ids, others: Ids, ids: Int[Tensor, "b k"]) -> list[Answers]:
        """Return the answers to each question by name, in the order of their ids."""
        splits = self.splits(heads, others, ids)
        chances = self.chances(scored.odds.gather(1, ids), others, splits)
        scores = scored.scores.gather(1, ids).tolist()
        return [
            Answers(
                Answer(rank, self.vocabulary.names[i], self.vocabulary.label(i), score, chance, split)
                for rank, (i, score, chance, split) in enumerate(zip(*row, strict=True), start=1)
            )
            for row in zip(ids.tolist(), scores, chances, splits, strict=True)
        ]
