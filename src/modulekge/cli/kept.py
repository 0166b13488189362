"""Commands on runs that were kept: facts are added, other tools get them, they are listed and compared."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from modulekge.choices import EXPORT_FORMATS, FEW, TABLES, TRACKERS
from modulekge.cli import completion
from modulekge.cli.app import Columns, Descriptions, Header, Json, Labels, RunArgument, Settings, app, command
from modulekge.cli.graph import HeaderRow
from modulekge.run.listing import Order


@command(epilog="Example: modulekge judgements runs/demo --accepted --out accepted.csv")
def judgements(
    run: RunArgument,
    accepted: Annotated[
        bool,
        typer.Option("--accepted", help="Only triples that somebody accepts and nobody rejects, for 'add'."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help=f"Write a new file instead of a table: {', '.join(TABLES)}.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what people said of predicted links in the explorer, and how it agrees with probabilities.

    They are kept in RUN/judgements.jsonl. What was accepted becomes facts by 'modulekge add RUN FILE'.
    """


@command(epilog="Example: modulekge add runs/demo new.tsv --out runs/demo-june")
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be new, such as names, and make nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Add new facts to a trained run, in seconds, as a new run; RUN itself is not changed.

    Entities and relations keep their ids, their rows and so their scores; new ones are fitted to them.
    Facts between known ones are known from then on, but move nothing without --refresh.
    """


@command(epilog="Example: modulekge export runs/demo vectors.parquet")
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
    k: Annotated[int | None, typer.Option("-k", help=f"rdf: how many links; {FEW} unless told.")] = None,
    prefix: Annotated[str | None, typer.Option(help="rdf: base IRI for names that are not IRIs.")] = None,
    expansion: Annotated[
        int | None, typer.Option(help="index: candidates for a question; 64 unless told.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a run for other tools: arrays, a table, word2vec, a folder to share, an index, RDF.

    The ending of TARGET names the format where it can: .parquet, .vec, .nt, .ttl. Nothing is overwritten.
    """


@app.command(epilog="Example: modulekge runs runs/studies --sort mrr")
def runs(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to look, four levels deep.")] = Path(
        "runs"
    ),
    sort: Annotated[
        Order, typer.Option(help="First the newest, the best on valid, or the alphabet.")
    ] = Order.time,
    as_json: Json = False,
) -> None:
    """List runs: what they are of, how far they came, how good they are, and their state."""
    from modulekge import render
    from modulekge.run.listing import list_runs

    lines = list_runs(folder, sort)
    if as_json:
        print(json.dumps([asdict(line) for line in lines], ensure_ascii=False))
    elif lines:
        render.console().print(render.runs_table(lines))
    else:
        render.console(stderr=True).print(f"no runs in {folder}; 'modulekge train' makes one")


@command(epilog="Example: modulekge compare runs/a runs/b --out curves.svg")
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders.", autocompletion=completion.run_folders),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Also write curves (.svg, .png) or the table (.md, .tex, .csv).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Lay runs side by side: the settings that differ, the metrics, the curves of valid MRR."""


@command(epilog="Example: modulekge track runs/wn --to tensorboard")
def track(
    run: RunArgument,
    to: Annotated[str, typer.Option(help=f"{', '.join(TRACKERS)}.", autocompletion=completion.trackers)],
) -> None:
    """Send a run that was kept to a tracker: its settings, every epoch, its report on test."""
