"""What commands share: reading the graph that one names, a run on its device, printing what was found."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from rich.console import RenderableType

import modulekge
from modulekge import render
from modulekge.cli.graph import GraphOptions
from modulekge.data.dataset import Dataset
from modulekge.run.rows import Rows
from modulekge.run.run import Run
from modulekge.training.optimizers import pick_device
from modulekge.wording import counted


def open_graph(graph: GraphOptions) -> Dataset:
    """Return the data set that DATA and its options name."""
    with render.working(f"reading {graph.data}"):
        return modulekge.open_dataset(  # imported here: it takes Arrow, which few commands need
            graph.data,
            graph.data_dir,
            columns=graph.columns,
            labels=graph.labels,
            descriptions=graph.descriptions,
            header=graph.header.chosen,
        )


def on_device(run: Run) -> Run:
    """Move the model of a run to what this machine has."""
    return run.on(pick_device("auto"))


def print_found(found: Any, view: Callable[[], RenderableType], as_json: bool) -> None:
    """Print JSON for a program, or a view of it for people."""
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        render.console().print(view())


def print_notes(dataset: Dataset) -> None:
    """Say what was left out of a graph."""
    for note in dataset.notes:
        render.console(stderr=True).print(note)


def print_untrained(dataset: Dataset, *names: str | None) -> None:
    """Say which of the entities that were asked about have learnt nothing."""
    for entity in dict.fromkeys(dataset.entities.find(name) for name in names if name is not None):
        if dataset.untrained(entity):
            finding = f"{dataset.entities.label(entity)!r} is in no training fact"
            render.console(stderr=True).print(
                f"{finding}: its row is as it was drawn, its answers are guesses"
            )


def give(
    rows: Rows,
    view: RenderableType,
    out: Path | None,
    as_json: bool,
    write: Callable[[], None] | None = None,
) -> None:
    """Write what was found to a file, print it for a program, or show it."""
    if out:
        write() if write else rows.write(out)
        typer.echo(f"{counted(len(rows.rows), 'row')} in {out}", err=True)
    if as_json:
        print(rows.json_lines(), end="")
    elif not out:
        render.console().print(view)
