"""Commands that make the paper's tables and figures again."""

from pathlib import Path
from typing import Annotated

import typer

from modulekge import show
from modulekge.cli import completion
from modulekge.cli.app import app
from modulekge.studies.cell import cell_config, read_result, run_cell
from modulekge.studies.render import write_study
from modulekge.studies.study import STUDIES, study_named


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
    quick: Annotated[bool, typer.Option(help="Small graphs and two models: minutes on a CPU.")] = False,
    render: Annotated[bool, typer.Option(help="Run nothing; make tables of what there is.")] = False,
    results: Annotated[Path, typer.Option(help="Folder of results, a small file per training.")] = Path(
        "results/studies"
    ),
    runs: Annotated[Path, typer.Option(help="Folder of runs.")] = Path("runs/studies"),
    out: Annotated[Path | None, typer.Option(help="Folder of tables; default: that of the results.")] = None,
) -> None:
    """Make a table or figure of the paper again, with a verdict beside each of its figures.

    Runs only what is missing; Ctrl-C keeps what is done, and the same command goes on. Writes Markdown,
    CSV, SVG and PNG.
    """
    chosen = study_named(study)
    cells = chosen.cells(dataset or (), models or (), seeds, quick)
    wanted = (cell for group in cells for cell in group if not read_result(cell, results))
    missing = list({min(cell.names): cell for cell in wanted}.values())
    err = show.console(stderr=True)
    for number, cell in enumerate([] if render else missing, start=1):
        err.print(f"[{number} of {len(missing)}] {cell.command}")
        display = show.TrainingDisplay(cell_config(cell).train.epochs, 1)
        with display:
            for event in run_cell(cell, results, runs):
                display.show(event)
    files = write_study(chosen, cells, results, out or results)
    show.console().print(show.study_table(chosen.lines(cells, results)))
    err.print("written: " + ", ".join(map(str, files)))
