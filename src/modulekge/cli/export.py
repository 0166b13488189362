"""The command that writes a run for other tools."""

from pathlib import Path
from typing import Annotated

import typer

from modulekge.choices import EXPORT_FORMATS
from modulekge.cli import completion
from modulekge.cli.app import Json, RunArgument, app


@app.command(epilog="Example: modulekge export runs/demo vectors.parquet")
def export(
    run: RunArgument,
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="File or folder to make.")],
    to: Annotated[
        str | None,
        typer.Option(help=f"{', '.join(EXPORT_FORMATS)}.", autocompletion=completion.formats),
    ] = None,
    without_facts: Annotated[
        bool, typer.Option("--without-facts", help="hub: leave the graph's triples out.")
    ] = False,
    relation: Annotated[str | None, typer.Option(help="rdf: a relation; all unless told.")] = None,
    head: Annotated[str | None, typer.Option(help="rdf: the head, if one question is asked.")] = None,
    tail: Annotated[str | None, typer.Option(help="rdf: the tail, if one question is asked.")] = None,
    k: Annotated[int | None, typer.Option("-k", help="rdf: how many links; 10 unless told.")] = None,
    prefix: Annotated[str | None, typer.Option(help="rdf: base IRI for names that are not IRIs.")] = None,
    expansion: Annotated[
        int | None, typer.Option(help="index: candidates for a question; 64 unless told.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a run for other tools: arrays, a table, word2vec, a folder to share, an index, RDF.

    The ending of TARGET names the format where it can: .parquet, .vec, .nt, .ttl. Nothing is overwritten.
    """
    from modulekge.commands import export

    export.export(run, target, to, without_facts, relation, head, tail, k, prefix, expansion, as_json)
