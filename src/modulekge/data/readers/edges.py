"""Graphs of networkx: an edge is a triple whose relation is its key, or one of its attributes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modulekge.data.readers.columns import chosen_places, known_places, undecided
from modulekge.data.readers.records import record_rows, sound
from modulekge.data.readers.tables import Graph, gathered
from modulekge.errors import DataError

_SOURCE, _KEY, _TARGET = "source", "key", "target"


def read_edges(where: str, graph: Any, columns: Sequence[str] | None = None) -> Graph:
    """Read the edges, and of nodes the attributes ``label`` and ``description``.

    The columns are source, key, target and the attributes of edges. Unless they are chosen, the relation is
    the key where keys are text, else the attribute that says so in a known word, such as relation or type.
    """
    edges = list(_edges(graph))
    titles = list(dict.fromkeys([_SOURCE, _KEY, _TARGET, *(title for edge in edges for title in edge)]))
    if columns is None:
        wanted = [_SOURCE, _relation(where, edges, titles), _TARGET]
    else:
        wanted = [titles[i] for i in chosen_places(where, titles, columns).values()]
    records = (
        (f"{where}: edge {number}", {title: edge[title] for title in wanted if title in edge})
        for number, edge in enumerate(edges, start=1)
    )
    notes = () if graph.is_directed() else (f"{where}: has no directions; each edge is read one way, once",)
    return Graph(
        (gathered(sound(record_rows(records, wanted))),),
        _texts(graph, "label"),
        descriptions=_texts(graph, "description"),
        notes=notes,
    )


def _edges(graph: Any) -> Iterator[dict[str, Any]]:
    if graph.is_multigraph():
        for source, target, key, data in graph.edges(keys=True, data=True):
            yield {**_named(data), _SOURCE: source, _KEY: key, _TARGET: target}
    else:
        for source, target, data in graph.edges(data=True):
            yield {**_named(data), _SOURCE: source, _TARGET: target}


def _named(data: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(title): value for title, value in data.items()}


def _relation(where: str, edges: Sequence[Mapping[str, Any]], titles: Sequence[str]) -> str:
    """Return the column of relations."""
    if not edges:
        raise DataError(f"{where}: no triples; each edge should have a relation")
    if all(isinstance(edge.get(_KEY), str) for edge in edges):
        return _KEY
    found = [title for title in titles if known_places([_SOURCE, title, _TARGET])]
    if len(found) != 1:
        raise undecided(where, titles)
    return found[0]


def _texts(graph: Any, kind: str) -> dict[str, str]:
    return {str(node): text for node, text in graph.nodes(data=kind) if isinstance(text, str)}
