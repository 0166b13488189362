"""Commands that make runs and measure them."""

import json
import signal
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, cast

import typer
from rich.console import Console

from modulekge import render
from modulekge.cli.graph import GraphOptions
from modulekge.commands.graph import on_device, open_graph, print_notes
from modulekge.config import make_config, parse_setting, write_config
from modulekge.data.benchmarks import Split
from modulekge.data.dataset import Dataset
from modulekge.data.registry import open_dataset
from modulekge.errors import ConfigError, EndedError, LostError
from modulekge.evaluation.calibration import Calibration
from modulekge.evaluation.evaluate import evaluate as evaluate_model
from modulekge.evaluation.evaluate import ranked_triples
from modulekge.evaluation.link_calibration import most_unanswered
from modulekge.evaluation.mixing import Fitted, fitted_triples
from modulekge.evaluation.odds import count_questions
from modulekge.evaluation.report import Report
from modulekge.run import portfolio
from modulekge.run.calibrate import calibrate as calibrate_run
from modulekge.run.folder import RunFolder
from modulekge.run.mix import mix_runs
from modulekge.run.plan import check_asked, plan
from modulekge.run.progress import Event
from modulekge.run.run import Run, load
from modulekge.run.trackers import Tracker, Tracking, make_trackers
from modulekge.run.train import continue_run, default_folder
from modulekge.shapes import Triples
from modulekge.training.optimizers import pick_device
from modulekge.training.records import EpochProgress, EpochRecord
from modulekge.wording import counted
from modulekge.workers import lost, many, restarted, workers


def train(
    graph: GraphOptions,
    model: str | None,
    out: Path | None,
    recipe: Path | None,
    settings: list[str] | None,
    track: list[str] | None,
    minutes: float | None,
    dry_run: bool,
    test: bool,
    as_json: bool,
) -> None:
    """Train a model on a graph, keep the run, and report on its test split."""
    of_one_model, seed = bool(recipe or settings or track or many()), 0
    if model == portfolio.NAME and of_one_model:
        seed = _only_seed(settings or [], recipe, track)
    opened = None
    if model == portfolio.NAME or (not model and not of_one_model):
        if out:
            portfolio.check_place(out)
        opened = open_graph(graph)
        if model or (minutes and len(opened.valid)) or portfolio.is_default(opened):
            _train_mixture(opened, out, minutes, seed, dry_run, test, as_json)
            return
    if many() and out is None and not dry_run:
        raise ConfigError("--out is missing: name the run folder, so that every process finds it")

    def begin() -> Path:
        layers = [parse_setting(text) for text in settings or ()]
        check_asked(model, layers, recipe)
        if out and not dry_run:
            RunFolder.check_free(out)
        dataset = opened or open_graph(graph)
        print_notes(dataset)
        with render.working("timing some steps"):
            planned = plan(dataset, model, layers, recipe, minutes)
            seconds, times = planned.time()
        config = planned.config
        path = out or default_folder(config.data, config.model.name)
        make_trackers(track or (), path)  # what is not installed shows before anything is made
        if not dry_run:
            RunFolder.create(path, config, dataset)
        if planned.recipe:
            where = f"{planned.recipe.parent.name}/{planned.recipe.name}"
            typer.echo(f"settings of the recipe {where}; with --recipe none rules choose them", err=True)
        if planned.choices:
            render.console(stderr=True).print(render.choices_view(planned.choices))
        if times.measured or dry_run:
            render.console(stderr=True).print(render.time_view(seconds, times))
        if dry_run:
            print(write_config(config), end="")
        return path

    if restarted() and out and (out / "config.toml").exists():
        _go_on(out, None, track, test, as_json)
        return
    path = Path(workers().on_main(begin))
    if not dry_run:
        _go_on(path, None, track, test, as_json)


def _only_seed(settings: list[str], recipe: Path | None, track: list[str] | None) -> int:
    """Return the seed that was set for a mixture, which chooses everything else itself."""
    if recipe or track or many() or any(not text.startswith("train.seed=") for text in settings):
        raise ConfigError(
            f"--model {portfolio.NAME}: chooses its models and settings itself, in one process; "
            "leave --recipe, --track and --set of anything but train.seed out, or name a model"
        )
    return make_config(map(parse_setting, settings)).train.seed


