"""The command line: parse, call one function, print."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from modulekge import show
from modulekge.algebra.groups import UNIT_CHARTS
from modulekge.config import Config, parse_setting, write_config
from modulekge.data.dataset import Split
from modulekge.data.registry import benchmarks, local_folder, open_dataset
from modulekge.data.survey import survey
from modulekge.errors import ConfigError, ModulekgeError
from modulekge.evaluation.report import evaluate as evaluate_model
from modulekge.models.spec import chart as chart_named
from modulekge.models.table import ABLATIONS, COMPARED, READINGS, TABLE_1
from modulekge.run.folder import RunFolder
from modulekge.run.train import continue_run, default_folder, load, resolve, stalled
from modulekge.serving.predictor import predict as predict_by_name
from modulekge.training.fit import EpochRecord
from modulekge.training.optimize import pick_device
from modulekge.version import __version__

app = typer.Typer(
    help="Module embeddings of knowledge graphs: train exactly, rank honestly, answer by name.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(help="Look at data sets.", no_args_is_help=True)
app.add_typer(data_app, name="data")

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, as 'train' makes it.")]
DataArgument = Annotated[
    str, typer.Argument(metavar="DATA", help="A known name ('data list'), a folder of splits, or one file.")
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with benchmark folders; also the variable MODULEKGE_DATA."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as train.epochs=5; repeatable."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
All = Annotated[bool, typer.Option("--all", help="Show every relation.")]


def main() -> NoReturn:
    """Run a command; what a user can mend is one line on stderr and exit code 2."""
    try:
        app(prog_name="modulekge")
    except ModulekgeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        if os.environ.get("MODULEKGE_TRACEBACK"):
            raise
        finding = " ".join(f"{type(error).__name__}: {error}".split())
        advice = "please report it, with what MODULEKGE_TRACEBACK=1 prints"
        print(f"internal error: {finding}; {advice}", file=sys.stderr)
        sys.exit(1)
    sys.exit(0)


def _version(wanted: bool | None) -> None:
    if wanted:
        print(f"modulekge {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = None,
) -> None:
    pass


@app.command(epilog="Example: modulekge models --chart exponential")
def models(
    chart: Annotated[
        str, typer.Option(help=f"Chart of unit elements: {', '.join(UNIT_CHARTS)}.")
    ] = "normalised",
    as_json: Json = False,
) -> None:
    """Print Table 1 of the paper from the rows, with ablations and readings.

    Columns entity and relation count parameters (the dimension of the groups), stored the numbers kept
    under the chart (entity / relation), query the length of the vector that meets the entity table;
    k is the number of blocks.
    """
    groups = {
        "Table 1": TABLE_1,
        "Compared with": COMPARED,
        "Ablations": ABLATIONS,
        "Readings of ModulE-HH": READINGS,
    }
    if as_json:
        rows = [{"name": s.name, **s.words(), "query": s.query_size} for g in groups.values() for s in g]
        print(json.dumps(rows))
        return
    out = show.console()
    for title, specs in groups.items():
        out.print(f"[bold]{title}[/bold]")
        out.print(show.models_table(specs, chart_named(chart)))
        out.print()


@data_app.command("list", epilog="Example: modulekge data list --data-dir ~/graphs")
def data_list(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the data sets known by name, and where each would be read from."""
    places = {name: str(local_folder(b, data_dir) or "download") for name, b in benchmarks().items()}
    if as_json:
        print(json.dumps([{**asdict(b), "where": places[name]} for name, b in benchmarks().items()]))
        return
    show.console().print(show.datasets_table(benchmarks().values(), places))


@data_app.command("info", epilog="Example: modulekge data info world --all")
def data_info(
    data: DataArgument, data_dir: DataDir = None, every: All = False, as_json: Json = False
) -> None:
    """Count a data set: sizes, unseen entities, leaks, cardinality of each relation."""
    found = survey(open_dataset(data, data_dir))
    if as_json:
        print(json.dumps(asdict(found), ensure_ascii=False))
    else:
        show.console().print(show.survey_view(found, every))


@app.command(epilog="Example: modulekge train WN18RR --model ModulE-HH --set train.epochs=40 --out runs/wn")
def train(
    data: DataArgument,
    model: Annotated[str | None, typer.Option(help="A model by name; 'modulekge models' lists them.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder to make; default: a dated one in runs/.")
    ] = None,
    recipe: Annotated[Path | None, typer.Option(help="TOML file of settings.")] = None,
    settings: Settings = None,
    data_dir: DataDir = None,
    dry_run: Annotated[bool, typer.Option(help="Print the settings and stop.")] = False,
    as_json: Json = False,
) -> None:
    """Train a model on a graph, keep the run, and report on its test split.

    Without --recipe, the recipe that belongs to this data set and model is used, if there is one.
    Ctrl-C ends training after the epoch under way; 'modulekge resume' goes on.
    """
    dataset = open_dataset(data, data_dir)
    config = resolve(dataset, model, map(parse_setting, settings or ()), recipe)
    pick_device(config.train.device)
    if dry_run:
        print(write_config(config), end="")
        return
    folder = RunFolder.create(out or default_folder(config), config, dataset)
    _train(folder, config, as_json)


