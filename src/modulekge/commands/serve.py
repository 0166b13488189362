"""The command that serves runs: the explorer's page and its HTTP API."""

import importlib
import os
from pathlib import Path
from typing import Any

import typer

from modulekge.cli.serve import TOKEN
from modulekge.errors import ConfigError, to_install

_LEAST = 8  # characters of a token


def serve(
    runs: list[Path],
    port: int,
    host: str,
    token_file: Path | None,
    public: bool,
    allow_host: list[str] | None,
    cors: list[str] | None,
    batch: int,
) -> None:
    """Open the explorer: a page to search, ask and compare, and an HTTP API for programs (see /docs)."""
    server = _server()
    names = tuple(allow_host or ())
    bind = server.Bind(host, port, _token(token_file), public, names, tuple(cors or ()))
    server.serve(runs, bind, batch, lambda address: typer.echo(f"explore at {address}  (Ctrl-C ends it)"))


def _server() -> Any:
    try:
        return importlib.import_module("modulekge.server.server")
    except ImportError as error:
        advice = f"install it: {to_install('serve')}"
        raise ConfigError(f"serve: needs {error.name}; {advice}") from None


def _token(file: Path | None) -> str | None:
    """Read the token that requests must bear, if one was given; it never stands on the command line."""
    try:
        token = file.read_text("utf-8").strip() if file else os.environ.get(TOKEN)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read ({error}); write a token into it") from None
    if token is not None and not (len(token) >= _LEAST and token.isascii() and token.isprintable()):
        place = str(file) if file else TOKEN
        raise ConfigError(f"{place}: holds no token; it takes at least {_LEAST} printable ASCII characters")
    return token
