"""Commands about data sets."""

import json
from dataclasses import asdict

import typer

from modulekge.cli.app import (
    All,
    DataDir,
    Json,
    app,
    with_graph,
)
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


@data_app.command("info", epilog="Example: modulekge data info graph.csv --columns subject,predicate,object")
@with_graph
def data_info(
    graph: GraphOptions,
    every: All = False,
    as_json: Json = False,
) -> None:
    """Count a data set: sizes, unseen entities, leaks, cardinality of each relation."""
    from modulekge.commands import data as commands

    commands.data_info(graph, every, as_json)


@data_app.command("doctor", epilog="Example: modulekge data doctor my-graph.tsv")
@with_graph
def data_doctor(
    graph: GraphOptions,
    as_json: Json = False,
) -> None:
    """Look for what would spoil training or its figures, and reckon what training needs here.

    Lines that are no triples, repeated triples, leaks between splits, unseen entities, names that are spelt
    alike, relations that copy, invert or mirror each other or follow from two others, cardinalities; memory
    and seconds per epoch of the settings that 'train' would use.
    """
    from modulekge.commands import data as commands

    commands.data_doctor(graph, as_json)
