"""The command that makes a synthetic graph."""

import json
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated

import typer

from modulekge import render
from modulekge.cli import completion
from modulekge.cli.app import Json
from modulekge.cli.data import data_app
from modulekge.data.synthetic.generate import STRUCTURES, synthesise
from modulekge.data.synthetic.patterns import PATTERNS
from modulekge.data.writing import structure, totals, write_graph
from modulekge.shapes import Triples


def _count(text: str) -> int:
    """Return a whole number that may be written 5e6."""
    try:
        value = Decimal(text)
        if value != int(value):
            raise ValueError
    except (InvalidOperation, ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is not a whole number, such as 5000000 or 5e6") from None
    return int(value)


def _rows(triples: Triples) -> int:
    return len(triples)


@data_app.command(
    "synth", epilog="Example: modulekge data synth --entities 5e6 --relations 500 --triples 5e7 --out large"
)
def data_synth(
    entities: Annotated[int, typer.Option(parser=_count, metavar="N", help="How many entities.")] = 10_000,
    relations: Annotated[int, typer.Option(parser=_count, metavar="N", help="How many relations.")] = 20,
    triples: Annotated[
        int, typer.Option(parser=_count, metavar="N", help="How many triples, of all splits.")
    ] = 100_000,
    pattern: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{', '.join(PATTERNS)}; repeatable; default: all but random.",
            autocompletion=completion.patterns,
        ),
    ] = None,
    held_out: Annotated[
        int, typer.Option(parser=_count, metavar="N", help="How many triples for valid, and for test.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds make equal graphs.")] = 0,
    packed: Annotated[bool, typer.Option("--gzip", help="Pack the files.")] = False,
    out: Annotated[Path, typer.Option(help="Folder to make.")] = Path("synthetic"),
    as_json: Json = False,
) -> None:
    """Make a graph of any size with known structure, so that quality can be checked at size.

    Each triple of valid and test follows from train by a law of its relations, which their names tell and
    structure.json lists. Numbers may be written 5e6.
    """
    graph = synthesise(entities, relations, triples, pattern or STRUCTURES, held_out, seed)
    with render.progress_display("writing", triples, _rows) as watch:
        write_graph(graph, out, packed, watch)
    if as_json:
        print(json.dumps({**structure(graph), "path": str(out)}))
    else:
        render.console().print(render.synthetic_view(graph, totals(graph)))
    render.console(stderr=True).print(f"kept in {out}; train on it: modulekge train {out}")
