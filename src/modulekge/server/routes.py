"""The routes of the API: thin and typed, around the service. Needs the extra 'serve'."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import fields
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse

from modulekge.answers.questions import Link, QuestionIds
from modulekge.data.type_constraints import Types
from modulekge.explanations.relation_patterns import RelationPatterns
from modulekge.explanations.values import Explanation, PathExplanation
from modulekge.run.judgements import Agreement, Judgement, agreement, standing_judgements
from modulekge.server.facts import Direction
from modulekge.server.links import MOST_LINKS
from modulekge.server.lookup import UnknownFieldError
from modulekge.server.metrics import Metrics
from modulekge.server.requests import (
    MOST_POINTS,
    PROBLEMS,
    AnswerRow,
    Answers,
    Ask,
    CompoundAnswer,
    CompoundRow,
    Explain,
    Health,
    Judged,
    Judgements,
    Kept,
    Limit,
    Links,
    NamedQuestion,
    Offset,
    Predict,
    Problem,
    RunName,
    Score,
    Scored,
    SetAnswer,
    SetForHeads,
    SetForTails,
    Text,
)
from modulekge.server.service import ServedRun, Service
from modulekge.server.tables import TABLES, as_asked
from modulekge.server.views import (
    AlikeEntities,
    EntityCard,
    EntityItem,
    EntityMap,
    EntityPage,
    FactRow,
    Neighbourhood,
    RelationCard,
    RelationItem,
    RelationPage,
    RunDetail,
    RunSummary,
)
from modulekge.version import __version__

T = TypeVar("T")


async def only_known_parameters(request: Request) -> None:
    """Refuse a query parameter that a route does not have: it is mistyped, and would say nothing."""
    known = {parameter.alias for parameter in request.scope["route"].dependant.query_params}
    for name in request.query_params:
        if name not in known:
            advice = f"there are {', '.join(sorted(known))}" if known else "there are none"
            said = {"type": "unknown", "loc": ("query", name[:80]), "msg": f"Unknown parameter; {advice}"}
            raise RequestValidationError([{**said, "input": None}])


_CHECKS = [Depends(only_known_parameters)]


async def _soon(future: "Future[T]") -> T:
    """Wait for an answer; who stops waiting takes the question back."""
    return await asyncio.wrap_future(future)


def known_routes(service: Service) -> APIRouter:
    """What is known of runs and graphs; names of entities and relations are parameters, never paths."""
    router = APIRouter(prefix="/api/v1/runs", responses=PROBLEMS, dependencies=_CHECKS, tags=["graph"])

    @router.get("")
    async def runs() -> list[RunSummary]:
        """Every run that is served."""
        return [run.summary for run in service.runs.values()]

    @router.get("/{run}")
    async def run(run: RunName) -> RunDetail:
        """A run with its settings, training curve, report and calibration."""
        return service[run].detail

    @router.get("/{run}/relations", responses=TABLES, response_model=RelationPage)
    async def relations(
        request: Request, run: RunName, search: Text = "", limit: Limit = 100, offset: Offset = 0
    ) -> Any:
        """Relations whose name or label matches, as entities are found. Else by facts."""
        found = service[run].lookup.relations(search, limit, offset)
        return as_asked(request, found, RelationItem, lambda page: page.items)

    @router.get("/{run}/relation", responses=TABLES, response_model=RelationCard)
    async def relation(
        request: Request, run: RunName, name: Text, limit: Limit = 20, offset: Offset = 0
    ) -> Any:
        """A relation: its facts page by page, its metrics, and how true its probabilities are."""
        return as_asked(request, service[run].relation(name, limit, offset), FactRow, _relation_rows)

    @router.get("/{run}/entities", responses=TABLES, response_model=EntityPage)
    async def entities(
        request: Request, run: RunName, search: Text = "", limit: Limit = 20, offset: Offset = 0
    ) -> Any:
        """Entities whose name or label matches: exact, by prefix, by word, then alike. Else by degree."""
        found = service[run].lookup.entities(search, limit, offset)
        return as_asked(request, found, EntityItem, lambda page: page.items)

    @router.get("/{run}/entity", responses=TABLES, response_model=EntityCard)
    async def entity(
        request: Request,
        run: RunName,
        name: Text,
        relation: Annotated[str | None, Query(max_length=1000)] = None,
        direction: Direction | None = None,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Any:
        """An entity with its known facts by relation and direction; or one group of them, page by page."""
        found = service[run].lookup.entity(name, relation, direction, limit, offset)
        return as_asked(request, found, FactRow, _entity_rows)

    return router


def asked_routes(service: Service) -> APIRouter:
    """What the model says: every answer is waited for."""
    router = APIRouter(prefix="/api/v1/runs", responses=PROBLEMS, dependencies=_CHECKS, tags=["model"])

    @router.post("/{run}/predict", responses=TABLES, response_model=Answers)
    async def predict(request: Request, run: RunName, asked: Predict) -> Any:
        """The best answers to questions with one of head, relation, tail left out.

        A question with an unknown name fails alone; where all do, the first problem is the answer.
        """
        return as_asked(request, await _predicted(service[run], asked), AnswerRow, _answer_rows)

    @router.post("/{run}/ask", responses=TABLES, response_model=CompoundAnswer)
    async def ask(request: Request, run: RunName, asked: Ask) -> Any:
        """The best answers to a question of several links, each with the links that speak for it."""
        found = await _soon(service[run].ask(asked.question, asked.k, asked.known, asked.t_norm, asked.types))
        answer = CompoundAnswer(**vars(found), question=asked.question)
        return as_asked(request, answer, CompoundRow, _compound_rows)

    @router.post("/{run}/answer-set")
    async def prediction_set(run: RunName, asked: SetForTails | SetForHeads) -> SetAnswer:
        """A prediction set: if a fact is missing, it is among these in a share `coverage` of cases."""
        lookup = service[run].lookup
        question = lookup.question(asked.question())
        found = await _soon(service[run].prediction_set(question, asked.coverage, asked.limit))
        return SetAnswer(**vars(found), question=NamedQuestion(*lookup.named(question)))

    @router.post("/{run}/score", responses=TABLES, response_model=Scored)
    async def score(request: Request, run: RunName, asked: Score) -> Any:
        """Score, probability and ranks of triples; one with an unknown name fails alone, unless all do."""
        found = service[run].lookup.triples(asked.triples, "triples")
        scored = await _soon(service[run].score_ids(_whole(found)))
        links = iter(scored)
        rows = [None if isinstance(each, UnknownFieldError) else next(links) for each in found]
        return as_asked(
            request,
            Scored(rows, _problems(found)),
            Link,
            lambda answer: [each for each in answer.links if each is not None],
        )

    @router.post("/{run}/explain")
    async def explain(run: RunName, asked: Explain) -> Explanation | PathExplanation:
        """What speaks for a triple: facts, paths, like entities."""
        return await _soon(service[run].explain((asked.head, asked.relation, asked.tail), asked.k))

    @router.get("/{run}/neighbours")
    async def neighbours(
        run: RunName,
        name: Text,
        known: Annotated[int, Query(ge=0, le=200)] = 20,
        predicted: Annotated[int, Query(ge=0, le=50)] = 8,
        types: Types = "constrained",
        relation: Annotated[str | None, Query(max_length=1000)] = None,
    ) -> Neighbourhood:
        """Known facts around an entity, and its most probable new links, to entities of fitting types."""
        return await _soon(service[run].neighbourhood(name, known, predicted, types, relation))

    @router.get("/{run}/examples")
    async def examples(run: RunName, limit: Annotated[int, Query(ge=1, le=50)] = 8) -> Links:
        """Held-out facts whose tail the run gives first, of each relation in turn: what it can be asked."""
        return Links(await _soon(service[run].examples(limit)))

    @router.get("/{run}/links", responses=TABLES, response_model=Links)
    async def links(
        request: Request,
        run: RunName,
        relation: Annotated[str | None, Query(max_length=1000)] = None,
        limit: Annotated[int, Query(ge=1, le=MOST_LINKS)] = 20,
        types: Types = "constrained",
    ) -> Any:
        """The most probable new links of a relation, or of all; found once."""
        found = Links(
            await _soon(service[run].links(None if relation is None else [relation], limit, types=types))
        )
        return as_asked(request, found, Link, lambda answer: answer.links)

    @router.get("/{run}/alike")
    async def alike(
        run: RunName, name: Text, limit: Annotated[int, Query(ge=1, le=100)] = 10
    ) -> AlikeEntities:
        """The entities whose learned vectors are most like that of one."""
        return await _soon(service[run].alike(name, limit))

    @router.get("/{run}/algebra")
    async def algebra(run: RunName) -> RelationPatterns:
        """What the relations are to each other: symmetric, inverse, composed. Computed once."""
        return await _soon(service[run].algebra())

    @router.get("/{run}/map")
    async def entity_map(
        run: RunName, limit: Annotated[int, Query(ge=1, le=MOST_POINTS)] = 2000
    ) -> EntityMap:
        """The best-connected entities on a plane, those with like vectors together; found once."""
        return await _soon(service[run].map(limit))

    return router


async def _predicted(run: ServedRun, asked: Predict) -> Answers:
    """Answer the questions whose names are known."""
    found = run.lookup.questions([question.question() for question in asked.questions])
    rows = await _soon(run.predict(_whole(found), asked.k, asked.known, asked.types))
    answers = iter(rows)
    named = run.lookup.named
    return Answers(
        [
            NamedQuestion(*named(q))
            if isinstance(q, QuestionIds)
            else NamedQuestion(given.head, given.relation, given.tail)
            for q, given in zip(found, asked.questions, strict=True)
        ],
        [next(answers) if isinstance(question, QuestionIds) else [] for question in found],
        _problems(found),
    )


def _whole(found: Sequence[T | UnknownFieldError]) -> list[T]:
    """Return what was found; where every name is unknown, raise the first problem."""
    whole = [each for each in found if not isinstance(each, UnknownFieldError)]
    errors = [each for each in found if isinstance(each, UnknownFieldError)]
    if errors and not whole:
        raise errors[0]
    return whole


def _problems(found: Sequence[Any]) -> list[Problem | None]:
    """Return what is wrong with each item, None where nothing is."""
    return [Problem(str(each), each.field) if isinstance(each, UnknownFieldError) else None for each in found]


def _relation_rows(card: RelationCard) -> Iterator[FactRow]:
    """Yield the facts of a relation."""
    for fact in card.facts:
        yield FactRow(fact.head.name, card.name, fact.tail.name, fact.split)


def _entity_rows(card: EntityCard) -> Iterator[FactRow]:
    """Yield the facts of an entity, each as it stands in the graph."""
    for group in card.facts:
        for other in group.items:
            ends = (card.name, other.name) if group.direction == "out" else (other.name, card.name)
            yield FactRow(ends[0], group.relation.name, ends[1], other.split)


def _compound_rows(found: CompoundAnswer) -> Iterator[dict[str, Any]]:
    """Yield every answer, without the links that speak for it."""
    columns = [field.name for field in fields(CompoundRow)]
    for answer in found.answers:
        yield {name: getattr(answer, name) for name in columns}


def _answer_rows(found: Answers) -> Iterator[dict[str, Any]]:
    """Yield every answer with its question; what was asked for is the answer itself."""
    for i, (question, answers) in enumerate(zip(found.questions, found.answers, strict=True)):
        for answer in answers:
            yield vars(answer) | vars(question) | {"question": i}


def judgement_routes(service: Service) -> APIRouter:
    """What people say of links."""
    router = APIRouter(prefix="/api/v1/runs", responses=PROBLEMS, dependencies=_CHECKS, tags=["judgements"])

    @router.post("/{run}/judgements")
    async def judge(run: RunName, judged: Judged) -> Kept:
        """Accept or reject links, with a reason; kept beside the run, with the probability at this time.

        One with an unknown name fails alone, unless all do.
        """
        verdicts = [((j.head, j.relation, j.tail), j.verdict, j.reason) for j in judged.judgements]
        found = service[run].lookup.triples([triple for triple, _, _ in verdicts], "judgements")
        _whole(found)
        kept = [
            each for each, ids in zip(verdicts, found, strict=True) if not isinstance(ids, UnknownFieldError)
        ]
        return Kept(await _soon(service[run].judge(kept, judged.by)), _problems(found))

    @router.get("/{run}/judgements", responses=TABLES, response_model=Judgements)
    async def judgements(request: Request, run: RunName) -> Any:
        """What everyone said last of each link, without what was withdrawn."""
        every = await _soon(service[run].judgements())
        found = Judgements(standing_judgements(every))
        return as_asked(request, found, Judgement, lambda answer: answer.judgements)

    @router.get("/{run}/agreement")
    async def agreements(run: RunName) -> Agreement:
        """How judgements agree with probabilities: which share of links was accepted, by probability."""
        every = await _soon(service[run].judgements())
        return agreement(every)

    return router


def server_routes(service: Service, metrics: Metrics) -> APIRouter:
    """Whether the server is up, and what it did."""
    router = APIRouter(responses=PROBLEMS, dependencies=_CHECKS, tags=["server"])

    @router.get("/health")
    async def health() -> Health:
        """Whether the server is up."""
        return Health("ok", __version__, len(service.runs))

    @router.get("/metrics", response_class=PlainTextResponse)
    async def numbers() -> PlainTextResponse:
        """Requests, seconds, batches and what waits, as Prometheus reads them."""
        queued = {name: run.answers.queued for name, run in service.runs.items()}
        return PlainTextResponse(metrics.text(queued), media_type="text/plain; version=0.0.4")

    return router
