"""Commands about data sets."""

import json
from dataclasses import asdict
from pathlib import Path

import typer

from modulekge import render
from modulekge.cli.app import (
    All,
    Columns,
    DataArgument,
    DataDir,
    Descriptions,
    Json,
    Labels,
    app,
    open_data,
    split_columns,
)
from modulekge.data.doctor import Finding, examine, examine_files
from modulekge.data.registry import benchmarks, local_folder
from modulekge.data.statistics import survey
from modulekge.errors import DataError
from modulekge.run.estimate import Estimate, needs
from modulekge.run.train import resolve

data_app = typer.Typer(
    help="Look at data sets ('data list', 'info DATA', 'doctor DATA'), or make one ('data synth')."
)
app.add_typer(data_app, name="data")


@data_app.command("list", epilog="Example: modulekge data list --data-dir ~/graphs")
def data_list(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the data sets known by name, and where each would be read from."""
    places = {name: str(local_folder(b, data_dir) or "download") for name, b in benchmarks().items()}
    if as_json:
        print(json.dumps([{**asdict(b), "where": places[name]} for name, b in benchmarks().items()]))
        return
    render.console().print(render.datasets_table(benchmarks().values(), places))


@data_app.command("info", epilog="Example: modulekge data info graph.csv --columns subject,predicate,object")
def data_info(
    data: DataArgument,
    columns: Columns = None,
    labels: Labels = None,
    descriptions: Descriptions = None,
    data_dir: DataDir = None,
    every: All = False,
    as_json: Json = False,
) -> None:
    """Count a data set: sizes, unseen entities, leaks, cardinality of each relation."""
    found = survey(open_data(data, data_dir, columns, labels, descriptions))
    if as_json:
        print(json.dumps(asdict(found), ensure_ascii=False))
    else:
        render.console().print(render.statistics_view(found, every))


@data_app.command("doctor", epilog="Example: modulekge data doctor my-graph.tsv")
def data_doctor(
    data: DataArgument,
    columns: Columns = None,
    labels: Labels = None,
    descriptions: Descriptions = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Look for what would spoil training or its figures, and reckon what training needs here.

    Lines that are no triples, repeated triples, leaks between splits, unseen entities, relations that
    copy, invert or mirror each other, cardinalities; memory and seconds per epoch of the settings that
    'train' would use.
    """
    try:
        dataset = open_data(data, data_dir, columns, labels, descriptions)
    except DataError as error:
        found = examine_files(Path(data), split_columns(columns)) if Path(data).exists() else ()
        if as_json:
            found = found or (Finding("problem", str(error), ""),)
            _print_json(found, None)
        if as_json or len(found) < 2:
            raise
        render.console().print(render.findings_view(data, found))
        raise DataError(f"{data}: cannot be read; mend the lines above") from error
    found, needed = examine(dataset), needs(dataset, resolve(dataset))
    if as_json:
        _print_json(found, needed)
    else:
        render.console().print(render.findings_view(dataset.name, found), render.estimate_view(needed))


def _print_json(found: tuple[Finding, ...], needed: Estimate | None) -> None:
    parts = {"findings": [asdict(finding) for finding in found], "needs": needed and asdict(needed)}
    print(json.dumps(parts, ensure_ascii=False))
