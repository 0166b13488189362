"""The commands that serve runs: the explorer's page and its HTTP API, and tools for agents."""

from pathlib import Path
from typing import Annotated

import typer

from modulekge.cli import completion
from modulekge.cli.app import RunArgument, command

TOKEN = "MODULEKGE_TOKEN"
LOCAL = "127.0.0.1"

Host = Annotated[str, typer.Option(help="Address to listen at.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(help=f"File with a token that requests must bear; also the variable {TOKEN}."),
]
Public = Annotated[
    bool, typer.Option("--public", help="Let any machine that reaches this one ask without a token.")
]
AllowHost = Annotated[
    list[str] | None, typer.Option(help="A further name that the server is called by; repeatable.")
]


@command(epilog="Example: modulekge serve runs/demo --port 8000")
def serve(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Run folders, as 'train' makes them.",
            autocompletion=completion.run_folders,
        ),
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = 8000,
    host: Host = LOCAL,
    token_file: TokenFile = None,
    public: Public = False,
    allow_host: AllowHost = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="A web page's origin that may ask from a browser; repeatable."),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Questions that are answered together at most.")] = 64,
) -> None:
    """Open the explorer: a page to search, ask and compare, and an HTTP API for programs (see /docs).

    Only this machine can reach it, unless --host says otherwise; then a token is needed, or --public.
    """


@command(epilog="Example: modulekge mcp runs/demo")
def mcp(
    run: RunArgument,
    http: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port for streamable HTTP instead of stdio; 0: any that is free."
        ),
    ] = None,
    writable: Annotated[
        bool, typer.Option("--writable", help="Offer add_fact; facts make a new run beside RUN.")
    ] = False,
    host: Host = LOCAL,
    token_file: TokenFile = None,
    public: Public = False,
    allow_host: AllowHost = None,
) -> None:
    """Let an agent ask a run: its program starts this, and calls tools over the Model Context Protocol.

    Tools: search, ask, predict, explain, links, neighbourhood, and add_fact with --writable. With --http it
    waits for programs of this machine, unless --host says otherwise; then a token is needed, or --public.
    """
