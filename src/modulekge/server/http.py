"""The explorer over HTTP: thin typed routes around the service. Needs the extra 'serve'."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from importlib import resources
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from modulekge.answers.compound.asker import CompoundAnswers
from modulekge.answers.type_constraints import Types
from modulekge.errors import ModulekgeError, PointedError, UnknownNameError
from modulekge.explanations.relation_patterns import RelationPatterns
from modulekge.explanations.values import Explanation, PathExplanation
from modulekge.server.batching import BusyError
from modulekge.server.facts import Direction
from modulekge.server.links import MOST_LINKS
from modulekge.server.metrics import Metrics
from modulekge.server.middleware import INTERNAL, LIMITS, LOOPBACK, Limits, Middleware
from modulekge.server.reference import reference_page
from modulekge.server.requests import (
    MOST_POINTS,
    PROBLEMS,
    QUESTION_KINDS,
    Answers,
    Ask,
    Explain,
    Health,
    Limit,
    Links,
    Offset,
    Predict,
    RunName,
    Score,
    SetForHeads,
    SetForTails,
    Text,
)
from modulekge.server.service import Service
from modulekge.server.views import (
    EntityCard,
    EntityMap,
    EntityPage,
    Neighbourhood,
    PredictionSetView,
    RelationCard,
    RelationPage,
    RunDetail,
    RunSummary,
)
from modulekge.version import __version__

T = TypeVar("T")
_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


def make_app(
    service: Service,
    metrics: Metrics | None = None,
    token: str | None = None,
    hosts: frozenset[str] | None = LOOPBACK,
    numbers: bool = False,
    limits: Limits = LIMITS,
) -> Middleware:
    """Return the ASGI application that serves the runs, behind its middleware.

    >>> app = make_app(Service.open([Path("runs/demo")], torch.device("cpu")))  # doctest: +SKIP
    >>> uvicorn.run(app)  # doctest: +SKIP
    """

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    metrics = metrics or Metrics()
    app = FastAPI(
        title="modulekge",
        version=__version__,
        description="Answers of trained knowledge-graph embeddings, by name.",
        docs_url=None,
        redoc_url=None,
        lifespan=life,
        redirect_slashes=False,
    )
    app.include_router(_known(service))
    app.include_router(_asked(service))
    app.include_router(_server(service, metrics))
    app.include_router(_page(app))
    app.add_exception_handler(HTTPException, _http_problem)
    app.add_exception_handler(RequestValidationError, _validation_problem)
    app.add_exception_handler(ModulekgeError, _problem)
    app.add_exception_handler(Exception, _our_problem)
    return Middleware(app, metrics, token, hosts, numbers, limits)


async def _soon(future: "Future[T]") -> T:
    """Wait for an answer; who stops waiting takes the question back."""
    return await asyncio.wrap_future(future)


def _known(service: Service) -> APIRouter:
    """What is known of runs and graphs; names of entities and relations are parameters, never paths."""
    router = APIRouter(prefix="/api/v1/runs", responses=PROBLEMS)

    @router.get("")
    async def runs() -> list[RunSummary]:
        """Every run that is served."""
        return [run.summary for run in service.runs.values()]

    @router.get("/{run}")
    async def run(run: RunName) -> RunDetail:
        """A run with its settings, training curve, report and calibration."""
        return service[run].detail

    @router.get("/{run}/relations")
    async def relations(
        run: RunName, search: Text = "", limit: Limit = 100, offset: Offset = 0
    ) -> RelationPage:
        """Relations whose name or label matches, as entities are found. Else by facts."""
        return service[run].lookup.relations(search, limit, offset)

    @router.get("/{run}/relation")
    async def relation(run: RunName, name: Text, limit: Limit = 20, offset: Offset = 0) -> RelationCard:
        """A relation: its facts page by page, its metrics, and how true its probabilities are."""
        return service[run].relation(name, limit, offset)

    @router.get("/{run}/entities")
    async def entities(run: RunName, search: Text = "", limit: Limit = 20, offset: Offset = 0) -> EntityPage:
        """Entities whose name or label matches: exact, by prefix, by word, then alike. Else by degree."""
        return service[run].lookup.entities(search, limit, offset)

    @router.get("/{run}/entity")
    async def entity(
        run: RunName,
        name: Text,
        relation: Annotated[str | None, Query(max_length=1000)] = None,
        direction: Direction | None = None,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> EntityCard:
        """An entity with its known facts by relation and direction; or one group of them, page by page."""
        return service[run].lookup.entity(name, relation, direction, limit, offset)

    return router


def _asked(service: Service) -> APIRouter:
    """What the model says: every answer is waited for."""
    router = APIRouter(prefix="/api/v1/runs", responses=PROBLEMS)

    @router.post("/{run}/predict")
    async def predict(run: RunName, asked: Predict) -> Answers:
        """The best answers to questions with one of head, relation, tail left out."""
        questions = [question.question() for question in asked.questions]
        return Answers(await _soon(service[run].predict(questions, asked.k, asked.known, asked.types)))

    @router.post("/{run}/ask")
    async def ask(run: RunName, asked: Ask) -> CompoundAnswers:
        """The best answers to a question of several links, each with the links that speak for it."""
        return await _soon(service[run].ask(asked.question, asked.k, asked.known, asked.t_norm, asked.types))

    @router.post("/{run}/answer-set")
    async def prediction_set(run: RunName, asked: SetForTails | SetForHeads) -> PredictionSetView:
        """A prediction set: if a fact is missing, it is among these in a share `coverage` of cases."""
        return await _soon(service[run].prediction_set(asked.question(), asked.coverage))

    @router.post("/{run}/score")
    async def score(run: RunName, asked: Score) -> Links:
        """Score, probability and ranks of triples."""
        return Links(await _soon(service[run].score(asked.triples)))

    @router.post("/{run}/explain")
    async def explain(run: RunName, asked: Explain) -> Explanation | PathExplanation:
        """What speaks for a triple: facts, paths, like entities."""
        return await _soon(service[run].explain((asked.head, asked.relation, asked.tail)))

    @router.get("/{run}/neighbours")
    async def neighbours(
        run: RunName,
        name: Text,
        known: Annotated[int, Query(ge=0, le=200)] = 20,
        predicted: Annotated[int, Query(ge=0, le=50)] = 8,
        types: Types = "constrained",
    ) -> Neighbourhood:
        """Known facts around an entity, and its most probable new links, to entities of fitting types."""
        return await _soon(service[run].neighbourhood(name, known, predicted, types))

    @router.get("/{run}/examples")
    async def examples(run: RunName, limit: Annotated[int, Query(ge=1, le=50)] = 8) -> Links:
        """Held-out facts whose tail the run gives first, of each relation in turn: what it can be asked."""
        return Links(await _soon(service[run].examples(limit)))

    @router.get("/{run}/links")
    async def links(
        run: RunName,
        relation: Annotated[str | None, Query(max_length=1000)] = None,
        limit: Annotated[int, Query(ge=1, le=MOST_LINKS)] = 20,
        types: Types = "constrained",
    ) -> Links:
        """The most probable new links of a relation, or of all; found once."""
        return Links(await _soon(service[run].links(relation, limit, types)))

    @router.get("/{run}/algebra")
    async def algebra(run: RunName) -> RelationPatterns:
        """What the relations are to each other: symmetric, inverse, composed. Computed once."""
        return await _soon(service[run].algebra())

    @router.get("/{run}/map")
    async def entity_map(
        run: RunName, limit: Annotated[int, Query(ge=1, le=MOST_POINTS)] = 2000
    ) -> EntityMap:
        """The best-connected entities on a plane, by their vectors' first two principal components."""
        return await _soon(service[run].map(limit))

    return router


