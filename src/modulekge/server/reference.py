"""The page /docs: the API as its own OpenAPI document describes it, plain HTML without scripts."""

import json
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

_FRAME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><link rel="stylesheet" href="/static/reference.css"></head>
<body><main><h1>{title}</h1><p>{about} The same as <a href="/openapi.json">OpenAPI</a>.</p>
{body}</main></body></html>
"""

_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "maxItems": "at most",
    "maxLength": "at most",
}


def reference_page(document: Mapping[str, Any]) -> str:
    """Return every route with its parameters, body and answer, then every type."""
    info, types = document["info"], document.get("components", {}).get("schemas", {})
    body = [
        *(part for path, routes in document["paths"].items() for part in _routes(path, routes)),
        "<h2>Types</h2>",
        *(part for name, schema in types.items() for part in _type(name, schema)),
    ]
    return _FRAME.format(title=escape(info["title"]), about=escape(info["description"]), body="\n".join(body))


def _routes(path: str, routes: Mapping[str, Any]) -> Iterator[str]:
    for method, route in routes.items():
        yield f"<h2><code>{method.upper()} {escape(path)}</code></h2>"
        yield f"<p>{escape(route.get('description', ''))}</p>"
        rows = [
            (
                f"{p['name']} ({p['in']})",
                _shape(p["schema"]),
                "yes" if p.get("required") else _default(p["schema"]),
            )
            for p in route.get("parameters", ())
        ]
        if rows:
            yield _table(("parameter", "type", "needed"), rows)
        for content in route.get("requestBody", {}).get("content", {}).values():
            yield f"<p>Body: {_shape(content['schema'])}</p>"
        answers = [
            (
                status,
                _shape(next(iter(answer["content"].values())).get("schema", {}))
                if answer.get("content")
                else "",
            )
            for status, answer in route["responses"].items()
        ]
        yield _table(("status", "answer"), answers)


def _type(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{escape(schema.get("description", ""))}</p>'
    needed = schema.get("required", ())
    rows = [
        (field, _shape(part), "yes" if field in needed else _default(part))
        for field, part in schema.get("properties", {}).items()
    ]
    yield _table(("field", "type", "needed"), rows)


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; the second column is HTML already, the others are text."""
    head = "".join(f"<th>{title}</th>" for title in titles)
    lines = (
        "".join(f"<td>{cell if i == 1 else escape(cell)}</td>" for i, cell in enumerate(row)) for row in rows
    )
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _shape(schema: Mapping[str, Any]) -> str:
    """Return a type in a line, as HTML with links to the types it is made of."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_shape(part) for part in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return escape(" or ".join(map(json.dumps, schema.get("enum", [schema.get("const")]))))
    if schema.get("type") == "array":
        parts = schema.get("prefixItems")
        inner = ", ".join(map(_shape, parts)) if parts else _shape(schema.get("items", {}))
        return f"[{inner}]{_bounds(schema)}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"{{name: {_shape(schema['additionalProperties'])}}}"
    return escape(str(schema.get("type", "anything"))) + _bounds(schema)


def _bounds(schema: Mapping[str, Any]) -> str:
    found = [f"{word} {schema[key]}" for key, word in _BOUNDS.items() if key in schema]
    return escape(f" ({', '.join(found)})") if found else ""


def _default(schema: Mapping[str, Any]) -> str:
    return f"no; {json.dumps(schema['default'])}" if "default" in schema else "no"
