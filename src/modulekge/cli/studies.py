"""The command that reproduces the paper's tables and figures."""

from collections.abc import Sequence
from contextlib import closing, suppress
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from modulekge import render
from modulekge.cli import completion
from modulekge.cli.app import app
from modulekge.errors import RunError
from modulekge.studies.catalogue import STUDIES, study_named
from modulekge.studies.cell import Cell, cell_config, read_result
from modulekge.studies.render import write_study
from modulekge.studies.several import run_cells
from modulekge.studies.study import made_by


@app.command(epilog="Example: modulekge reproduce results --dataset WN18RR --models ModulE-HH --seeds 3")
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
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 0 on.")] = 1,
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
    out: Annotated[
        Path | None, typer.Option(help="Write the table and figure into this folder, too.")
    ] = None,
) -> None:
    """Show a table or figure of the paper with a verdict beside each of its figures.

    Stored results are read, and what is missing is trained; the first line says how many of each, and the
    table when and by which code each figure was made. --retrain FOLDER trains everything anew and compares.
    Ctrl-C keeps what is done, and the same command goes on. --out writes Markdown, CSV, SVG and PNG.
    """
    chosen = study_named(study)
    cells = chosen.cells(dataset or (), models or (), seeds, quick)
    stored = results
    if retrain:
        if retrain.exists() and not (retrain / "results").is_dir() and any(retrain.iterdir()):
            raise RunError(f"{retrain}: is not empty; name a new folder to train into")
        results, runs = retrain / "results", retrain / "runs"
    missing = _missing(cells, results)
    print(_source(cells, results, 0 if stored_only else len(missing), anew=retrain is not None))
    now: frozenset[str] = frozenset() if stored_only else _train(missing, results, runs, workers, minutes)
    lines, before = chosen.lines(cells, results, now), chosen.lines(cells, stored)
    if out:
        files = write_study(chosen, cells, results, out)
        render.console(stderr=True).print("written: " + ", ".join(map(str, files)))
    pairs = zip(before, lines, strict=True)
    render.console().print(render.retrained_table(pairs) if retrain else render.study_table(lines))


def _missing(cells: Sequence[Sequence[Cell]], results: Path) -> list[Cell]:
    """Return the trainings without a result, each once."""
    wanted = (cell for group in cells for cell in group if not read_result(cell, results))
    return list({cell.training: cell for cell in wanted}.values())


def _source(cells: Sequence[Sequence[Cell]], results: Path, trained: int, anew: bool) -> str:
    """Say how many trainings are read, of when and from where, and how many are run now."""
    every = {cell.training: cell for group in cells for cell in group}.values()
    found = [result for cell in every if (result := read_result(cell, results))]
    read = f"{len(found)} read from {results}" + (f" ({made_by(found)})" if found else "")
    absent = len(every) - len(found) - trained
    parts = [read, f"{trained} trained now", *([f"{absent} not run"] if absent else [])]
    advice = "" if anew or not found else "; --retrain FOLDER trains them anew and compares"
    return f"{len(every)} training{'s' * (len(every) != 1)}: {', '.join(parts)}{advice}"


def _train(
    missing: Sequence[Cell], results: Path, runs: Path, workers: int, minutes: float
) -> frozenset[str]:
    """Train cells, showing each, and return which came to their end; how many are left is said."""
    err = render.console(stderr=True)
    begun: set[str] = set()
    done: set[str] = set()
    with (
        suppress(KeyboardInterrupt),
        render.TrainingsDisplay() as display,
        closing(run_cells(missing, results, runs, workers, minutes)) as news,
    ):
        for cell, event in news:
            if cell.name not in begun:
                begun.add(cell.name)
                err.print(f"[{len(begun)} of {len(missing)}] {cell.command}")
                display.begin(cell.name, cell_config(cell).train.epochs)
            if event is None:
                done.add(cell.name)
                display.end(cell.name)
            else:
                display.show(event, cell.name)
    if len(done) < len(missing):
        err.print(f"{len(done)} of {len(missing)} trainings done; the same command goes on")
    return frozenset(done)
