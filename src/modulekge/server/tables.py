"""Answers as rows: CSV, JSON lines or Parquet, where a request asks for them. Needs the extra 'serve'."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from fastapi import Request
from fastapi.responses import Response

from modulekge.run.rows import Rows

T = TypeVar("T")
_WRITERS: dict[str, Callable[[Rows], str | bytes]] = {
    "text/csv": Rows.csv,
    "application/x-ndjson": Rows.json_lines,
    "application/vnd.apache.parquet": Rows.parquet,
}
TABLES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer, as JSON or as the header Accept asks for.",
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/x-ndjson": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


def as_asked(request: Request, answer: T, kind: type[Any], records: Callable[[T], Iterable[Any]]) -> Any:
    """Return an answer, or its records as the rows that the header Accept asks for.

    The columns are the fields of ``kind``; a record may be a mapping of them.
    """
    wanted = request.headers.get("accept", "")
    media = next((media for media in _WRITERS if media in wanted), None)
    if media is None:
        return answer
    rows = Rows.of(kind, ())
    return Response(
        _WRITERS[media](Rows(rows.columns, [_fields(each) for each in records(answer)])), media_type=media
    )


def _fields(record: Any) -> dict[str, Any]:
    return record if isinstance(record, dict) else vars(record)
