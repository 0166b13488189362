"""What every request passes before the application sees it: host, token, size and time."""

import asyncio
import hmac
import ipaddress
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from modulekge.server.metrics import Metrics
from modulekge.server.problems import INTERNAL, log_internal

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SECRET = ("/api/", "/metrics", "/mcp")  # need the token, where there is one; the page itself holds no data
_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_SAME_ORIGIN = (b"cross-origin-resource-policy", b"same-origin")
_GONE = 499  # the status of a request whose client had gone, in the metrics only


@dataclass(frozen=True)
class Limits:
    """What one request may cost."""

    body: int = 1 << 20  # bytes
    seconds: float = 30.0  # to send the body, and as many again to be answered
    under_way: int = 512  # requests


LIMITS = Limits()


class RefusedError(Exception):
    """A request that is not passed on: its status, what to do, and headers that go with it."""

    def __init__(self, status: int, message: str, headers: Headers = ()) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


@dataclass(frozen=True, eq=False)
class Middleware:
    """ASGI middleware around an application: nothing reaches it unbounded, nothing leaves it but JSON errors.

    ``hosts`` are the names a Host header may hold, so that a foreign page whose name was made to point here
    cannot read answers; None: any. An address in numbers is always allowed beside them, if ``numbers``.
    """

    app: App
    metrics: Metrics
    token: str | None = None
    hosts: frozenset[str] | None = LOOPBACK
    numbers: bool = False
    limits: Limits = LIMITS
    origins: frozenset[str] = frozenset()  # whose pages may read answers in a browser

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        origin = dict(scope["headers"]).get(b"origin", b"")
        allowed = origin.decode("latin-1") in self.origins
        bare = scope["method"] == "HEAD"  # answered as GET, without the body
        started = time.perf_counter()
        reply = _Reply(send, origin if allowed else b"", bare, bool(self.origins))
        scope = {**scope, "method": "GET"} if bare else scope
        self.metrics.under_way += 1
        try:
            if allowed and scope["method"] == "OPTIONS":
                await reply.preflight()
            else:
                await self._serve(scope, receive, reply)
        except RefusedError as refusal:
            await reply.fail(refusal)
        except Exception as error:
            log_internal(error)
            await reply.fail(RefusedError(500, INTERNAL))
        finally:
            self.metrics.under_way -= 1
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.add_request(route, reply.status, time.perf_counter() - started)

    async def _serve(self, scope: Scope, receive: Receive, reply: "_Reply") -> None:
        headers = dict(scope["headers"])
        self._check(scope["path"], headers)
        if self.metrics.under_way > self.limits.under_way:
            raise RefusedError(
                503, f"{self.limits.under_way} requests are under way; ask again in a moment", _LATER
            )
        body = await self._body(headers, receive)
        if body is None:
            reply.status = _GONE
            return
        await self._answer(scope, body, receive, reply)

    def _check(self, path: str, headers: dict[bytes, bytes]) -> None:
        host = _host(headers.get(b"host", b"").decode("latin-1"))
        if self.hosts is not None and host not in self.hosts and not (self.numbers and _is_number(host)):
            names = ", ".join(sorted(self.hosts))
            raise RefusedError(
                400,
                f"this server is not called {host[:80]!r}; ask one of {names}, or start it with --allow-host",
            )
        if self.token is None or not path.startswith(_SECRET):
            return
        given = headers.get(b"authorization", b"")
        if not hmac.compare_digest(given, b"Bearer " + self.token.encode()):
            advice = (
                "send the header 'Authorization: Bearer TOKEN' with the token the server was started with"
            )
            raise RefusedError(401, f"a token is needed; {advice}", ((b"www-authenticate", b"Bearer"),))

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | None:
        """Read the body while it is not too large or too slow; None when the client has gone."""
        most = self.limits.body
        too_large = RefusedError(
            413, f"the body has more than {most:,} bytes; ask in smaller batches", _CLOSE
        )
        length = headers.get(b"content-length", b"0")
        if b"content-length" in headers and b"transfer-encoding" in headers:
            raise RefusedError(
                400, "the body has a length and comes in chunks too; send it either way", _CLOSE
            )
        if not length.isdigit() or len(length) > 15 or int(length) > most:
            await _discard(receive, 16 * most)
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self.limits.seconds):
                while (message := await receive())["type"] == "http.request":
                    body += message.get("body", b"")
                    if len(body) > most:
                        await _discard(receive, 16 * most)
                        raise too_large
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            raise RefusedError(
                408, f"the body took longer than {self.limits.seconds:g} s; send it faster", _CLOSE
            ) from None
        return None

    async def _answer(self, scope: Scope, body: bytes, receive: Receive, reply: "_Reply") -> None:
        """Run the application until it has answered, its time is over, or its client has gone."""
        parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        async def replay() -> Message:
            return parts.pop() if parts else await never

        work = asyncio.ensure_future(self.app(scope, replay, reply))
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            done, _ = await asyncio.wait(
                {work, gone}, timeout=self.limits.seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for task in (work, gone):
                if not task.done():
                    task.cancel()
            with suppress(asyncio.CancelledError):
                await gone
        if work in done:
            work.result()
            return
        with suppress(asyncio.CancelledError, Exception):
            await work
        if gone in done:
            reply.status = reply.status or _GONE
        else:
            seconds = f"{self.limits.seconds:g} s"
            raise RefusedError(
                503, f"not answered within {seconds}; ask for less, or again in a moment", _LATER
            )


_LATER = ((b"retry-after", b"1"),)
_CLOSE = ((b"connection", b"close"),)


async def _discard(receive: Receive, left: int) -> None:
    """Read on for a while: a client that is still sending would not see its answer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            while left > 0 and (message := await receive()).get("more_body"):
                left -= len(message["body"])


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@dataclass(eq=False)
class _Reply:
    """What is sent, with the headers that every answer has."""

    send: Send
    origin: bytes = b""  # of another page that may read the answer
    bare: bool = False  # only the headers are sent
    varies: bool = False  # by the origin
    status: int = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", []), *_HEADERS, *self._cors()]
        elif self.bare:
            message = {**message, "body": b""}
        await self.send(message)

    def _cors(self) -> Headers:
        if self.origin:
            return (
                (b"access-control-allow-origin", self.origin),
                (b"cross-origin-resource-policy", b"cross-origin"),
                (b"vary", b"origin"),
            )
        return (_SAME_ORIGIN, *(((b"vary", b"origin"),) if self.varies else ()))

    async def preflight(self) -> None:
        """Say to a browser what a page of another origin may ask."""
        headers = [
            (b"access-control-allow-methods", b"GET, HEAD, POST"),
            (b"access-control-allow-headers", b"authorization, content-type, accept"),
            (b"access-control-max-age", b"600"),
        ]
        await self({"type": "http.response.start", "status": 204, "headers": headers})
        await self({"type": "http.response.body", "body": b""})

    async def fail(self, refusal: RefusedError) -> None:
        if self.status:  # an answer had begun; there is nothing more to say
            return
        body = json.dumps({"error": str(refusal), "field": None}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        start = {
            "type": "http.response.start",
            "status": refusal.status,
            "headers": [*headers, *refusal.headers],
        }
        await self(start)
        await self({"type": "http.response.body", "body": body})


def _host(header: str) -> str:
    """Return the name in a Host header, without its port."""
    name = header.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.rpartition(":")[0] if name.count(":") == 1 else name


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
