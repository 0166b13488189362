"""The commands that search for settings, and that reproduce the paper's tables and figures."""

from math import inf
from pathlib import Path
from typing import Annotated

import typer

from modulekge.choices import SEARCH_SPACES, STUDIES
from modulekge.cli import completion
from modulekge.cli.app import DataDir, Json, Settings, command
from modulekge.cli.graph import GraphOptions


@command(epilog="Example: modulekge tune UMLS --trials 30 --minutes 20 --workers 2")
def tune(
    graph: GraphOptions,
    space: Annotated[
        str | None,
        typer.Option(help=f"What to search: {', '.join(SEARCH_SPACES)}; default: wide, or as the model is."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Search the settings of this model only.")] = None,
    trials: Annotated[int, typer.Option(min=1, help="How many trainings, counting earlier ones.")] = 50,
    minutes: Annotated[float, typer.Option(min=0.0, help="Begin none after so long.")] = 60.0,
    workers: Annotated[int, typer.Option(min=1, help="Processes that search together.")] = 1,
    seed: Annotated[
        int, typer.Option(min=0, max=2**31 - 1, help="Of the search; train.seed is that of a training.")
    ] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the search; default: runs/tune-DATA-MODEL-SPACE.")
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


@command(epilog="Example: modulekge reproduce results --dataset WN18RR --models ModulE-HH --seeds 3")
def reproduce(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY", help=f"One of {', '.join(STUDIES)}.", autocompletion=completion.studies
        ),
    ],
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="Only this data set; repeatable.", autocompletion=completion.datasets),
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option(help="Only this model; repeatable.", autocompletion=completion.models)
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many seeds, from 0 on; default: those stored, else 1; with --retrain 1."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option(help="Small graphs, ModulE-HH, ComplEx: minutes on a CPU.")] = False,
    stored_only: Annotated[
        bool, typer.Option("--render", help="Train nothing; show what is stored.")
    ] = False,
    retrain: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Train everything anew into this folder; compare with what is stored."
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Trainings at a time, each a process.")] = 1,
    minutes: Annotated[
        float, typer.Option(min=0.0, help="Stop after so long; the same command goes on.")
    ] = inf,
    results: Annotated[Path, typer.Option(help="Folder of results, a small file per training.")] = Path(
        "results/studies"
    ),
    runs: Annotated[Path, typer.Option(help="Folder of runs.")] = Path("runs/studies"),
    data_dir: DataDir = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the table and figure into this folder, too.")
    ] = None,
) -> None:
    """Show a table or figure of the paper with a verdict beside each of its figures.

    Stored results are read, and what is missing is trained; the first line says how many of each, and the
    table when and by which code each figure was made. --retrain FOLDER trains everything anew and compares.
    Ctrl-C keeps what is done, and the same command goes on. --out writes Markdown and CSV, and with the
    extra 'figures' SVG and PNG.
    """
