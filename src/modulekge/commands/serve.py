"""The commands that serve runs: the explorer's page and its HTTP API, and tools for agents."""

import importlib
import os
from pathlib import Path
from typing import Any

import typer

from modulekge.cli.serve import LOCAL, TOKEN
from modulekge.errors import ConfigError
from modulekge.installation import to_install

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
    server = _needing("serve", "modulekge.server.server")
    names = tuple(allow_host or ())
    bind = server.Bind(host, port, _token(token_file), public, names, tuple(cors or ()))
    server.serve(runs, bind, batch, lambda address: typer.echo(f"explore at {address}  (Ctrl-C ends it)"))


def mcp(
    run: Path,
    http: int | None,
    writable: bool,
    host: str,
    token_file: Path | None,
    public: bool,
    allow_host: list[str] | None,
) -> None:
    """Let an agent ask a run: its program starts this, and calls tools over the Model Context Protocol."""
    agents = _needing("agents", "modulekge.server.mcp", "mcp")
    if http is None:
        if token_file or public or allow_host or host != LOCAL:
            raise ConfigError(
                "--host, --token-file, --public and --allow-host: are for --http; give it a port"
            )
        agents.serve_stdio(run, writable)
        return
    bind = agents.Bind(host, http, _token(token_file), public, tuple(allow_host or ()))
    announce = lambda address: typer.echo(f"tools at {address}  (Ctrl-C ends it)")  # noqa: E731
    agents.serve_http(run, bind, writable, announce)


def _needing(extra: str, module: str, command: str = "serve") -> Any:
    """Import what an extra brings, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        advice = f"install it: {to_install(extra)}"
        raise ConfigError(f"{command}: needs {error.name}; {advice}") from None


def _token(file: Path | None) -> str | None:
    """Read the token that requests must bear, if one was given; it never stands on the command line."""
    try:
        token = file.read_text("utf-8").strip() if file else os.environ.get(TOKEN)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read ({error}); write a token into it") from None
    if token is not None and not (len(token) >= _LEAST and token.isascii() and token.isprintable()):
        place = str(file) if file else TOKEN
        raise ConfigError(f"{place}: a token takes at least {_LEAST} printable ASCII characters")
    return token