def _train_mixture(
    dataset: Dataset,
    out: Path | None,
    minutes: float | None,
    seed: int,
    dry_run: bool,
    test: bool,
    as_json: bool,
) -> None:
    """Try several models in the time given, and keep their mixture; Ctrl-C mixes what there is by then."""
    err = render.console(stderr=True)
    print_notes(dataset)
    with render.working("timing some steps"):
        planned = portfolio.plan_portfolio(dataset, minutes, seed=seed)
    err.print(render.portfolio_view(planned))
    if dry_run:
        return
    path = out or default_folder(dataset.name, portfolio.NAME)
    with _gentle_interrupt(err) as interrupted:

        def watch(folder: RunFolder, events: portfolio.Events) -> Iterator[Event]:
            first = next(events)
            err.print(f"{folder.config().model.name} ({folder.config().size})")
            with render.TrainingDisplay(folder.config().train.epochs, first.epoch) as display:
                for event in chain([first], events):
                    display.show(event)
                    yield event
                    if interrupted and isinstance(event, EpochRecord):
                        return

        tried = portfolio.run_trials(planned, dataset, path, watch, lambda: bool(interrupted))
    trials = portfolio.candidates_folder(path)
    left = f"what was trained is in {trials}; the same command with --out {path} goes on"
    portfolio.clear_place(path)
    try:
        runs, told = portfolio.runs_of(tried), planned.told(tried)
        run, _ = mix_with_display(runs, path, planned.most_questions, told)
        del runs  # of which the mixture has copies
        if not interrupted:
            left = f"the mixture is in {path}; 'modulekge calibrate {path}' makes its probabilities"
            portfolio.remove_trials(path)
        err.print(render.tried_view(run.folder.origin("mixed")))
        if test and len(dataset.test):
            run = on_device(run)
            asked = ranked_triples(run.scorer, dataset, "test", most_questions=planned.most_questions)
            _report(run, "test", asked, every=False, as_json=as_json)
        _calibrate(run.folder, test)
    except KeyboardInterrupt:
        err.print(left)
        raise
    err.print(render.kept_in(path))
    if interrupted:
        err.print(f"stopped early: the same command with --out {path} trains on, by what is in {trials}")


def resume(run: Path, settings: list[str] | None, track: list[str] | None, as_json: bool) -> None:
    """Go on with a run that was interrupted, also in its last report, or that should train for longer."""
    _go_on(run, settings, track, True, as_json)


def _go_on(run: Path, settings: list[str] | None, track: list[str] | None, test: bool, as_json: bool) -> None:
    """Train a run from where it is, and rank test unless that is left to 'evaluate'."""
    folder, trackers = RunFolder.existing(run), dict[str, Tracker]()
    workers().on_main(lambda: trackers.update(make_trackers(track or (), folder.path)))
    _train(folder, [parse_setting(text) for text in settings or ()], trackers, test, as_json)


def _train(
    folder: RunFolder, settings: list[dict[str, Any]], trackers: dict[str, Tracker], test: bool, as_json: bool
) -> None:
    """Train with a display, then report on test with the best weights; or only that, where it was cut off."""
    err, live, events = render.console(stderr=True), render.live_console(), continue_run(folder, settings)
    # before there is an epoch to see; one of several processes that shows nothing stops at once
    gentle = _gentle_interrupt(live) if workers().is_main else nullcontext(list[int]())
    with Tracking(folder, trackers, partial(typer.echo, err=True)) as tracking:
        try:
            with gentle as interrupted:
                first = next(events)  # what is wrong shows here, before anything else does
                stopped = _watch(folder, first, events, tracking, live, interrupted, as_json)
        except EndedError:
            if settings or folder.is_reported():
                raise
        else:
            if stopped:
                err.print(f"stopped after epoch {stopped}; 'modulekge resume {folder.path}' goes on")
                err.print("or ask it as it is; 'modulekge evaluate' and 'modulekge calibrate' measure it")
                return
        tracking.finish(evaluate(folder.path, "test", None, every=False, as_json=as_json) if test else None)
    if not workers().is_main:
        return
    if many():
        err.print(f"make its probabilities: modulekge calibrate {folder.path}")
    else:
        _calibrate(folder, test)
    err.print(render.kept_in(folder.path))


