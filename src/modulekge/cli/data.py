"""Commands about data sets."""

import json
from dataclasses import asdict

import typer

from modulekge import show
from modulekge.cli.app import All, DataArgument, DataDir, Json, app
from modulekge.data.registry import benchmarks, local_folder, open_dataset
from modulekge.data.survey import survey

data_app = typer.Typer(help="Look at data sets: 'data list', 'data info DATA'.")
app.add_typer(data_app, name="data")


@data_app.command("list", epilog="Example: modulekge data list --data-dir ~/graphs")
def data_list(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the data sets known by name, and where each would be read from."""
    places = {name: str(local_folder(b, data_dir) or "download") for name, b in benchmarks().items()}
    if as_json:
        print(json.dumps([{**asdict(b), "where": places[name]} for name, b in benchmarks().items()]))
        return
    show.console().print(show.datasets_table(benchmarks().values(), places))


@data_app.command("info", epilog="Example: modulekge data info world --all")
def data_info(
    data: DataArgument, data_dir: DataDir = None, every: All = False, as_json: Json = False
) -> None:
    """Count a data set: sizes, unseen entities, leaks, cardinality of each relation."""
    found = survey(open_dataset(data, data_dir))
    if as_json:
        print(json.dumps(asdict(found), ensure_ascii=False))
    else:
        show.console().print(show.survey_view(found, every))
