"""A server of runs: where it listens, who may ask, how it starts and ends. Needs the extra 'serve'."""

import ipaddress
import os
import re
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from modulekge.errors import ConfigError
from modulekge.server.http import make_app
from modulekge.server.metrics import Metrics
from modulekge.server.middleware import LOOPBACK, App
from modulekge.server.service import BATCH, Service
from modulekge.training.optimizers import pick_device

_GRACE = 5  # seconds that requests under way have when the server ends


@dataclass(frozen=True)
class Bind:
    """Where a server listens, and who may ask.

    Beyond this machine it opens only with a token, or where it is said to be ``public``. ``names`` are
    further names under which requests may address it.
    """

    host: str = "127.0.0.1"
    port: int = 8000  # 0: any that is free
    token: str | None = None
    public: bool = False
    names: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()  # whose pages may read answers in a browser

    def __post_init__(self) -> None:
        for origin in self.origins:
            if not re.fullmatch(r"https?://[^/\s*]+", origin):
                raise ConfigError(f"--cors {origin}: expected an origin, such as https://example.org")
        if not (self.local or self.public or self.token):
            raise ConfigError(
                f"--host {self.host}: others could ask without a token; give --token-file, or --public"
            )

    @property
    def local(self) -> bool:
        """Only this machine can reach it."""
        try:
            return self.host in LOOPBACK or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def known_as(self) -> frozenset[str]:
        """The names that a request may address."""
        machine = () if self.local else (socket.gethostname(), socket.getfqdn())
        return LOOPBACK | {name.lower() for name in (self.host, *self.names, *machine)}

    def listen(self) -> socket.socket:
        """Take the port."""
        try:
            place = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0]
            return socket.create_server(place[4][:2], family=place[0])
        except OSError as error:
            why = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
            finding = f"{self.host}, port {self.port}: {why}"
            raise ConfigError(f"{finding}; choose another --port or --host") from None


def serve(
    paths: Iterable[Path], bind: Bind, batch: int = BATCH, announce: Callable[[str], None] = print
) -> None:
    """Serve runs until interrupted; ``announce`` is told the address once they are loaded.

    The port is taken first, so that nothing is loaded in vain, and who comes early waits.
    """
    metrics = Metrics()
    with bind.listen() as listening:
        watched = lambda taken: metrics.add_batch(taken.size, taken.seconds)  # noqa: E731
        service = Service.open(paths, pick_device("auto"), batch, watched)
        try:
            origins = frozenset(bind.origins)
            app = make_app(
                service, metrics, bind.token, bind.known_as, numbers=not bind.local, origins=origins
            )
            announce(address(listening))
            run_app(app, listening)
        finally:
            service.close()


def run_app(app: App, listening: socket.socket) -> None:
    """Serve an application until interrupted."""
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])


def address(listening: socket.socket) -> str:
    """Return the address of a port that was taken."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
