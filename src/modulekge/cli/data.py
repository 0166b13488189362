"""Commands about data sets."""

import json
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated

import typer

from modulekge.choices import SYNTHETIC_PATTERNS
from modulekge.cli import completion
from modulekge.cli.app import All, DataDir, Json, ModelName, app, command
from modulekge.cli.graph import GraphOptions

data_app = typer.Typer(
    help="Look at data sets ('data list', 'info DATA', 'doctor DATA'), or make one ('data synth')."
)


app.add_typer(data_app, name="data")


@data_app.command("list", epilog="Example: modulekge data list --data-dir ~/graphs")
def data_list(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the data sets known by name, and where each would be read from."""
    from modulekge import render
    from modulekge.data.benchmarks import benchmarks, local_folder

    places = {name: str(local_folder(b, data_dir) or "download") for name, b in benchmarks().items()}
    if as_json:
        print(json.dumps([{**asdict(b), "where": places[name]} for name, b in benchmarks().items()]))
        return
    render.console().print(render.datasets_table(benchmarks().values(), places))


@command(
    "info", epilog="Example: modulekge data info graph.csv --columns subject,predicate,object", of=data_app
)
def data_info(graph: GraphOptions, every: All = False, as_json: Json = False) -> None:
    """Count a data set: sizes, unseen entities, leaks, cardinality of each relation."""


@command("doctor", epilog="Example: modulekge data doctor my-graph.tsv --model Paths", of=data_app)
def data_doctor(graph: GraphOptions, model: ModelName = None, as_json: Json = False) -> None:
    """Look for what would spoil training or its figures, and reckon what training needs here.

    Lines that are no triples, repeated triples, leaks between splits, unseen entities, names that are spelt
    alike, relations that copy, invert or mirror each other or follow from two others, cardinalities; memory
    and seconds per epoch of the settings that 'train' would use, for this model if one is named.
    """


def _count(text: str) -> int:
    """Return a whole number that may be written 5e6."""
    try:
        value = Decimal(text)
        if value != int(value):
            raise ValueError
    except (InvalidOperation, ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is not a whole number, such as 5000000 or 5e6") from None
    return int(value)


@command(
    "synth",
    epilog="Example: modulekge data synth --entities 5e6 --relations 500 --triples 5e7 --out large",
    of=data_app,
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
            help=f"{', '.join(SYNTHETIC_PATTERNS)}; repeatable; default: all but random.",
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

    Each triple of valid and test follows from train by a pattern of its relations, which their names tell and
    structure.json lists. Numbers may be written 5e6.
    """
