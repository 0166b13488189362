"""What the explorer answers, as values: the fields of its JSON."""

from dataclasses import dataclass

from modulekge.answers.questions import Answer, Link
from modulekge.data.benchmarks import Split
from modulekge.evaluation.reliability import Accuracy, Coverage, Reliability
from modulekge.evaluation.report import Metrics, Protocol
from modulekge.explanations.values import Neighbour
from modulekge.server.facts import Direction

Setting = bool | int | float | str | list[float]


@dataclass(frozen=True)
class RunSummary:
    """A run at a glance; the MRR is None where it was not measured."""

    name: str
    data: str
    graph: str  # what tells graphs apart: runs of one graph compare
    model: str
    k: int
    entities: int
    relations: int
    triples: int  # of all splits
    epochs: int
    valid_mrr: float | None
    test_mrr: float | None
    calibrated: bool


@dataclass(frozen=True)
class CurvePoint:
    """An epoch: its mean loss, and the valid MRR where it was measured."""

    epoch: int
    loss: float
    mrr: float | None


@dataclass(frozen=True)
class FiguresOf:
    """The metrics of one relation, or of one category of relations."""

    name: str
    label: str
    triples: int
    both: Metrics
    head: Metrics
    tail: Metrics


@dataclass(frozen=True)
class ReportView:
    """How well a run answers the questions of test."""

    split: str
    triples: int
    candidates: int
    both: Metrics
    intervals: dict[str, tuple[float, float]]
    head: Metrics
    tail: Metrics
    ties: dict[str, Metrics]
    without_unseen: Metrics
    unseen_triples: int
    relations: list[FiguresOf]
    categories: list[FiguresOf]
    protocol: Protocol


@dataclass(frozen=True)
class MeasuredView:
    """How true the probabilities are on a split they were not fitted to, before and after calibration."""

    split: str
    questions: int
    before: Accuracy
    after: Accuracy
    sets: Coverage


@dataclass(frozen=True)
class CalibrationView:
    """What probabilities rest on: valid triples, relations and directions with a line of their own."""

    triples: int
    own: int
    measured: MeasuredView | None


@dataclass(frozen=True)
class RunDetail(RunSummary):
    """A run with its settings, its training curve and what was measured of it."""

    settings: dict[str, Setting]
    curve: list[CurvePoint]
    report: ReportView | None
    calibration: CalibrationView | None


@dataclass(frozen=True)
class Name:
    """An entity or relation, and what to call it before people."""

    name: str
    label: str


@dataclass(frozen=True)
class RelationItem(Name):
    """A relation and how many facts it has."""

    triples: int


@dataclass(frozen=True)
class RelationPage:
    """Some of the relations, the most used first."""

    total: int
    items: list[RelationItem]


@dataclass(frozen=True)
class PairItem:
    """A fact of a relation that is known, and the split that holds it."""

    head: Name
    tail: Name
    split: Split


@dataclass(frozen=True)
class FactRow:
    """A known fact as a row of a table, and the split that holds it."""

    head: str
    relation: str
    tail: str
    split: Split


@dataclass(frozen=True)
class RelationCard(RelationItem):
    """A relation: some of its facts, how well it is answered, and how true its probabilities are.

    ``figures`` is None where test has none of its facts, ``tails`` and ``heads`` where valid has too few to
    calibrate the questions for its tails, or for its heads, on their own.
    """

    n_heads: int
    n_tails: int
    facts: list[PairItem]
    figures: FiguresOf | None
    tails: Reliability | None
    heads: Reliability | None


@dataclass(frozen=True)
class EntityItem(Name):
    """An entity and in how many facts it occurs."""

    degree: int


@dataclass(frozen=True)
class EntityPage:
    """Some of the entities that were found, the best match first."""

    total: int
    items: list[EntityItem]


@dataclass(frozen=True)
class FactEnd(Name):
    """The entity at the other end of a fact, and the split that holds the fact."""

    split: Split


@dataclass(frozen=True)
class FactGroup:
    """Some of the facts of an entity with one relation in one direction, and how many there are."""

    relation: Name
    direction: Direction
    total: int
    items: list[FactEnd]


@dataclass(frozen=True)
class EntityCard(EntityItem):
    """An entity with its known facts by relation and direction, the largest group first."""

    description: str | None  # None: the graph came without one
    trained: bool  # else it is in no training fact, and its answers are guesses
    facts: list[FactGroup]


@dataclass(frozen=True)
class PredictionSetView:
    """A prediction set: of missing facts, a share ``coverage`` lies in such sets; the best are listed."""

    answers: list[Answer]
    size: int  # of the set
    coverage: float
    candidates: int
    triples: int
    own: bool
    measured: float | None  # share of test facts in such sets
    everything: bool


@dataclass(frozen=True)
class LinkView(Link):
    """A triple with its labels; ``probability`` is that it is a missing fact.

    ``head_probability`` is that of its head, if the question for the head misses an answer.
    """

    head_probability: float | None
    labels: tuple[str, str, str]


@dataclass(frozen=True)
class DrawnLink:
    """A fact, or a new link with its probability; ``label`` is the relation's."""

    head: str
    relation: str
    label: str
    tail: str
    known: bool
    probability: float | None


@dataclass(frozen=True)
class Neighbourhood:
    """An entity, first of the nodes, with known facts around it and its most probable new links."""

    nodes: list[EntityItem]
    links: list[DrawnLink]


@dataclass(frozen=True)
class MapGroup:
    """Entities that occur most with one relation in one direction."""

    relation: Name
    direction: Direction
    points: int


@dataclass(frozen=True)
class AlikeEntities:
    """The entities whose vectors are most like that of one, the most alike first."""

    name: str
    items: list[Neighbour]


@dataclass(frozen=True)
class EntityMap:
    """The best-connected entities on a plane, column by column, and their groups, the largest first.

    ``group`` is the place of each entity's group among ``groups``, -1 where it has no facts.
    """

    names: list[str]
    labels: list[str]
    x: list[float]
    y: list[float]
    group: list[int]
    groups: list[MapGroup]


@dataclass(frozen=True)
class Addition:
    """A fact that was added: which run has it, with how many others, and what of it is new."""

    run: str
    facts: int  # that were added so far
    entities: int
    relations: int
    moved: bool  # the model has learnt from it; else it is known, and answers are as before
    notes: list[str]
