"""What may be asked over HTTP, with its bounds, and what comes back. Needs the extra 'serve'."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from modulekge.answers.compound.asker import CompoundAnswers
from modulekge.answers.compound.tokens import LONGEST as LONGEST_QUESTION
from modulekge.answers.predictor import Known
from modulekge.answers.questions import Answer, Question
from modulekge.choices import FEW, T_NORMS
from modulekge.data.type_constraints import Types
from modulekge.run.judgements import Judgement, Verdict
from modulekge.server.views import LinkView, PredictionSetView

MOST_ANSWERS = 500  # to a question
MOST_QUESTIONS = 64  # in a request
MOST_TRIPLES = 256  # scored in a request
MOST_REASONS = 50  # of each kind
MOST_ITEMS = 1000  # on a page
MOST_POINTS = 100_000  # on a map
LONGEST = 1000  # characters of a name

RunName = Annotated[str, Path(max_length=255, description="A run, as /api/v1/runs lists them.")]
Text = Annotated[str, Query(max_length=LONGEST)]
Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS)]
Offset = Annotated[int, Query(ge=0, le=2**31)]
Name = Annotated[str, Field(max_length=LONGEST)]


class Body(BaseModel):
    """What is sent: nothing but its fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _Question(Body):
    head: str | None
    relation: str | None
    tail: str | None

    def question(self) -> Question:
        """Return the question."""
        return Question(self.head, self.relation, self.tail)


class ForTails(_Question):
    """(head, relation, ?)."""

    head: Name
    relation: Name
    tail: None = None


class ForHeads(_Question):
    """(?, relation, tail)."""

    head: None = None
    relation: Name
    tail: Name


class ForRelations(_Question):
    """(head, ?, tail)."""

    head: Name
    relation: None = None
    tail: Name


class Predict(Body):
    """Questions, how many answers each, and whether facts, and entities of any type, are among them."""

    questions: list[ForTails | ForHeads | ForRelations] = Field(
        max_length=MOST_QUESTIONS, examples=[[{"head": "France", "relation": "borders"}]]
    )
    k: int = Field(FEW, ge=1, le=MOST_ANSWERS)
    known: Known = "mark"
    types: Types = "any"


class SetForTails(ForTails):
    """(head, relation, ?), which share of missing facts such sets shall hold, and how many are listed."""

    coverage: float = Field(0.9, gt=0, lt=1)
    limit: int = Field(20, ge=1, le=MOST_ITEMS)


class SetForHeads(ForHeads):
    """(?, relation, tail), which share of missing facts such sets shall hold, and how many are listed."""

    coverage: float = Field(0.9, gt=0, lt=1)
    limit: int = Field(20, ge=1, le=MOST_ITEMS)


QUESTION_KINDS = frozenset(
    kind.__name__ for kind in (ForTails, ForHeads, ForRelations, SetForTails, SetForHeads)
)


class Ask(Body):
    """A compound question, in the small language or in SPARQL, and how many answers."""

    question: str = Field(
        max_length=LONGEST_QUESTION, examples=["?c where France borders ?x and ?x uses_currency ?c"]
    )
    k: int = Field(FEW, ge=1, le=MOST_ANSWERS)
    known: Known = "mark"
    t_norm: Literal[T_NORMS] = T_NORMS[0]  # type: ignore[valid-type]
    types: Types = "constrained"


class Score(Body):
    """Triples of names: head, relation, tail."""

    triples: list[tuple[Name, Name, Name]] = Field(
        max_length=MOST_TRIPLES, examples=[[["France", "borders", "Spain"]]]
    )


class OneTriple(Body):
    """A triple of names."""

    head: Name
    relation: Name
    tail: Name


class Explain(OneTriple):
    """A triple, and how many reasons of each kind are wanted."""

    k: int = Field(5, ge=1, le=MOST_REASONS)


@dataclass(frozen=True)
class Problem:
    """What was found and what to do; ``field`` is the part of the request that is meant."""

    error: str
    field: str | None = None


@dataclass(frozen=True)
class NamedQuestion:
    """A question by the graph's own names; what is asked for is null."""

    head: str | None
    relation: str | None
    tail: str | None


@dataclass(frozen=True)
class Health:
    """The server is up: its version and how many runs it serves."""

    status: str
    version: str
    runs: int


@dataclass(frozen=True)
class Answers:
    """The questions as they were understood, by name, and the answers to each, best first.

    A question with an unknown name has no answers, and a problem in ``errors``; the others are answered.
    """

    questions: list[NamedQuestion]
    answers: list[list[Answer]]
    errors: list[Problem | None]


@dataclass(frozen=True)
class AnswerRow(Answer):
    """An answer with its question, as a row of a table."""

    question: int  # its place in the request
    head: str | None
    relation: str | None
    tail: str | None


class Judge(Body):
    """A verdict on a triple of names; ``withdraw`` takes an earlier one of the same person back."""

    head: Name
    relation: Name
    tail: Name
    verdict: Verdict
    reason: str = Field("", max_length=LONGEST)


class Judged(Body):
    """Verdicts, and whose they are."""

    judgements: list[Judge] = Field(max_length=MOST_TRIPLES)
    by: str = Field("", max_length=100)


@dataclass(frozen=True)
class Judgements:
    """What everyone said last of each triple, without what was withdrawn."""

    judgements: list[Judgement]


@dataclass(frozen=True)
class Kept(Judgements):
    """The judgements that were kept; one of an unknown name is not, and has a problem in ``errors``."""

    errors: list[Problem | None]


@dataclass(frozen=True)
class Links:
    """Triples with what is said of them, the best first."""

    links: list[LinkView]


@dataclass(frozen=True)
class Scored:
    """The triples that were asked about, in their order; null, with a problem, for one of an unknown name."""

    links: list[LinkView | None]
    errors: list[Problem | None]


@dataclass(frozen=True)
class SetAnswer(PredictionSetView):
    """A prediction set, and the question as it was understood."""

    question: NamedQuestion


@dataclass(frozen=True, repr=False)
class CompoundAnswer(CompoundAnswers):
    """Answers to a compound question, and the question."""

    question: str


@dataclass(frozen=True)
class CompoundRow:
    """An answer to a compound question, as a row of a table."""

    rank: int
    name: str
    label: str
    probability: float
    known: bool


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": why}
    for status, why in {
        400: "The request cannot be read, or this server is not the one it is meant for.",
        401: "The token is missing or wrong.",
        404: "No run, entity or relation is called so.",
        408: "The body came too slowly.",
        413: "The body is too large.",
        422: "A parameter is missing or out of its bounds.",
        503: "Too much is asked at once, or the answer took too long.",
    }.items()
}
