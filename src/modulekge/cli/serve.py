"""The command that serves runs: the explorer's page and its HTTP API."""

import importlib
import ipaddress
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from modulekge.cli import completion
from modulekge.cli.app import app
from modulekge.errors import ConfigError
from modulekge.serving.metrics import Metrics
from modulekge.serving.service import Service
from modulekge.training.optimize import pick_device

_TOKEN = "MODULEKGE_TOKEN"
_LEAST_TOKEN = 8  # characters


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
    host: Annotated[
        str, typer.Option(help="Address to listen at; default: this machine only.")
    ] = "127.0.0.1",
    token_file: Annotated[
        Path | None,
        typer.Option(help=f"File with a token that requests must bear; also the variable {_TOKEN}."),
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Let any machine that reaches this one ask without a token.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A further name under which the server is reached; repeatable.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Questions that are answered at once at most.")] = 64,
) -> None:
    """Open the explorer: a page to search, ask and compare, and an HTTP API for programs (/docs).

    Only this machine can reach it, unless --host says otherwise; then a token is needed, or --public.
    """
    http, uvicorn = _web("modulekge.serving.http"), _web("uvicorn")
    token, local = _token(token_file), _is_local(host)
    if not local and token is None and not public:
        raise ConfigError(
            f"--host {host}: others could ask without a token; give --token-file or {_TOKEN}, or --public"
        )
    listening = _listen(host, port)
    metrics = Metrics()
    service = Service.open(
        runs, pick_device("auto"), batch, lambda taken: metrics.add_batch(taken.size, taken.seconds)
    )
    names = {*http.LOOPBACK, host.lower(), *(name.lower() for name in allow_host or ())}
    names |= set() if local else {socket.gethostname().lower(), socket.getfqdn().lower()}
    application = http.make_app(service, metrics, token, frozenset(names), not local)
    listening.listen()  # from now on who comes waits
    address = listening.getsockname()
    shown = f"[{address[0]}]" if ":" in address[0] else address[0]
    typer.echo(f"{', '.join(service.runs)}: explore at http://{shown}:{address[1]}/ (Ctrl-C ends it)")
    config = uvicorn.Config(application, log_level="warning", access_log=False, server_header=False)
    try:
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
    finally:
        service.close()


def _web(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"serve: needs {error.name}; install it with: pip install 'modulekge[serve]'"
        ) from None


def _token(file: Path | None) -> str | None:
    """Read the token that requests must bear, if one was given."""
    place = str(file) if file else _TOKEN
    try:
        token = file.read_text("utf-8").strip() if file else os.environ.get(_TOKEN)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{place}: cannot be read ({error}); write a token into it") from None
    if token is not None and not (len(token) >= _LEAST_TOKEN and token.isascii() and token.isprintable()):
        raise ConfigError(f"{place}: no token; it takes at least {_LEAST_TOKEN} printable ASCII characters")
    return token


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int) -> socket.socket:
    """Take the port before anything is loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"{host}, port {port}: {error.strerror or error}; choose another --port or --host"
        ) from None
    return listening
