"""The explorer over HTTP: thin typed routes around the service. Needs the extra 'serve'."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from modulekge.errors import ModulekgeError, UnknownNameError
from modulekge.server.batching import BusyError
from modulekge.server.metrics import Metrics
from modulekge.server.middleware import LIMITS, LOOPBACK, Limits, Middleware
from modulekge.server.pages import page_routes
from modulekge.server.problems import INTERNAL, field_at, said_of
from modulekge.server.requests import QUESTION_KINDS
from modulekge.server.routes import asked_routes, judgement_routes, known_routes, server_routes
from modulekge.server.service import Service
from modulekge.version import __version__

_TAGS = {
    "graph": "What is known: runs, entities, relations and their facts.",
    "model": "What the model says: answers, scores, new links, explanations.",
    "judgements": "What people say of links, kept beside the run.",
    "server": "Whether the server is up, and what it did.",
}


def make_app(
    service: Service,
    metrics: Metrics | None = None,
    token: str | None = None,
    hosts: frozenset[str] | None = LOOPBACK,
    numbers: bool = False,
    limits: Limits = LIMITS,
    origins: frozenset[str] = frozenset(),
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
        generate_unique_id_function=lambda route: route.name,
    )
    for routes in (known_routes, asked_routes, judgement_routes):
        app.include_router(routes(service))
    app.include_router(server_routes(service, metrics))
    app.include_router(page_routes(app))
    document = _document(app)
    app.openapi = lambda: document  # type: ignore[method-assign]
    app.add_exception_handler(HTTPException, _http_problem)
    app.add_exception_handler(RequestValidationError, _validation_problem)
    app.add_exception_handler(ModulekgeError, _problem)
    app.add_exception_handler(Exception, _our_problem)
    return Middleware(app, metrics, token, hosts, numbers, limits, origins)


def _document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document: with tags, and the token that a server may ask for."""
    tags = [{"name": name, "description": about} for name, about in _TAGS.items()]
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, tags=tags
    )
    scheme = {
        "type": "http",
        "scheme": "bearer",
        "description": "The token of --token-file, if any.",
    }
    document["components"]["securitySchemes"] = {"token": scheme}
    document["security"] = [{}, {"token": []}]
    document["paths"]["/health"]["get"]["security"] = []
    return document


def _json(status: int, error: str, field: str | None = None, headers: Any = None) -> JSONResponse:
    return JSONResponse({"error": error, "field": field}, status, headers)


async def _problem(request: Request, error: Exception) -> JSONResponse:
    """Say what a user can mend."""
    message = said_of(error)
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
        if found["type"] == "unknown":
            return _json(422, f"{place[0]}: {found['msg']}; see /docs", str(place[0]))
        if found["type"] == "json_invalid":
            return _json(400, "the body is not valid JSON; send an object as /docs describes it")
        if found["type"] == "model_attributes_type" and not place:
            return _json(422, "the body is no object; send one, with 'content-type: application/json'")
        if not kinds or not (found["type"] in ("missing", "none_required") or found["input"] is None):
            field = field_at([part for i, part in enumerate(place) if i not in kinds])
            return _json(422, f"{field or 'the body'}: {found['msg']}; see /docs", field)
    # What is missing from each kind of question belongs to another kind
    return _json(
        422, "leave out exactly one of head, relation and tail; see /docs", field_at(place[: kinds[0]])
    )
