"""Commands that make answers better: probabilities (calibrate), order (rerank), several runs (mix)."""

from pathlib import Path
from typing import Annotated

import typer

from modulekge.choices import PICTURES
from modulekge.cli.app import Json, RunArgument, app, command


@command(epilog="Example: modulekge calibrate runs/demo --figure reliability.svg")
def calibrate(
    run: RunArgument,
    figure: Annotated[
        Path | None, typer.Option(help=f"Also draw how true probabilities are: {', '.join(PICTURES)}.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fit probabilities to the valid split, and measure on test how true they are.

    'train' does so at its end; a run that was made otherwise gets its probabilities here.
    """


@command(epilog="Example: modulekge rerank runs/demo")
def rerank(
    run: RunArgument,
    weights: Annotated[
        str | None,
        typer.Option(metavar="I,H,P", help="Take these and compare no others; 0,0,0: no reranking."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Rerank candidates with the inverse question, if that is better on valid, and keep the best weights.

    How well the head answers a candidate's inverse question (weight I), how well the best entity does (H,
    subtracted: hubness) and how common the candidate is in train (P: prior) are added to its score. Forty
    choices are compared by MRR on valid; the model is not trained on. Probabilities are made anew, the report
    on test is left to 'evaluate'.
    """


@command(epilog="Example: modulekge mix runs/embedding runs/paths --out runs/both")
def mix(
    runs: Annotated[list[Path], typer.Argument(help="Two trained runs of one graph, or more.")],
    out: Annotated[Path, typer.Option(help="Run folder to make; it holds copies of the runs.")],
    as_json: Json = False,
) -> None:
    """Mix runs of one graph into a run that answers with all of them, and calibrate it.

    How much each counts is fitted for every relation and direction on two thirds of valid, and checked on the
    rest: if the whole mixture is no better than the best run alone, that run gets all the weight. The result
    is asked, evaluated, explained (by the run that counts most), served and added to like any other.
    """


app.command("sharpen", hidden=True)(rerank)  # its former name
