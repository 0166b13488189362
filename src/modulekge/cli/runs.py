"""Commands that make runs and measure them."""

from pathlib import Path
from typing import Annotated

import typer

from modulekge.choices import TRACKERS
from modulekge.cli import completion
from modulekge.cli.app import Json, ModelName, OtherGraph, RunArgument, Settings, command
from modulekge.cli.graph import GraphOptions

Track = Annotated[
    list[str] | None,
    typer.Option(
        help=f"Show epochs in {', '.join(TRACKERS)}; repeatable.", autocompletion=completion.trackers
    ),
]


@command(epilog="Example: modulekge train WN18RR --model ModulE-HH --set train.epochs=40 --out runs/wn")
def train(
    graph: GraphOptions,
    model: ModelName = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder to make; default: a dated one in runs/.")
    ] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="TOML file of settings; 'none': choose them by rule.")
    ] = None,
    settings: Settings = None,
    track: Track = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Take this many minutes of an idle machine, calibration and test report included.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option(help="Print the settings, and the time they would take, and stop.")
    ] = False,
    test: Annotated[
        bool, typer.Option("--test/--no-test", help="Rank test at the end; or leave it to 'evaluate'.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Train a model on a graph, keep the run, and report on its test split.

    Without --model, --recipe and --set, several models are tried in --minutes, or in 5 to 15, the more the
    larger the graph; the best goes on, and their mixture is kept. Ctrl-C mixes what has been trained so far.
    With one of them, one model is trained. Its settings are those of the recipe of this model and data set;
    where there is none, or with --minutes, rules choose them from the size of the graph, the time and steps
    timed on this machine, and say why. Ctrl-C or SIGTERM ends that after the current epoch; 'modulekge
    resume' goes on. A benchmark that has a recipe of ModulE-HH is trained with it unless told otherwise.
    """


@command(epilog="Example: modulekge resume runs/wn --set train.epochs=100")
def resume(run: RunArgument, settings: Settings = None, track: Track = None, as_json: Json = False) -> None:
    """Go on with a run that was interrupted, also in its last report, or that should train for longer."""


@command(epilog="Example: modulekge evaluate runs/wn --split valid --json")
def evaluate(
    run: RunArgument,
    split: Annotated[
        str, typer.Option(help="train, valid or test.", autocompletion=completion.splits)
    ] = "test",
    graph: OtherGraph = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Rank every triple, also of a very large split; show every relation."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Rank the questions of a split and report MRR, Hits@K and MR, with the protocol.

    Of a split with more than 10 billion scores (questions times entities) a sample is ranked.
    """
