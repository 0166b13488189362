"""The command that makes a synthetic graph."""

import json
from pathlib import Path

from modulekge import render
from modulekge.data.synthetic.generate import STRUCTURES, synthesise
from modulekge.data.writing import structure, totals, write_graph
from modulekge.shapes import Triples


def _rows(triples: Triples) -> int:
    return len(triples)


def data_synth(
    entities: int,
    relations: int,
    triples: int,
    pattern: list[str] | None,
    held_out: int,
    seed: int,
    packed: bool,
    out: Path,
    as_json: bool,
) -> None:
    """Make a graph of any size with known structure, so that quality can be checked at size."""
    graph = synthesise(entities, relations, triples, pattern or STRUCTURES, held_out, seed)
    with render.progress_display("writing", triples, _rows) as watch:
        write_graph(graph, out, packed, watch)
    if as_json:
        print(json.dumps({**structure(graph), "path": str(out)}))
    else:
        render.console().print(render.synthetic_view(graph, totals(graph)))
    render.console(stderr=True).print(f"kept in {out}; train on it: modulekge train {out}")
