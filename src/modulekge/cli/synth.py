"""The command that makes a synthetic graph."""

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated

import typer

from modulekge.choices import SYNTHETIC_PATTERNS
from modulekge.cli import completion
from modulekge.cli.app import Json
from modulekge.cli.data import data_app


def _count(text: str) -> int:
    """Return a whole number that may be written 5e6."""
    try:
        value = Decimal(text)
        if value != int(value):
            raise ValueError
    except (InvalidOperation, ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is not a whole number, such as 5000000 or 5e6") from None
    return int(value)


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

    Each triple of valid and test follows from train by a law of its relations, which their names tell and
    structure.json lists. Numbers may be written 5e6.
    """
    from modulekge.commands import synth

    synth.data_synth(entities, relations, triples, pattern, held_out, seed, packed, out, as_json)