def _server(service: Service, metrics: Metrics) -> APIRouter:
    router = APIRouter(responses=PROBLEMS)

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


def _page(app: FastAPI) -> APIRouter:
    """The page and its files, from a dict that is made once: no path of a request reaches a file."""
    files = {
        file.name: (file.read_bytes(), _TYPES["." + file.name.rpartition(".")[2]])
        for file in (resources.files("modulekge.server") / "page").iterdir()
        if "." + file.name.rpartition(".")[2] in _TYPES
    }
    router = APIRouter(include_in_schema=False)

    def found(name: str) -> Response:
        if name not in files:
            raise HTTPException(404)
        content, kind = files[name]
        return Response(content, media_type=kind, headers={"cache-control": "no-cache"})

    @router.get("/")
    async def index() -> Response:
        return found("index.html")

    @router.get("/static/{name}")
    async def static(name: str) -> Response:
        return found(name)

    @router.get("/docs")
    async def docs() -> HTMLResponse:
        return HTMLResponse(reference_page(app.openapi()))

    return router


def _json(status: int, error: str, field: str | None = None, headers: Any = None) -> JSONResponse:
    return JSONResponse({"error": error, "field": field}, status, headers)


async def _problem(request: Request, error: Exception) -> JSONResponse:
    """Say what a user can mend."""
    message = " ".join(str(error).split())
    if isinstance(error, PointedError):
        message = f"character {error.start + 1}: {error.finding}"
    if isinstance(error, BusyError):
        return _json(503, message, headers={"retry-after": "1"})
    return _json(404 if isinstance(error, UnknownNameError) else 400, message, getattr(error, "field", None))


async def _our_problem(request: Request, error: Exception) -> JSONResponse:
    """Tell nothing of an error of ours; the middleware writes a line about it."""
    return _json(500, INTERNAL)


async def _http_problem(request: Request, error: Exception) -> JSONResponse:
    """Say what is wrong with an address or a body."""
    assert isinstance(error, HTTPException)
    words = {
        404: f"nothing is at {request.url.path[:200]!r}; /docs lists what there is",
        405: f"{request.method[:20]} is not possible here; /docs lists what is",
        400: "the body cannot be read as JSON; send an object as /docs describes it",
    }
    return _json(error.status_code, words.get(error.status_code, str(error.detail)), headers=error.headers)


async def _validation_problem(request: Request, error: Exception) -> JSONResponse:
    """Say which part of a request is out of its bounds; the part itself is not repeated."""
    assert isinstance(error, RequestValidationError)
    for found in error.errors():
        place = found["loc"][1:]  # behind "body" or "query"
        kinds = [i for i, part in enumerate(place) if part in QUESTION_KINDS]
        if found["type"] == "json_invalid":
            return _json(400, "the body is not valid JSON; send an object as /docs describes it")
        if found["type"] == "model_attributes_type" and not place:
            return _json(422, "the body is no object; send one, with 'content-type: application/json'")
        if not kinds or not (found["type"] in ("missing", "none_required") or found["input"] is None):
            field = _field([part for i, part in enumerate(place) if i not in kinds])
            return _json(422, f"{field or 'the body'}: {found['msg']}; see /docs", field)
    # What is missing from each kind of question belongs to another kind
    return _json(
        422, "leave out exactly one of head, relation and tail; see /docs", _field(place[: kinds[0]])
    )


def _field(place: Sequence[str | int]) -> str | None:
    """Return where in a request something stands, such as questions[0].head."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".") or None
