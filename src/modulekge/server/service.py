"""What the explorer answers about runs, to many at once: no HTTP here."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar, get_args

import torch

from modulekge.answers.compound.asker import Asker, CompoundAnswers
from modulekge.answers.compound.syntax import parse
from modulekge.answers.predictor import Known, Predictor
from modulekge.answers.questions import Answer, QuestionIds
from modulekge.data.type_constraints import Types, check_types
from modulekge.errors import RunError, unknown
from modulekge.explanations.explanation import alike, explain_ids
from modulekge.explanations.relation_patterns import RelationPatterns, relation_patterns
from modulekge.explanations.values import Explanation, PathExplanation
from modulekge.run.judgements import Judgement, Verdict, keep_judgements, read_judgements
from modulekge.run.run import Run, load
from modulekge.server.about import relation_card, run_detail, run_summary
from modulekge.server.batching import Batcher, BatchStats
from modulekge.server.entity_map import MapMaker, places_of
from modulekge.server.links import found_links, link_views, new_links
from modulekge.server.lookup import Lookup
from modulekge.server.neighbourhood import Neighbours
from modulekge.server.question_batch import QuestionBatch, answer_together
from modulekge.server.views import (
    AlikeEntities,
    EntityMap,
    LinkView,
    Neighbourhood,
    PredictionSetView,
    RelationCard,
    RunDetail,
    RunSummary,
)

BATCH = 64  # questions that are answered at once
_WAITING = 1024  # questions that may wait
_CALLS = 64  # all else that may wait
_MOST_SCORES = 1 << 31  # worked out for a compound question, while other calls wait

T = TypeVar("T")
Watch = Callable[[BatchStats], None]


@dataclass(frozen=True, eq=False)
class ServedRun:
    """A run that many ask at once.

    Torch is entered by two threads only: one answers questions, those that wait together in one batch; the
    other does all else in turn. Names are found before anything waits, so that a bad one fails at once.
    """

    name: str
    run: Run
    batch: int = BATCH
    watch: Watch = lambda taken: None

    @cached_property
    def lookup(self) -> Lookup:
        """What is known of the graph."""
        return Lookup(self.run.dataset)

    @cached_property
    def predictor(self) -> Predictor:
        """The run, to be asked by one thread."""
        return Predictor(self.run)

    @cached_property
    def answers(self) -> Batcher[QuestionBatch, list[list[Answer]]]:
        """Questions that wait, and their thread."""
        answer = partial(answer_together, self.predictor)
        return Batcher(answer, self.batch, _WAITING, lambda asked: len(asked.questions), self.watch)

    @cached_property
    def calls(self) -> Batcher[Callable[[], Any], Any]:
        """All else that waits, and its thread."""
        return Batcher(lambda calls: [call() for call in calls], 1, _CALLS)

    @cached_property
    def _neighbours(self) -> Neighbours:
        return Neighbours(self.predictor, self.lookup)

    @cached_property
    def _askers(self) -> dict[Types, Asker]:
        """Who answers compound questions, and keeps what was worked out for them."""
        return {
            types: Asker(self.run, types=types, most_scores=_MOST_SCORES, predictor=self.predictor)
            for types in get_args(Types)
        }

    @cached_property
    def _map(self) -> MapMaker:
        return MapMaker(self.lookup, places_of(self.run))

    @cached_property
    def _algebra(self) -> RelationPatterns:
        return relation_patterns(self._on_cpu)

    @cached_property
    def _found(self) -> list[LinkView]:
        return found_links(self.predictor)

    @cached_property
    def _new_links(self) -> dict[tuple[tuple[int, ...], Types], list[LinkView]]:
        """The most probable new links of relations that were asked for before."""
        return {}

    @cached_property
    def _on_cpu(self) -> Run:
        """The run for what is computed there whatever the device: explanations and algebra."""
        cpu = torch.device("cpu")
        return self.run if self.run.model.device == cpu else self.run.copied_to(cpu)

    @cached_property
    def summary(self) -> RunSummary:
        """The run at a glance."""
        return run_summary(self.name, self.run, int(self.lookup.facts.of_relation.sum()))

    @cached_property
    def detail(self) -> RunDetail:
        """The run with all that was measured of it."""
        return run_detail(self.summary, self.run)

    def prepare(self) -> "ServedRun":
        """Build what answers need, so that nobody waits for it; what is damaged shows here."""
        self.lookup.prepare()
        asked = [QuestionIds(0, 0, for_relations=False)]
        if not self.run.model.spec.along_paths:  # which ask for a relation as often as there are relations
            asked.append(QuestionIds(0, 0, for_relations=True))
        self.predictor.predict_ids(asked)
        _ = self.detail, self.answers, self.calls
        return self

    def finish(self) -> None:
        """Let the threads end once all that waits is answered."""
        self.answers.finish()
        self.calls.finish()

    def close(self) -> None:
        """End the threads."""
        self.answers.close()
        self.calls.close()

    def predict(
        self, questions: Sequence[QuestionIds], k: int, known: Known, types: Types = "any"
    ) -> "Future[list[list[Answer]]]":
        """Return the best answers to each question; where there are fewer than ``k``, all."""
        check_types(types, any(asked.for_relations for asked in questions))
        return self.answers.ask(QuestionBatch(tuple(questions), k, known, types))

    def prediction_set(self, asked: QuestionIds, coverage: float, limit: int) -> "Future[PredictionSetView]":
        """Return a prediction set of this coverage, of which so many answers are listed."""
        return self.later(lambda: self._answer_set(asked, coverage, limit))

    def _answer_set(self, asked: QuestionIds, coverage: float, limit: int) -> PredictionSetView:
        found = self.predictor.prediction_set_of_ids(asked, coverage)
        listed = vars(found) | {"answers": found.answers[:limit]}
        return PredictionSetView(**listed, size=len(found.answers), everything=found.everything)

    def ask(
        self, question: str, k: int, known: Known, t_norm: str, types: Types
    ) -> "Future[CompoundAnswers]":
        """Return the best answers to a compound question; where there are fewer than ``k``, all."""
        asked, most = parse(question), min(k, len(self.run.dataset.entities))
        return self.later(lambda: self._askers[types].ask(asked, most, known, t_norm))

    def score(self, triples: Sequence[tuple[str, str, str]]) -> "Future[list[LinkView]]":
        """Return how probable triples are, and how they rank."""
        found = [self.lookup.triple(triple, f"triples[{i}].") for i, triple in enumerate(triples)]
        return self.score_ids(found)

    def score_ids(self, triples: Sequence[tuple[int, int, int]]) -> "Future[list[LinkView]]":
        """Return how probable triples of known names are, and how they rank."""
        ids = torch.tensor(triples, dtype=torch.long).view(-1, 3)
        return self.later(lambda: link_views(self.predictor, ids))

    def judge(
        self, verdicts: Sequence[tuple[tuple[str, str, str], Verdict, str]], by: str
    ) -> "Future[list[Judgement]]":
        """Keep verdicts on triples, each with its reason, beside the run."""
        found = [self.lookup.triple(triple, f"judgements[{i}].") for i, (triple, _, _) in enumerate(verdicts)]
        ids = torch.tensor(found, dtype=torch.long).view(-1, 3)
        now = datetime.now(UTC).isoformat(timespec="seconds")

        def keep() -> list[Judgement]:
            links = self.predictor.score_ids(ids)
            judged = [
                Judgement(link.head, link.relation, link.tail, verdict, reason, by, link.probability, now)
                for link, (_, verdict, reason) in zip(links, verdicts, strict=True)
            ]
            keep_judgements(self.run.folder, judged)
            return judged

        return self.later(keep)

    def judgements(self) -> "Future[list[Judgement]]":
        """Return every judgement that was kept."""
        return self.later(lambda: read_judgements(self.run.folder))

    def explain(self, triple: tuple[str, str, str], k: int = 5) -> "Future[Explanation | PathExplanation]":
        """Return what speaks for a triple, at most ``k`` of each kind."""
        found = self.lookup.triple(triple)
        return self.later(lambda: explain_ids(self._on_cpu, found, k))

    def neighbourhood(
        self,
        name: str,
        known: int,
        predicted: int,
        types: Types = "constrained",
        relation: str | None = None,
    ) -> "Future[Neighbourhood]":
        """Return so many facts around an entity, and so many of its most probable new links."""
        entity = self.lookup.find_entity(name, "name")
        only = None if relation is None else self.lookup.find_relation(relation, "relation")
        return self.later(lambda: self._neighbours.of(entity, known, predicted, types, only))

    def relation(self, name: str, limit: int, offset: int) -> RelationCard:
        """Return a relation with some of its facts and what was measured of it."""
        relation = self.lookup.find_relation(name, "name")
        return relation_card(self.run, self.lookup, relation, limit, offset)

    def links(
        self,
        relations: Sequence[str] | None,
        k: int,
        min_probability: float = 0.0,
        types: Types = "constrained",
    ) -> "Future[list[LinkView]]":
        """Return the most probable new links of some relations, or of all; found once."""
        ids = tuple(
            range(len(self.run.dataset.relations))
            if relations is None
            else dict.fromkeys(
                self.lookup.find_relation(name, f"relations[{i}]") for i, name in enumerate(relations)
            )
        )

        def find() -> list[LinkView]:
            if (ids, types) not in self._new_links:
                self._new_links[ids, types] = new_links(self.predictor, ids, types)
            return [
                link for link in self._new_links[ids, types] if (link.probability or 0.0) >= min_probability
            ][:k]

        return self.later(find)

    def examples(self, limit: int) -> "Future[list[LinkView]]":
        """Return held-out facts that the run finds; sought once."""
        return self.later(lambda: self._found[:limit])

    def map(self, limit: int) -> "Future[EntityMap]":
        """Return the best-connected entities on a plane."""
        return self.later(lambda: self._map.of_best(limit))

    def alike(self, name: str, limit: int) -> "Future[AlikeEntities]":
        """Return the entities whose vectors are most like that of one."""
        entity = self.lookup.find_entity(name, "name")

        def find() -> AlikeEntities:
            table = self._on_cpu.embedding.entities()
            return AlikeEntities(self.lookup.item(entity).name, [*alike(self._on_cpu, table, entity, limit)])

        return self.later(find)

    def algebra(self) -> "Future[RelationPatterns]":
        """Return what the relations are to each other; found once."""
        return self.later(lambda: self._algebra)

    def later(self, call: Callable[[], T]) -> "Future[T]":
        """Call where all but questions is done, in turn."""
        return self.calls.ask(lambda: self._by_name(call))

    def _by_name(self, call: Callable[[], T]) -> T:
        """Call; what is wrong with the run is said of its name, for its path is nobody's business."""
        try:
            return call()
        except RunError as error:
            path = rf"(?<![\w.-]){re.escape(str(self.run.folder.path))}(?![\w.-])"
            raise RunError(re.sub(path, lambda _: self.name, str(error))) from None


