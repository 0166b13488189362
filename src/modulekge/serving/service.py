"""What the explorer answers about runs: no HTTP here."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import torch

from modulekge.config import dotted
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import RunError, UnknownNameError, unknown
from modulekge.evaluation.report import RelationReport, Report
from modulekge.run.listing import best_record
from modulekge.run.train import Run, load
from modulekge.serving.asking import Answer, Link, Question
from modulekge.serving.batching import Batcher, Taken
from modulekge.serving.explain import Explanation, explain
from modulekge.serving.facts import DIRECTIONS, Direction, Facts, Group
from modulekge.serving.neighbourhood import Neighbours
from modulekge.serving.predictor import Known, Predictor
from modulekge.serving.projection import project
from modulekge.serving.relations import RelationAlgebra, relation_algebra
from modulekge.serving.search import Search
from modulekge.serving.views import (
    AnswerSetView,
    CalibrationView,
    CurvePoint,
    EntityCard,
    EntityItem,
    EntityMap,
    EntityPage,
    FactEnd,
    FactGroup,
    Figures,
    FiguresOf,
    MapGroup,
    MapPoint,
    MeasuredView,
    Name,
    Neighbourhood,
    RelationItem,
    RelationPage,
    ReportView,
    RunDetail,
    RunSummary,
)

LISTED = 1000  # answers of a set
FIRST = 20  # facts of a group on an entity's card

T = TypeVar("T")
Watch = Callable[[Taken], None]


class UnknownFieldError(UnknownNameError):
    """A name that the graph does not have, and the field of the question it stands in."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class Asked:
    """Questions of one request, their names found: how many answers each, and whether known ones."""

    questions: tuple[Question, ...]
    k: int
    known: Known