def _watch(
    folder: RunFolder,
    first: EpochProgress | EpochRecord,
    events: Generator[EpochProgress | EpochRecord, None, None],
    tracking: Tracking,
    live: Console,
    interrupted: list[int],
    as_json: bool,
) -> int:
    """Show a training; return the epoch after which it was asked to stop, 0 if it was not."""
    if not workers().is_main:  # the first process shows what all of them do
        for _ in events:
            pass
        return 0
    config, err = folder.config(), render.console(stderr=True)
    device = pick_device(config.train.device)
    err.print(f"{config.model.name} ({config.size}) on {config.data}, {device}, {folder.path}")
    with render.TrainingDisplay(config.train.epochs, first.epoch, live) as display:
        for event in chain([first], events):
            display.show(event)
            tracking.feed(event)
            if isinstance(event, EpochRecord):
                if as_json:
                    print(json.dumps(asdict(event)), flush=True)
                if interrupted and event.epoch < config.train.epochs:
                    events.close()
                    return event.epoch
    return 0


def _calibrate(folder: RunFolder, measure: bool) -> None:
    """Make probabilities for 'predict', where there are held-out facts to fit them to."""
    run = load(folder.path)
    if len(run.dataset.valid) == 0:
        return
    found = make_calibration(run, measure)
    error = "" if found.measured is None else f", {found.measured.together.after.error:.3f} off on test"
    answers = counted(found.together.triples, "valid answer")
    render.console(stderr=True).print(f"calibrated on {answers}{error}")


@contextmanager
def _gentle_interrupt(out: Console) -> Iterator[list[int]]:
    """Turn the first Ctrl-C, or SIGTERM of a scheduler, into a mark in the list; the second stops at once.

    One of several processes stops at once: the others would wait for it. Torchrun ends so those that are left
    of a job, often before they have missed the one that is gone.
    """
    marks: list[int] = []
    if many():
        signal.signal(signal.SIGTERM, _end)
        try:
            yield marks
        except LostError:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends by itself, and says why
            raise
        return

    def handle(number: int, frame: Any) -> None:
        marks.append(number)
        give_back()
        out.print("stopping after this epoch; Ctrl-C again stops at once, at the last checkpoint")

    def give_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield marks
    finally:
        give_back()


def _end(number: int, frame: Any) -> None:
    """Say what one that misses another says."""
    raise lost()


def evaluate(run: Path, split: str, graph: str | None, every: bool, as_json: bool) -> Report:
    """Rank the questions of a split and report MRR, Hits@K and MR, with the protocol."""
    loaded = on_device(load(run, workers(RunFolder.existing(run).config().train.shards)))
    if graph:
        loaded = loaded.along(open_dataset(graph))
    whole = loaded.dataset[split]  # which refuses what is no split
    triples = whole if every else ranked_triples(loaded.scorer, loaded.dataset, cast(Split, split))
    return _report(loaded, cast(Split, split), triples, every, as_json)


def _report(loaded: Run, split: Split, triples: Triples, every: bool, as_json: bool) -> Report:
    """Rank some triples of a split with a display, show the report and keep it."""
    with render.progress_display("ranking", 2 * len(triples), lambda ranks: len(ranks.above)) as watch:
        report = evaluate_model(loaded.scorer, loaded.dataset, split, watch, triples)
    if workers().is_main:
        try:  # who may not write into the folder has seen it, and it is kept if nobody reads it
            if as_json:
                print(report.to_json())
            else:
                render.console().print(render.report_view(report, every))
        finally:
            loaded.check_current()
            if not loaded.elsewhere:  # a report is of the run's own graph
                loaded.folder.save_report(report)
    return report


def mix_with_display(
    runs: Sequence[Run],
    out: Path,
    most_questions: int | None = None,
    origin: Mapping[str, Any] | None = None,
) -> tuple[Run, Fitted]:
    """Mix runs with a display."""
    triples = fitted_triples([run.scorer for run in runs], runs[0].dataset, most_questions)
    with render.progress_display("mixing", 2 * len(triples), len) as watch:
        return mix_runs(runs, out, watch, most_questions, origin)


def make_calibration(run: Run, measure: bool = True) -> Calibration:
    """Calibrate a run with a display, and measure that on test."""
    splits: tuple[Split, ...] = ("valid", "test") if measure else ("valid",)
    questions = sum(count_questions(run.scorer, run.dataset, split) for split in splits)
    questions += most_unanswered(run.scorer)
    with render.progress_display("calibrating", questions, lambda asked: len(asked.relations)) as watch:
        return calibrate_run(on_device(run), watch, measure)
