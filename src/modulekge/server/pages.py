"""The page and its files, as a browser asks for them. Needs the extra 'serve'."""

import gzip
import hashlib
from dataclasses import dataclass
from importlib import resources

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from modulekge.server.reference import reference_page

_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


@dataclass(frozen=True)
class PageFile:
    """A file of the page, plain and packed, and the tag by which a browser knows whether it has it."""

    plain: bytes
    packed: bytes
    kind: str
    tag: str

    @classmethod
    def of(cls, content: bytes, kind: str) -> "PageFile":
        """Pack a file."""
        tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        return cls(content, gzip.compress(content, mtime=0), kind, tag)

    def answer(self, request: Request) -> Response:
        """Return the file, packed where that is understood, or that it did not change."""
        headers = {"cache-control": "no-cache", "etag": self.tag, "vary": "accept-encoding"}
        if self.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(self.plain, media_type=self.kind, headers=headers)
        return Response(self.packed, media_type=self.kind, headers={**headers, "content-encoding": "gzip"})


def page_routes(app: FastAPI) -> APIRouter:
    """The page and its files, from a dict that is made once: no path of a request reaches a file."""
    files = {
        file.name: PageFile.of(file.read_bytes(), _TYPES["." + file.name.rpartition(".")[2]])
        for file in (resources.files("modulekge.server") / "page").iterdir()
        if "." + file.name.rpartition(".")[2] in _TYPES
    }
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def index(request: Request) -> Response:
        return files["index.html"].answer(request)

    @router.get("/static/{name}")
    async def static(name: str, request: Request) -> Response:
        if name not in files:
            raise HTTPException(404)
        return files[name].answer(request)

    @router.get("/docs")
    async def docs() -> HTMLResponse:
        return HTMLResponse(reference_page(app.openapi()))

    return router
