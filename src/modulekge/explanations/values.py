"""What an explanation is made of: facts by their names, ranks, supports, paths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from modulekge.data.benchmarks import Split
from modulekge.data.dataset import Dataset
from modulekge.explanations.paths import Evidence, Step
from modulekge.explanations.standing import Standing
from modulekge.frames import Columns, Table, columns_of

Way = Literal["forward", "backward"]


@dataclass(frozen=True)
class Fact:
    """A triple by its names, and as people call it."""

    head: str
    relation: str
    tail: str
    labels: tuple[str, str, str]


@dataclass(frozen=True)
class Support:
    r"""A training fact and its influence $\langle \nabla f(fact), \nabla f(triple) \rangle$.

    The gradients are those of the scores in both directions by the numbers of the triple's head and tail:
    how much the triple's score rises with a step that raises the fact's. ``share`` is of the influence of
    all facts that raise it.
    """

    fact: Fact
    influence: float
    share: float


@dataclass(frozen=True)
class Route:
    """A path of training facts from head to tail, each with the side it is entered from.

    ``evidence``: of other pairs that the same relations join, the share that the asked relation joins;
    ``paths`` counts the paths of this pattern between head and tail.
    """

    facts: tuple[Fact, ...]
    ways: tuple[Way, ...]
    evidence: Evidence
    paths: int


@dataclass(frozen=True)
class CarriedPath:
    r"""A path of the graph that a model of paths followed from head to tail.

    ``weight`` is the mean of $\partial f / \partial w_{l,e}$ over its edges, each at the layer that takes it.
    """

    facts: tuple[Fact, ...]
    ways: tuple[Way, ...]
    weight: float


class Reasons(Table):
    """The reasons of an explanation as rows: its supports, then the facts of its paths, step by step.

    The value of a support is its influence; that of a path the share of its evidence, or its weight.
    """

    triple: Fact
    split: Split | None
    as_tail: Standing
    as_head: Standing
    supports: tuple[Support, ...]
    routes: Sequence[Route | CarriedPath]

    def _about(self) -> Mapping[str, object]:
        return {
            "triple": "  ".join(self.triple.labels),
            "split": self.split or "new",
            "rank": f"{self.as_tail.rank:,} among tails, {self.as_head.rank:,} among heads",
        }

    def _columns(self) -> Columns:
        rows = [
            _Reason("support", i, None, *_names(support.fact), None, support.influence)
            for i, support in enumerate(self.supports, start=1)
        ]
        for i, route in enumerate(self.routes, start=1):
            value = route.evidence.share if isinstance(route, Route) else route.weight
            steps = enumerate(zip(route.facts, route.ways, strict=True), start=1)
            rows += [_Reason("path", i, step, *_names(fact), way, value) for step, (fact, way) in steps]
        return columns_of(_Reason, rows)


@dataclass(frozen=True)
class _Reason:
    part: Literal["support", "path"]
    number: int
    step: int | None  # of a path
    head: str
    relation: str
    tail: str
    way: Way | None  # that a path takes through the fact
    value: float


def _names(fact: Fact) -> tuple[str, str, str]:
    return fact.head, fact.relation, fact.tail


@dataclass(frozen=True)
class Neighbour:
    """An entity whose embedding is near: by cosine (1 is nearest) or by the row's distance (0 is)."""

    name: str
    label: str
    likeness: float


@dataclass(frozen=True, repr=False)
class Explanation(Reasons):
    """What speaks for a triple: its ranks, supporting facts, paths, and entities like its ends."""

    triple: Fact
    split: Split | None  # where the triple stands; None where it is new
    model: str  # whose scores these are; of a mixture, the member that counts most for the relation
    as_tail: Standing  # of the tail among answers to (head, relation, ?)
    as_head: Standing  # of the head among answers to (?, relation, tail)
    supports: tuple[Support, ...]
    candidates: int  # facts that were looked at as supports
    facts_around: int  # facts there are around head and tail
    routes: tuple[Route, ...]
    near_head: tuple[Neighbour, ...]
    near_tail: tuple[Neighbour, ...]


@dataclass(frozen=True, repr=False)
class PathExplanation(Reasons):
    """What of the graph carried the score of a triple in a model of paths: its computation itself.

    The influence of a support is what the score loses when the fact is left out of the graph, both ways.
    """

    triple: Fact
    split: Split | None  # where the triple stands; None where it is new
    model: str  # whose scores these are; of a mixture, the member that counts most for the relation
    left_out: tuple[Fact, ...]  # of the graph meanwhile, as in training: the triple, where train holds it
    layers: int  # facts of the longest path that the model can follow
    reached: bool  # whether a path leads from head to tail; else the score is that of all it cannot reach
    as_tail: Standing  # of the tail among answers to (head, relation, ?)
    as_head: Standing  # of the head among answers to (?, relation, tail)
    routes: tuple[CarriedPath, ...]
    supports: tuple[Support, ...]
    candidates: int  # facts of the best paths, which were left out one at a time
    facts_between: int  # facts there are on all paths that the model followed from head to tail
    without: Standing | None  # of the tail when all supports are left out; None where there are none


def fact_of(dataset: Dataset, triple: Sequence[int]) -> Fact:
    """Return a triple by its names."""
    h, r, t = triple
    entities, relations = dataset.entities, dataset.relations
    names = entities.names[h], relations.names[r], entities.names[t]
    return Fact(*names, (entities.label(h), relations.label(r), entities.label(t)))


def facts_of(dataset: Dataset, walk: Sequence[Step]) -> tuple[tuple[Fact, ...], tuple[Way, ...]]:
    """Return the facts of a walk, and the way each is walked."""
    n = len(dataset.relations)
    facts: list[Fact] = []
    ways: list[Way] = []
    for start, relation, end in walk:
        forward = relation < n
        facts.append(fact_of(dataset, (start, relation, end) if forward else (end, relation - n, start)))
        ways.append("forward" if forward else "backward")
    return tuple(facts), tuple(ways)


def walk_text(route: Route | CarriedPath) -> str:
    """Return the entities in order, with an arrow the way each fact points."""
    first = route.facts[0].labels[0 if route.ways[0] == "forward" else 2]
    words = [first]
    for fact, way in zip(route.facts, route.ways, strict=True):
        h, r, t = fact.labels
        words.append(f"-{r}-> {t}" if way == "forward" else f"<-{r}- {h}")
    return " ".join(words)
