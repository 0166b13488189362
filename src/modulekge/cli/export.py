"""The command that writes a run for other tools."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from modulekge import render
from modulekge.cli import completion
from modulekge.cli.app import Json, RunArgument, app, print_notes
from modulekge.export.formats import FORMATS
from modulekge.export.formats import export as export_run
from modulekge.run.run import load


@app.command(epilog="Example: modulekge export runs/demo vectors.parquet")
def export(
    run: RunArgument,
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="File or folder to make.")],
    to: Annotated[
        str | None,
        typer.Option(help=f"{', '.join(FORMATS)}.", autocompletion=completion.formats),
    ] = None,
    without_facts: Annotated[
        bool, typer.Option("--without-facts", help="hub: leave the graph's triples out.")
    ] = False,
    relation: Annotated[str | None, typer.Option(help="rdf: a relation; all unless told.")] = None,
    head: Annotated[str | None, typer.Option(help="rdf: the head, if one question is asked.")] = None,
    tail: Annotated[str | None, typer.Option(help="rdf: the tail, if one question is asked.")] = None,
    k: Annotated[int | None, typer.Option("-k", help="rdf: how many links; 10 unless told.")] = None,
    prefix: Annotated[str | None, typer.Option(help="rdf: the IRI before names that are none.")] = None,
    expansion: Annotated[
        int | None, typer.Option(help="index: candidates for a question; 64 unless told.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a run for other tools: arrays, a table, word2vec, a folder to share, an index, RDF.

    The ending of TARGET names the format where it can: .parquet, .vec, .nt, .ttl. Nothing is overwritten.
    """
    given = {
        "without_facts": without_facts or None,
        "relation": relation,
        "head": head,
        "tail": tail,
        "k": k,
        "prefix": prefix,
        "expansion": expansion,
    }
    options = {name: value for name, value in given.items() if value is not None}
    loaded = load(run)
    print_notes(loaded.dataset)
    written = export_run(loaded, target, to, **options)
    if as_json:
        print(json.dumps({**asdict(written), "path": str(written.path)}, ensure_ascii=False))
    else:
        render.console().print(f"{written.path}: {written.note}")
