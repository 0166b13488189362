"""The command that adds facts to a trained run."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from modulekge import render
from modulekge.cli.app import Columns, Descriptions, Json, Labels, RunArgument, Settings, app, split_columns
from modulekge.config import parse_setting
from modulekge.data.addition import enlarge
from modulekge.data.reading import read_facts
from modulekge.run.add import fold_in, train_on
from modulekge.run.drift import drift
from modulekge.run.run import load


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
    labels: Labels = None,
    descriptions: Descriptions = None,
    as_json: Json = False,
) -> None:
    """Add new facts to a trained run, in seconds, as a new run; RUN itself is not changed.

    Entities and relations keep their ids, their rows and so their scores; new ones are fitted to them.
    Facts between known ones are known from then on, but move nothing without --refresh.
    """
    err, source = render.console(stderr=True), load(run)
    facts = read_facts(new, split_columns(columns), labels, descriptions)
    addition = enlarge(source.dataset, facts)
    for note in addition.notes:
        err.print(note)
    folder = fold_in(source, addition, out, [parse_setting(text) for text in settings or ()])
    with render.TrainingDisplay(max(1, refresh), 1) as display:
        try:
            for event in train_on(folder, refresh):
                display.show(event)
        except KeyboardInterrupt:
            err.print(f"the facts are in {folder.path}; 'modulekge resume {folder.path}' goes on training")
            raise
    moved = drift(source, load(folder.path)) if refresh else None
    if as_json:
        found = {"run": str(folder.path), **addition.counts(), "drift": moved and asdict(moved)}
        print(json.dumps(found, ensure_ascii=False))
    else:
        render.console().print(render.addition_view(addition.counts(), moved))
    unmoved = addition.counts()["between_known"]
    if unmoved and not refresh:
        err.print(f"facts between known entities ({unmoved:,}) move nothing; --refresh 5 trains on them")
    err.print(render.kept_in(folder.path))
