"""The command that serves runs: the explorer's page and its HTTP API."""

import importlib
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from modulekge.cli import completion
from modulekge.cli.app import app
from modulekge.errors import ConfigError

_TOKEN = "MODULEKGE_TOKEN"
_LEAST = 8  # characters of a token


@app.command(epilog="Example: modulekge serve runs/demo --port 8000")
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
        typer.Option(help=f"File with a token that requests must bear; also the variable {_TOKEN}."),
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Let any machine that reaches this one ask without a token.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A further name that the server is called by; repeatable.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Questions that are answered together at most.")] = 64,
) -> None:
    """Open the explorer: a page to search, ask and compare, and an HTTP API for programs (see /docs).

    Only this machine can reach it, unless --host says otherwise; then a token is needed, or --public.
    """
    server = _server()
    door = server.Bind(host, port, _token(token_file), public, tuple(allow_host or ()))
    server.serve(runs, door, batch, lambda address: typer.echo(f"explore at {address}  (Ctrl-C ends it)"))


def _server() -> Any:
    try:
        return importlib.import_module("modulekge.server.server")
    except ImportError as error:
        advice = "install it with: pip install 'modulekge[serve]'"
        raise ConfigError(f"serve: needs {error.name}; {advice}") from None


def _token(file: Path | None) -> str | None:
    """Read the token that requests must bear, if one was given; it never stands on the command line."""
    try:
        token = file.read_text("utf-8").strip() if file else os.environ.get(_TOKEN)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read ({error}); write a token into it") from None
    if token is not None and not (len(token) >= _LEAST and token.isascii() and token.isprintable()):
        place = str(file) if file else _TOKEN
        raise ConfigError(f"{place}: holds no token; it takes at least {_LEAST} printable ASCII characters")
    return token
