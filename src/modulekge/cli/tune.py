"""The command that searches for settings."""

from pathlib import Path
from typing import Annotated

import typer

from modulekge.choices import SEARCH_SPACES
from modulekge.cli.app import (
    Json,
    Settings,
    app,
    with_graph,
)
from modulekge.cli.graph import GraphOptions


@app.command(epilog="Example: modulekge tune UMLS --trials 30 --minutes 20 --workers 2")
@with_graph
def tune(
    graph: GraphOptions,
    space: Annotated[str, typer.Option(help=f"What to search: {' or '.join(SEARCH_SPACES)}.")] = "wide",
    model: Annotated[str | None, typer.Option(help="Search the settings of this model only.")] = None,
    trials: Annotated[int, typer.Option(min=1, help="How many trainings, counting earlier ones.")] = 50,
    minutes: Annotated[float, typer.Option(min=0.0, help="Begin none after so long.")] = 60.0,
    workers: Annotated[int, typer.Option(min=1, help="Processes that search together.")] = 1,
    seed: Annotated[
        int, typer.Option(min=0, max=2**31 - 1, help="Of the search; train.seed is that of a training.")
    ] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the search; default: runs/tune-DATA-SPACE.")
    ] = None,
    storage: Annotated[
        str | None, typer.Option(help="File or address of a database; default: tuning.db in the folder.")
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Search for the settings with the best valid MRR, and write them as a recipe.

    What --set fixes is not searched; what is neither fixed nor searched is chosen by rule, as 'train' does.
    Poor trials are ended early. Test is never touched. Ctrl-C keeps everything, and the same command goes
    on; the same command in another terminal helps.
    """
    from modulekge.commands import tune

    tune.tune(graph, space, model, trials, minutes, workers, seed, out, storage, settings, as_json)