@dataclass(frozen=True, eq=False)
class Service:
    """The runs that are served, by the name each was given.

    >>> service = Service.open([Path("runs/demo")], torch.device("cpu"))  # doctest: +SKIP
    >>> service["demo"].predict([Question("France", "borders")], 3, "exclude").result()  # doctest: +SKIP
    """

    runs: Mapping[str, ServedRun]

    @classmethod
    def open(
        cls,
        paths: Iterable[Path],
        device: torch.device,
        batch: int = BATCH,
        watch: Watch = lambda taken: None,
    ) -> "Service":
        """Load runs and build what answers need; each is called as its folder, with a number for a second."""
        runs: dict[str, ServedRun] = {}
        for path in paths:
            run = load(path).on(device)
            name = _unique(path.resolve().name, runs)
            runs[name] = ServedRun(name, run, batch, watch).prepare()
        return cls(runs)

    def __getitem__(self, name: str) -> ServedRun:
        if name not in self.runs:
            raise unknown("run", name[:80], self.runs, f"served are {', '.join(self.runs)}")
        return self.runs[name]

    def close(self) -> None:
        """End the threads of every run."""
        for run in self.runs.values():
            run.close()


def _unique(name: str, taken: Mapping[str, object]) -> str:
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return next(one for one in (name, *numbered) if one not in taken)
