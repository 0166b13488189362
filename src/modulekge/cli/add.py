"""The command that adds facts to a trained run."""

from pathlib import Path
from typing import Annotated

import typer

from modulekge.cli.app import Columns, Descriptions, Header, Json, Labels, RunArgument, Settings, app
from modulekge.cli.graph import HeaderRow


@app.command(epilog="Example: modulekge add runs/demo new.tsv --out runs/demo-june")
def add(
    run: RunArgument,
    new: Annotated[Path, typer.Argument(metavar="NEW", help="A file of triples, as 'train' reads it.")],
    out: Annotated[
        Path | None, typer.Option(help="Run folder to make; default: RUN with -2, -3, ...")
    ] = None,
    refresh: Annotated[
        int, typer.Option(min=0, help="Epochs of training of old and new together afterwards.")
    ] = 0,
    settings: Settings = None,
    columns: Columns = None,
    header: Header = HeaderRow.auto,
    labels: Labels = None,
    descriptions: Descriptions = None,
    as_json: Json = False,
) -> None:
    """Add new facts to a trained run, in seconds, as a new run; RUN itself is not changed.

    Entities and relations keep their ids, their rows and so their scores; new ones are fitted to them.
    Facts between known ones are known from then on, but move nothing without --refresh.
    """
    from modulekge.commands import add

    add.add(run, new, out, refresh, settings, columns, header, labels, descriptions, as_json)
