"""The command line: parse, call one function, print."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast

import typer
from rich.console import Console

from modulekge import show
from modulekge.algebra.groups import UNIT_CHARTS
from modulekge.config import parse_setting, write_config
from modulekge.data.dataset import Split
from modulekge.data.registry import benchmarks, local_folder, open_dataset
from modulekge.data.survey import survey
from modulekge.errors import ModulekgeError
from modulekge.evaluation.report import evaluate as evaluate_model
from modulekge.models.references import reference
from modulekge.models.spec import chart as chart_named
from modulekge.models.table import ABLATIONS, COMPARED, READINGS, TABLE_1
from modulekge.run.folder import RunFolder
from modulekge.run.train import continue_run, default_folder, load, resolve
from modulekge.serving.predictor import predict as predict_by_name
from modulekge.studies.cell import cell_config, read_result, run_cell
from modulekge.studies.render import write_study
from modulekge.studies.study import STUDIES, study_named
from modulekge.training.fit import EpochRecord
from modulekge.training.optimize import pick_device
from modulekge.version import __version__

# click's, which newer versions of typer carry inside them
UsageError = cast("type[Exception]", typer.BadParameter.__bases__[0])

app = typer.Typer(
    help="Module embeddings of knowledge graphs: train exactly, rank honestly, answer by name.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(help="Look at data sets: 'data list', 'data info DATA'.")
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name the terminal cannot show is no failure
    asked = sys.argv[1:]
    try:
        sys.exit(app(asked or ["--help"], prog_name="modulekge", standalone_mode=False))
    except ModulekgeError as error:
        _fail(f"error: {error}", 2)
    except UsageError as error:
        context = getattr(error, "ctx", None)
        _fail(f"error: {error}; see '{context.command_path if context else 'modulekge'} --help'", 2)
    except (typer.Abort, KeyboardInterrupt):
        _fail("interrupted", 130)
    except BrokenPipeError:
        sys.stdout = None  # nobody reads it any more
        sys.exit(1)
    except (OSError, MemoryError) as error:
        _fail(f"error: {error}; check the path, its permissions and the free space and memory", 2)
    except Exception as error:
        if "memory" in str(error):  # torch has no class for it on the CPU
            _fail(f"error: {error}; lower model.k or train.batch", 2)
        if os.environ.get("MODULEKGE_TRACEBACK"):
            raise
        advice = "please report it, with what MODULEKGE_TRACEBACK=1 prints"
        _fail(f"internal error: {type(error).__name__}: {error}; {advice}", 1)


def _fail(message: str, code: int) -> NoReturn:
    print(" ".join(message.split()), file=sys.stderr)
    sys.exit(code)


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
    cite: Annotated[bool, typer.Option(help="Print the reference of each model instead.")] = False,
    as_json: Json = False,
) -> None:
    """Print Table 1 of the paper from the rows, with ablations and readings.

    Columns entity and relation count parameters (the dimension of the groups), stored the numbers kept
    under the chart (entity / relation), query the length of the vector that meets the entity table;
    k is the number of blocks.
    """
    chosen = chart_named(chart)
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
    if cite:
        for spec in chain(*groups.values()):
            out.print(f"{spec.name}: {reference(spec)}")
        return
    for title, specs in groups.items():
        out.print(title, style="bold")
        out.print(show.models_table(specs, chosen))
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
    _train(folder, [], as_json)


@app.command(epilog="Example: modulekge resume runs/wn --set train.epochs=100")
def resume(run: RunArgument, settings: Settings = None, as_json: Json = False) -> None:
    """Go on with a run that was interrupted, or that should train for longer."""
    _train(RunFolder.existing(run), [parse_setting(text) for text in settings or ()], as_json)


def _train(folder: RunFolder, settings: list[dict[str, Any]], as_json: bool) -> None:
    """Train with a display, then report on test with the best weights."""
    events = continue_run(folder, settings)
    first = next(events)  # what is wrong shows here, before anything else does
    config, err = folder.config(), show.console(stderr=True)
    device = pick_device(config.train.device)
    err.print(f"{config.model.name} (k = {config.model.k}) on {config.data}, {device}, {folder.path}")
    display = show.TrainingDisplay(config.train.epochs, first.epoch)
    stopped = 0
    with display, _gentle_interrupt(display.progress.console) as interrupted:
        for event in chain([first], events):
            display.show(event)
            if isinstance(event, EpochRecord):
                if as_json:
                    print(json.dumps(asdict(event)), flush=True)
                if interrupted and event.epoch < config.train.epochs:
                    stopped = event.epoch
                    events.close()
                    break
    if stopped:
        err.print(f"stopped after epoch {stopped}; 'modulekge resume {folder.path}' goes on")
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
    questions = 2 * len(run.dataset[split])  # which refuses what is no split
    with show.ranking_display(questions) as watch:
        model = run.model.to(pick_device("auto"))
        report = evaluate_model(model, run.dataset, cast(Split, split), watch)
    if as_json:
        print(report.to_json())
    else:
        show.console().print(show.report_view(report, every))
    run.folder.save_report(report)


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


@app.command(epilog="Example: modulekge reproduce results --dataset WN18RR --models ModulE-HH --seeds 3")
def reproduce(
    study: Annotated[str, typer.Argument(metavar="STUDY", help=f"One of {', '.join(STUDIES)}.")],
    dataset: Annotated[list[str] | None, typer.Option(help="Only this data set; repeatable.")] = None,
    models: Annotated[list[str] | None, typer.Option(help="Only this model; repeatable.")] = None,
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
    missing = [cell for group in cells for cell in group if not read_result(cell, results)]
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
