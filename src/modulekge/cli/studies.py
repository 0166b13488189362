"""Commands that make the paper's tables and figures again."""

from contextlib import closing, suppress
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from modulekge import show
from modulekge.cli import completion
from modulekge.cli.app import app
from modulekge.studies.catalogue import STUDIES, study_named
from modulekge.studies.cell import cell_config, read_result
from modulekge.studies.render import write_study
from modulekge.studies.several import run_cells


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
    render: Annotated[bool, typer.Option(help="Run nothing; make tables of what there is.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Trainings at a time, each a process.")] = 1,
    minutes: Annotated[
        float, typer.Option(min=0.0, help="Stop after so long; the same command goes on.")
    ] = inf,
    results: Annotated[Path, typer.Option(help="Folder of results, a small file per training.")] = Path(
        "results/studies"
    ),
    runs: Annotated[Path, typer.Option(help="Folder of runs.")] = Path("runs/studies"),
    out: Annotated[Path | None, typer.Option(help="Folder of tables; default: that of the results.")] = None,
) -> None:
    """Make a table or figure of the paper again, with a verdict beside each of its figures.

    Runs only what is missing, with --workers several at a time; Ctrl-C keeps what is done, and the same
    command goes on. Writes Markdown, CSV, SVG and PNG.
    """
    chosen = study_named(study)
    cells = chosen.cells(dataset or (), models or (), seeds, quick)
    wanted = (cell for group in cells for cell in group if not read_result(cell, results))
    missing = list({cell.training: cell for cell in wanted}.values())
    err = show.console(stderr=True)
    begun: set[str] = set()
    done = 0
    with (
        suppress(KeyboardInterrupt),
        show.TrainingsDisplay() as display,
        closing(run_cells([] if render else missing, results, runs, workers, minutes)) as news,
    ):
        for cell, event in news:
            if cell.name not in begun:
                begun.add(cell.name)
                err.print(f"[{len(begun)} of {len(missing)}] {cell.command}")
                display.begin(cell.name, cell_config(cell).train.epochs)
            if event is None:
                done += 1
                display.end(cell.name)
            else:
                display.show(event, cell.name)
    if not render and done < len(missing):
        err.print(f"{done} of {len(missing)} trainings done; the same command goes on")
    files = write_study(chosen, cells, results, out or results)
    show.console().print(show.study_table(chosen.lines(cells, results)))
    err.print("written: " + ", ".join(map(str, files)))
