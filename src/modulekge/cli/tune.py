"""The command that searches for settings."""

import json
import shlex
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from modulekge import render
from modulekge.cli.app import (
    Columns,
    DataArgument,
    DataDir,
    Descriptions,
    Json,
    Labels,
    Settings,
    app,
    open_data,
)
from modulekge.config import parse_setting
from modulekge.models.table import named
from modulekge.studies import tuning


@app.command(epilog="Example: modulekge tune UMLS --trials 30 --minutes 20 --workers 2")
def tune(
    data: DataArgument,
    space: Annotated[str, typer.Option(help=f"What to search: {' or '.join(tuning.SPACES)}.")] = "wide",
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
    columns: Columns = None,
    labels: Labels = None,
    descriptions: Descriptions = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Search for the settings with the best valid MRR, and write them as a recipe.

    What --set fixes is not searched; what is neither fixed nor searched is chosen by rule, as 'train' does.
    Poor trials are ended early. Test is never touched. Ctrl-C keeps everything, and the same command goes
    on; the same command in another terminal helps.
    """
    dataset = open_data(data, data_dir, columns, labels, descriptions)
    fixed = [parse_setting(text) for text in settings or ()]
    if model:
        fixed.insert(0, {"model": {"name": named(model).name}})
    folder = out or Path("runs") / f"tune-{dataset.name}-{space}"
    database = storage or str(folder / "tuning.db")
    search = tuning.Search.of(dataset, tuning.space_named(space), fixed, database)
    study = tuning.open_study(search, seed)
    recipe, err = folder / "best.toml", render.console(stderr=True)
    with (
        suppress(KeyboardInterrupt),
        tuning.more_workers(search, workers - 1, seed, trials, minutes),
        render.TuningDisplay(trials) as display,
        closing(tuning.tune(search, study, trials, minutes)) as events,
    ):
        for event in events:
            display.show(event, tuning.finished(study), tuning.ranking(study))
    best = tuning.write_best(study, recipe)
    if as_json:
        print(json.dumps({**asdict(best), "trials": tuning.finished(study), "recipe": str(recipe)}))
    else:
        render.console().print(render.trials_table(tuning.ranking(study)))
    if tuning.finished(study) < trials:
        err.print(f"{tuning.finished(study)} of {trials} trials done; the same command goes on")
    options = {
        "--columns": columns,
        "--labels": labels,
        "--descriptions": descriptions,
        "--data-dir": data_dir,
    }
    chosen = [word for name, value in options.items() if value for word in (name, str(value))]
    command = shlex.join(["modulekge", "train", data, *chosen, "--recipe", str(recipe)])
    err.print(f"kept in {recipe}; train it: {command}")