@app.command(epilog="Example: modulekge resume runs/wn --set train.epochs=100")
def resume(run: RunArgument, settings: Settings = None, as_json: Json = False) -> None:
    """Go on with a run that was interrupted, or that should train for longer."""
    folder = RunFolder.existing(run)
    if settings:
        folder.change([parse_setting(text) for text in settings])
    _train(folder, folder.config(), as_json)


def _train(folder: RunFolder, config: Config, as_json: bool) -> None:
    """Train with a display, then report on test with the best weights."""
    err = show.console(stderr=True)
    records, patience = folder.records(), config.train.patience
    last = max((r.epoch for r in records), default=0)
    if last >= config.train.epochs:
        raise ConfigError(
            f"{folder.path}: has had its {last} epochs; give it more with --set train.epochs={2 * last}"
        )
    if stalled(records, patience):
        raise ConfigError(
            f"{folder.path}: stopped at epoch {last}, no better for {patience} validations; "
            f"give it more with --set train.patience={2 * patience}"
        )
    err.print(
        f"{config.model.name} (k = {config.model.k}) on {config.data}, "
        f"{pick_device(config.train.device)}, {folder.path}"
    )
    events = continue_run(folder)
    with (
        show.TrainingDisplay(config.train.epochs, last + 1) as display,
        _gentle_interrupt(err) as interrupted,
    ):
        for event in events:
            display.show(event)
            if isinstance(event, EpochRecord):
                last = event.epoch
                if as_json:
                    print(json.dumps(asdict(event)), flush=True)
                if interrupted:
                    events.close()  # type: ignore[attr-defined]
                    break
    if interrupted and last < config.train.epochs:
        err.print(f"stopped after epoch {last}; 'modulekge resume {folder.path}' goes on")
        return
    _evaluate(folder.path, "test", every=False, as_json=as_json)
    err.print(f"kept in {folder.path}; ask it: modulekge predict {folder.path} --head ... --relation ...")


@contextmanager
def _gentle_interrupt(out: Console) -> Iterator[list[int]]:
    """Turn the first Ctrl-C into a mark in the list; the second one interrupts at once."""
    marks: list[int] = []

    def handle(number: int, frame: Any) -> None:
        marks.append(number)
        signal.signal(signal.SIGINT, before)
        out.print("stopping after this epoch; Ctrl-C again stops at once, at the last checkpoint")

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield marks
    finally:
        signal.signal(signal.SIGINT, before)


@app.command(epilog="Example: modulekge evaluate runs/wn --split valid --json")
def evaluate(
    run: RunArgument,
    split: Annotated[str, typer.Option(help="train, valid or test.")] = "test",
    every: All = False,
    as_json: Json = False,
) -> None:
    """Rank every question of a split and report MRR, Hits@K and MR, with the protocol."""
    _evaluate(run, split, every, as_json)


def _evaluate(path: Path, split: str, every: bool, as_json: bool) -> None:
    run = load(path)
    checked: dict[str, Split] = {"train": "train", "valid": "valid", "test": "test"}
    if split not in checked:
        raise ConfigError(f"--split {split}: expected train, valid or test")
    name = checked[split]
    model = run.model.to(pick_device(run.config.train.device))
    with show.ranking_display(2 * len(run.dataset[name])) as watch:
        report = evaluate_model(model, run.dataset, name, watch)
    run.folder.save_report(report)
    if as_json:
        print(report.to_json())
    else:
        show.console().print(show.report_view(report, every))


@app.command(epilog="Example: modulekge predict runs/demo --head France --relation borders -k 5")
def predict(
    run: RunArgument,
    relation: Annotated[str, typer.Option(help="A relation, by name or label.")],
    head: Annotated[str | None, typer.Option(help="An entity, by name or label: asks for tails.")] = None,
    tail: Annotated[str | None, typer.Option(help="An entity, by name or label: asks for heads.")] = None,
    k: Annotated[int, typer.Option("-k", help="How many answers.")] = 10,
    as_json: Json = False,
) -> None:
    """Answer (head, relation, ?) or (?, relation, tail) by name; known facts are marked."""
    answers = predict_by_name(load(run), head=head, relation=relation, tail=tail, k=k)
    if as_json:
        rows = [{**asdict(answer), "known": answer.known} for answer in answers]
        print(json.dumps(rows, ensure_ascii=False))
    else:
        question = f"{head or '?'}  {relation}  {tail or '?'}"
        show.console().print(show.answers_view(question, answers))
