"""Tools for agents over the Model Context Protocol, on stdio or HTTP. Needs the extra 'agents'."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as ToolDescription
from pydantic import TypeAdapter, ValidationError

from modulekge.errors import ModulekgeError, one_of
from modulekge.server.growing import GrowingRun
from modulekge.server.metrics import Metrics
from modulekge.server.middleware import Middleware
from modulekge.server.problems import INTERNAL, field_at, log_internal, said_of
from modulekge.server.server import Bind, address, run_app
from modulekge.server.service import Service
from modulekge.server.tools import TOOLS, Tool
from modulekge.server.views import RunSummary
from modulekge.training.optimizers import pick_device
from modulekge.version import __version__

PATH = "/mcp"
_SHOWN = 80  # characters of an argument's name that are repeated


def make_server(run: GrowingRun, writable: bool = False) -> "Server[Any]":
    """Return a server of the tools that answer by a run; one that adds facts only where it is writable.

    >>> server = make_server(GrowingRun(service["demo"]))  # doctest: +SKIP
    >>> async with mcp.Client(server) as client:  # doctest: +SKIP
    ...     await client.call_tool("search", {"text": "France"})
    """
    tools = {name: tool for name, tool in TOOLS.items() if writable or not tool.writes}
    listed = ListToolsResult(tools=[_description(name, tool) for name, tool in tools.items()])

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return listed

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        return await _called(tools, run, params.name, params.arguments or {})

    return Server(
        "modulekge",
        version=__version__,
        instructions=_instructions(run.served.summary),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _description(name: str, tool: Tool) -> ToolDescription:
    return ToolDescription(
        name=name,
        description=tool.about,
        input_schema=tool.takes.model_json_schema(),
        output_schema=TypeAdapter(tool.gives).json_schema(mode="serialization"),
        annotations=ToolAnnotations(
            read_only_hint=not tool.writes, destructive_hint=False, open_world_hint=False
        ),
    )


def _instructions(run: RunSummary) -> str:
    sure = "are calibrated" if run.calibrated else "are missing: the run is not calibrated"
    return (
        f"Answers of {run.model}, trained on the knowledge graph {run.data}: {run.entities:,} entities, "
        f"{run.relations:,} relations, {run.triples:,} facts. Probabilities {sure}. A prediction is no fact. "
        "Find names with 'search' first."
    )


async def _called(
    tools: Mapping[str, Tool], run: GrowingRun, name: str, arguments: dict[str, Any]
) -> CallToolResult:
    """Answer a call; what a caller can mend is said in the words of the HTTP API."""
    try:
        tool = one_of("tool", name, tools)
        reply = await tool.answer(run, tool.takes.model_validate(arguments))
        values = TypeAdapter(tool.gives).dump_python(reply, mode="json")
        return CallToolResult(content=[TextContent(text=tool.text(reply))], structured_content=values)
    except ValidationError as error:
        return _failed(_invalid(error))
    except ModulekgeError as error:
        return _failed(said_of(error))
    except Exception as error:
        log_internal(error)
        return _failed(INTERNAL)


def _invalid(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = " ".join((field_at(found["loc"]) or "").split())[:_SHOWN] or "the arguments"
    return f"{field}: {found['msg']}; see the schema of the tool"


def _failed(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=message)], is_error=True)


def serve_stdio(path: Path, writable: bool) -> None:
    """Answer the process that started this one, until it ends the conversation."""

    async def converse(run: GrowingRun) -> None:
        server = make_server(run, writable)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    with _opened(path) as run:
        asyncio.run(converse(run))


@contextmanager
def _opened(path: Path) -> Iterator[GrowingRun]:
    (served,) = Service.open([path], pick_device("auto")).runs.values()
    run = GrowingRun(served)
    try:
        yield run
    finally:
        run.served.close()


def serve_http(path: Path, bind: Bind, writable: bool, announce: Callable[[str], None] = print) -> None:
    """Answer over streamable HTTP until interrupted; ``announce`` is told the address."""
    with bind.listen() as listening, _opened(path) as run:
        announce(address(listening).rstrip("/") + PATH)
        run_app(make_http_app(make_server(run, writable), bind), listening)


def make_http_app(server: "Server[Any]", bind: Bind) -> Middleware:
    """Return the ASGI application of a server: each call is a request of its own, behind our middleware."""
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # ours checks
    )
    return Middleware(app, Metrics(), bind.token, bind.known_as, numbers=not bind.local)