@dataclass(frozen=True, eq=False)
class ServedRun:
    """A run that many ask at once.

    Torch is entered by two threads of its own only: one answers questions, those that wait together in one
    batch; the other does all else in turn.
    """

    name: str
    run: Run
    batch: int = 64
    waiting: int = 1024
    watch: Watch = lambda taken: None

    @cached_property
    def predictor(self) -> Predictor:
        """The run, to be asked by one."""
        return Predictor(self.run)

    @cached_property
    def answers(self) -> Batcher[Asked, list[list[Answer]]]:
        """Questions that wait, and their thread."""
        return Batcher(self._predict_all, self.batch, self.waiting, lambda a: len(a.questions), self.watch)

    @cached_property
    def calls(self) -> Batcher[Callable[[], Any], Any]:
        """All else that waits, and its thread."""
        return Batcher(lambda calls: [call() for call in calls], 1, self.waiting)

    def later(self, call: Callable[[], T]) -> "Future[T]":
        """Let something be computed in its turn."""
        return self.calls.ask(call)

    def close(self) -> None:
        """End the threads."""
        self.answers.close()
        self.calls.close()

    def prepare(self) -> "ServedRun":
        """Build all that answers need, so that the first one does not wait."""
        if not all(bool(weights.isfinite().all()) for weights in self.run.model.parameters()):
            raise RunError(f"{self.run.folder.path}: weights that are no numbers; train it anew")
        question = Question(self.run.dataset.entities.names[0], self.run.dataset.relations.names[0])
        self.predictor.predict_many([question], 1)
        self.search.find("a")
        return self

    @cached_property
    def facts(self) -> Facts:
        """The facts by entity."""
        return Facts.of(self.run.dataset)

    @cached_property
    def search(self) -> Search:
        """The index of entities."""
        return Search.of(self.run.dataset.entities, self.facts.degrees)

    @cached_property
    def relation_search(self) -> Search:
        """The index of relations."""
        return Search.of(self.run.dataset.relations, self.facts.of_relation)

    @cached_property
    def neighbours(self) -> Neighbours:
        """What draws neighbourhoods."""
        return Neighbours(self.predictor, self.facts)

    # What is known of the run

    @cached_property
    def summary(self) -> RunSummary:
        """The run at a glance."""
        run, records, report = self.run, self.run.folder.records(), self.run.folder.report()
        best = best_record(records)
        return RunSummary(
            self.name,
            run.dataset.name,
            run.config.model.name,
            run.config.model.k,
            len(run.dataset.entities),
            len(run.dataset.relations),
            int(self.facts.of_relation.sum()),
            len(records),
            best.valid["mrr"] if best and best.valid else None,
            _finite(report.both["mrr"]) if report else None,
            self.predictor.calibration is not None,
        )

    @cached_property
    def detail(self) -> RunDetail:
        """The run with all that was measured of it."""
        summary = {field.name: getattr(self.summary, field.name) for field in fields(RunSummary)}
        settings = {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in dotted(self.run.config).items()
        }
        curve = [
            CurvePoint(r.epoch, _finite(r.loss), _finite(r.valid["mrr"]) if r.valid else None)
            for r in self.run.folder.records()
        ]
        report = self.run.folder.report()
        return RunDetail(
            **summary,
            settings=settings,
            curve=curve,
            report=None if report is None else self._report(report),
            calibration=self._calibration(),
        )

    def _report(self, report: Report) -> ReportView:
        names = {
            self.run.dataset.relations.label(i): n for i, n in enumerate(self.run.dataset.relations.names)
        }

        def part(of: RelationReport) -> FiguresOf:
            name = names.get(of.name, of.name)
            return FiguresOf(
                name, of.name, of.triples, _figures(of.both), _figures(of.head), _figures(of.tail)
            )

        return ReportView(
            report.split,
            report.triples,
            report.candidates,
            _figures(report.both),
            {name: (_finite(low), _finite(high)) for name, (low, high) in report.intervals.items()},
            _figures(report.head),
            _figures(report.tail),
            {rule: _figures(values) for rule, values in report.ties.items()},
            _figures(report.without_unseen),
            report.unseen_triples,
            [part(of) for of in report.relations],
            [part(of) for of in report.categories],
            report.protocol,
        )

    def _calibration(self) -> CalibrationView | None:
        found = self.predictor.calibration
        if found is None:
            return None
        measured = found.measured and MeasuredView(
            found.measured.split,
            found.measured.together.questions,
            found.measured.together.before,
            found.measured.together.after,
            found.measured.sets,
        )
        return CalibrationView(found.together.triples, len(found.own), measured)

    @cached_property
    def algebra(self) -> RelationAlgebra:
        """What the relations are to each other."""
        return relation_algebra(self.run)

    # What is known of the graph

    def relations(self, limit: int, offset: int) -> RelationPage:
        """Return relations, the most used first."""
        names, counts = self.run.dataset.relations, self.facts.of_relation
        ids = self.relation_search.find("")[offset : offset + limit].tolist()
        items = [RelationItem(names.names[i], names.label(i), int(counts[i])) for i in ids]
        return RelationPage(len(names), items)

    def entities(self, search: str, limit: int, offset: int) -> EntityPage:
        """Return the entities that match, or all by degree."""
        found = self.search.find(search)
        return EntityPage(len(found), [self._item(i) for i in found[offset : offset + limit].tolist()])

    def entity(
        self, name: str, relation: str | None, direction: Direction | None, limit: int, offset: int
    ) -> EntityCard:
        """Return an entity with some facts of each relation and direction, or of one."""
        i = self.find_entity(name, "name")
        wanted = None if relation is None else self.find_relation(relation, "relation")
        groups = [
            self._group(group, limit, offset)
            for group in self.facts.groups(i)
            if wanted in (None, group.relation) and direction in (None, group.direction)
        ]
        item = self._item(i)
        return EntityCard(item.name, item.label, item.degree, None, groups)

    def _item(self, i: int) -> EntityItem:
        names = self.run.dataset.entities
        return EntityItem(names.names[i], names.label(i), int(self.facts.degrees[i]))

    def _group(self, group: Group, limit: int, offset: int) -> FactGroup:
        names, shown = self.run.dataset.entities, slice(offset, offset + limit)
        items = [
            FactEnd(names.names[i], names.label(i), split)
            for i, split in zip(group.others[shown].tolist(), group.splits[shown], strict=True)
        ]
        return FactGroup(self._relation(group.relation), group.direction, len(group.others), items)

    def _relation(self, i: int) -> Name:
        return Name(self.run.dataset.relations.names[i], self.run.dataset.relations.label(i))

    def find_entity(self, text: str, field: str) -> int:
        """Return the id of an entity; of an unknown one say which field names it, and the nearest names."""
        return _find(self.run.dataset.entities, self.search, text, field)

    def find_relation(self, text: str, field: str) -> int:
        """Return the id of a relation, likewise."""
        return _find(self.run.dataset.relations, self.relation_search, text, field)

    # What the model says

    def ask(self, questions: Sequence[Question], k: int, known: Known) -> Asked:
        """Find the names of questions, each in its field."""
        found = []
        for i, question in enumerate(questions):
            place = f"questions[{i}]"
            found.append(self._named(question.head, question.relation, question.tail, place + "."))
        return Asked(tuple(Question(*names) for names in found), k, known)

    def _named(
        self, head: str | None, relation: str | None, tail: str | None, place: str = ""
    ) -> tuple[str | None, str | None, str | None]:
        entities, relations = self.run.dataset.entities.names, self.run.dataset.relations.names
        return (
            None if head is None else entities[self.find_entity(head, f"{place}head")],
            None if relation is None else relations[self.find_relation(relation, f"{place}relation")],
            None if tail is None else entities[self.find_entity(tail, f"{place}tail")],
        )

    def predict(self, asked: Asked) -> "Future[list[list[Answer]]]":
        """Let questions wait for their answers; where there are fewer than k, all are given."""
        return self.answers.ask(asked)

    def _predict_all(self, batch: Sequence[Asked]) -> list[list[list[Answer]]]:
        """Answer requests together: one call for all questions of a kind."""
        found: list[list[list[Answer]]] = [[[] for _ in asked.questions] for asked in batch]
        kinds: dict[tuple[Known, bool], list[tuple[int, int]]] = {}
        for i, asked in enumerate(batch):
            for j, question in enumerate(asked.questions):
                kinds.setdefault((asked.known, question.relation is None), []).append((i, j))
        for (known, of_relations), places in kinds.items():
            size = len(self.run.dataset.relations if of_relations else self.run.dataset.entities)
            k = min(size, max(batch[i].k for i, _ in places))
            rows = self.predictor.predict_many([batch[i].questions[j] for i, j in places], k, known)
            for (i, j), row in zip(places, rows, strict=True):
                found[i][j] = row[: batch[i].k]
        return found

    def answer_set(self, question: Question, coverage: float) -> AnswerSetView:
        """Return the answers that contain the missing one with this probability."""
        head, relation, tail = self._named(question.head, question.relation, question.tail)
        found = self.predictor.answer_set(head=head, relation=relation or "", tail=tail, coverage=coverage)
        return AnswerSetView(
            found.answers[:LISTED],
            len(found.answers),
            found.coverage,
            found.candidates,
            found.triples,
            found.own,
            found.everything,
        )

    def score(self, triples: Iterable[tuple[str, str, str]]) -> list[Link]:
        """Return how probable triples are, and how they rank."""
        named = [self._named(*triple, f"triples[{i}].") for i, triple in enumerate(triples)]
        return self.predictor.score([(h or "", r or "", t or "") for h, r, t in named])

    def explain(self, head: str, relation: str, tail: str) -> Explanation:
        """Return what speaks for a triple."""
        names = self._named(head, relation, tail)
        return explain(self.run, *(name or "" for name in names))

    def neighbourhood(self, name: str, known: int, predicted: int) -> Neighbourhood:
        """Return what surrounds an entity."""
        return self.neighbours.of(self.find_entity(name, "name"), known, predicted)

    @cached_property
    def _places(self) -> tuple[list[list[float]], list[int], list[int]]:
        """Return the place of each entity on the map, its question, and the order of degrees."""
        places = project(self.predictor.table).tolist()
        return places, self.facts.most_asked().tolist(), self.search.find("").tolist()

    def map(self, limit: int) -> EntityMap:
        """Return the best-connected entities on a plane."""
        places, questions, order = self._places
        names, n = self.run.dataset.entities, len(self.run.dataset.relations)
        points = [
            MapPoint(names.names[i], names.label(i), *places[i], self._group_name(questions[i]))
            for i in order[:limit]
        ]
        asked = [questions[i] for i in order[:limit] if questions[i] >= 0]
        counts = {q: asked.count(q) for q in set(asked)}
        groups = [
            MapGroup(self._group_name(q) or "", self._relation(q % n), DIRECTIONS[q // n], counts[q])
            for q in sorted(counts, key=lambda q: (-counts[q], q))
        ]
        return EntityMap(points, groups)

    def _group_name(self, question: int) -> str | None:
        n = len(self.run.dataset.relations)
        return f"{DIRECTIONS[question // n]} {self._relation(question % n).name}" if question >= 0 else None


@dataclass(frozen=True, eq=False)
class Service:
    """The runs that are served, by the name each was given."""

    runs: Mapping[str, ServedRun]

    @classmethod
    def open(
        cls, paths: Iterable[Path], device: torch.device, batch: int = 64, watch: Watch = lambda taken: None
    ) -> "Service":
        """Load runs and build what answers need; a damaged run is refused here."""
        runs: dict[str, ServedRun] = {}
        for path in paths:
            run = load(path)
            run.model.to(device)
            name = _unique(path.resolve().name or "run", runs)
            runs[name] = ServedRun(name, run, batch, watch=watch).prepare()
        return cls(runs)

    def __getitem__(self, name: str) -> ServedRun:
        if name not in self.runs:
            raise unknown("run", name, self.runs, f"served are {', '.join(self.runs)}")
        return self.runs[name]

    def close(self) -> None:
        """End the threads of every run."""
        for run in self.runs.values():
            run.close()


def _unique(name: str, taken: Mapping[str, object]) -> str:
    """Return the name, or with a number where another run has it."""
    number, unique = 2, name
    while unique in taken:
        unique, number = f"{name}-{number}", number + 1
    return unique


def _find(vocabulary: Vocabulary, search: Search, text: str, field: str) -> int:
    found = vocabulary.meant(text)
    if len(found) == 1:
        return found[0]
    shown = text if len(text) <= 80 else text[:80] + "..."
    if found:
        names = ", ".join(vocabulary.names[i] for i in found[:5])
        raise UnknownFieldError(
            f"{shown!r} is the label of {len(found)}; give one of the names {names}", field
        )
    near = " or ".join(vocabulary.label(i) for i in search.nearest(text).tolist())
    some = ", ".join(vocabulary.label(i) for i in range(min(3, len(vocabulary))))
    advice = f"did you mean {near}?" if near else f"there are {len(vocabulary):,}, such as {some}"
    raise UnknownFieldError(f"unknown {vocabulary.kind} {shown!r}; {advice}", field)


def _figures(values: Mapping[str, float]) -> Figures:
    return {name: _finite(value) for name, value in values.items()}


def _finite(value: float) -> float | None:
    """JSON has no NaN and no infinity."""
    return value if math.isfinite(value) else None
