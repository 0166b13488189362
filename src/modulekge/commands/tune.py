"""The command that searches for settings."""

import json
import shlex
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path

from modulekge import render
from modulekge.cli.graph import GraphOptions
from modulekge.commands.graph import open_graph, print_notes
from modulekge.config import parse_setting
from modulekge.models.spec import named
from modulekge.run.train import check_asked
from modulekge.studies import tuning


def tune(
    graph: GraphOptions,
    space: str,
    model: str | None,
    trials: int,
    minutes: float,
    workers: int,
    seed: int,
    out: Path | None,
    storage: str | None,
    settings: list[str] | None,
    as_json: bool,
) -> None:
    """Search for the settings with the best valid MRR, and write them as a recipe."""
    fixed = [parse_setting(text) for text in settings or ()]
    if model:
        fixed.insert(0, {"model": {"name": named(model).name}})
    check_asked(None, fixed)
    dataset = open_graph(graph)
    print_notes(dataset)
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
    command = shlex.join(["modulekge", "train", graph.data, *graph.words(), "--recipe", str(recipe)])
    err.print(f"kept in {recipe}; train it: {command}")
