"""The command that serves runs: the explorer's page and its HTTP API."""

from pathlib import Path
from typing import Annotated

import typer

from modulekge.cli import completion
from modulekge.cli.app import command

TOKEN = "MODULEKGE_TOKEN"


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
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    token_file: Annotated[
        Path | None,
        typer.Option(help=f"File with a token that requests must bear; also the variable {TOKEN}."),
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Let any machine that reaches this one ask without a token.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A further name that the server is called by; repeatable.")
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="A web page's origin that may ask from a browser; repeatable."),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Questions that are answered together at most.")] = 64,
) -> None:
    """Open the explorer: a page to search, ask and compare, and an HTTP API for programs (see /docs).

    Only this machine can reach it, unless --host says otherwise; then a token is needed, or --public.
    """
