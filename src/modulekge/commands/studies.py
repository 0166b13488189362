"""The commands that search for settings, and that reproduce the paper's tables and figures."""

import json
import os
import shlex
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path

from modulekge import render
from modulekge.cli.graph import GraphOptions
from modulekge.commands.graph import open_graph, print_notes
from modulekge.config import parse_setting
from modulekge.data.benchmarks import DATA_VARIABLE
from modulekge.errors import RunError, one_of
from modulekge.models.spec import named
from modulekge.run.files import write_file
from modulekge.run.plan import check_asked
from modulekge.run.plotting import missing_for_pictures
from modulekge.studies import future, tuning
from modulekge.studies.catalogue import STUDIES
from modulekge.studies.cell import Cell, cell_config, read_result
from modulekge.studies.render import write_study
from modulekge.studies.several import run_cells
from modulekge.studies.study import made_by

_MOST_SEEDS = 32  # of a model that are looked for among what is stored


def tune(
    graph: GraphOptions,
    space: str | None,
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
    space = space or ("paths" if model and named(model).along_paths else "wide")
    dataset = open_graph(graph)
    print_notes(dataset)
    folder = out or Path("runs") / "-".join(["tune", dataset.name, *([model] if model else []), space])
    database = storage or str(folder / "tuning.db")
    search = tuning.Search.of(dataset, one_of("space", space, tuning.SPACES), fixed, database)
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


def reproduce(
    study: str,
    dataset: list[str] | None,
    models: list[str] | None,
    seeds: int | None,
    quick: bool,
    stored_only: bool,
    retrain: Path | None,
    workers: int,
    minutes: float,
    results: Path,
    runs: Path,
    data_dir: Path | None,
    out: Path | None,
) -> None:
    """Show a table or figure of the paper with a verdict beside each of its figures."""
    if data_dir:  # for the processes that train, too
        os.environ[DATA_VARIABLE] = os.pathsep.join(
            filter(None, [str(data_dir.absolute()), os.environ.get(DATA_VARIABLE)])
        )
    chosen = one_of("study", study, {**STUDIES, **dict.fromkeys(future.FUTURES)})
    if chosen is None:
        _reproduce_future(study, stored_only, retrain, minutes, results, runs, out)
        return
    cells = chosen.cells(dataset or (), models or (), seeds or (1 if retrain else _MOST_SEEDS), quick)
    if not seeds:
        cells = [[cell for cell in group if read_result(cell, results)] or group[:1] for group in cells]
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
        files, err = write_study(chosen, cells, results, out), render.console(stderr=True)
        err.print("written: " + ", ".join(map(str, files)))
        if missing_for_pictures():
            err.print(f"no pictures: {missing_for_pictures()}")
    pairs = zip(before, lines, strict=True)
    render.console().print(render.retrained_table(pairs) if retrain else render.study_table(lines))


def _reproduce_future(
    study: str,
    stored_only: bool,
    retrain: Path | None,
    minutes: float,
    results: Path,
    runs: Path,
    out: Path | None,
) -> None:
    """Show what was predicted of the next release, and what came of it: as stored, or trained now."""
    if retrain:
        results, runs = retrain / "results", retrain / "runs"
    path = results / f"{study}.json"
    found = future.read_future(path)
    if found:
        advice = "" if retrain else "; --retrain FOLDER trains anew"
        print(f"read from {path} ({found.made}), nothing trained now{advice}")
    elif stored_only:
        raise RunError(f"{path}: is not there; the same command without --render makes it")
    else:
        print(f"nothing stored in {path}: two runs are trained now, each for {_each(minutes):g} minutes")
        found = future.predict_future(future.read_releases(future.GRAPHS, study), runs, _each(minutes))
        future.write_future(found, path)
    if out:
        page = out / f"{study}.md"
        out.mkdir(parents=True, exist_ok=True)
        before = page.read_text("utf-8") if page.exists() else future.PAGE
        write_file(page, future.written_into(before, found))
        render.console(stderr=True).print(f"written: {page}")
    print("\n" + "\n".join(future.tables(found)))


def _each(minutes: float) -> float:
    """Minutes for each of two trainings, of those given for all."""
    return min(future.MINUTES, minutes / 2)


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
