"""Commands that look at runs that were kept."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from modulekge.choices import TRACKERS
from modulekge.cli import completion
from modulekge.cli.app import Json, RunArgument, app
from modulekge.run.listing import Order


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


@app.command(epilog="Example: modulekge compare runs/a runs/b --out curves.svg")
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders.", autocompletion=completion.run_folders),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Also write curves (.svg, .png) or the table (.md, .csv).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Lay runs side by side: the settings that differ, the metrics, the curves of valid MRR."""
    from modulekge.commands import kept

    kept.compare(runs, out, as_json)


@app.command(epilog="Example: modulekge track runs/wn --to tensorboard")
def track(
    run: RunArgument,
    to: Annotated[str, typer.Option(help=f"{', '.join(TRACKERS)}.", autocompletion=completion.trackers)],
) -> None:
    """Send a run that was kept to a tracker: its settings, every epoch, its report on test."""
    from modulekge.commands import kept

    kept.track(run, to)
