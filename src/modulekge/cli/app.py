"""The program: its root, the options that commands share, and how it ends."""

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, NoReturn, cast

import pyarrow as pa
import typer

from modulekge import render
from modulekge.cli import completion
from modulekge.data.dataset import Dataset
from modulekge.data.registry import open_dataset
from modulekge.errors import ModulekgeError
from modulekge.machine import is_short
from modulekge.version import __version__
from modulekge.workers import part, speaks

# click's, which newer versions of typer carry inside them
UsageError = cast("type[typer.BadParameter]", typer.BadParameter.__bases__[0])

app = typer.Typer(
    help="Module embeddings of knowledge graphs: train exactly, rank honestly, answer by name.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

RunArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="A run folder, as 'train' makes it.", autocompletion=completion.run_folders
    ),
]
DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A known name ('data list'), a folder of splits, or one file.",
        autocompletion=completion.datasets,
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with benchmark folders; also the variable MODULEKGE_DATA."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Columns of head, relation and tail, by name or number: subject,predicate,object or 1,3,2."
    ),
]
Labels = Annotated[
    Path | None, typer.Option(help="File of 'name label': what to call entities and relations.")
]
Descriptions = Annotated[
    Path | None, typer.Option(help="File of 'name description': what the explorer says about entities.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as train.epochs=5; repeatable."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
All = Annotated[bool, typer.Option("--all", help="Show every relation.")]


def open_data(
    data: str, data_dir: Path | None, columns: str | None, labels: Path | None, descriptions: Path | None
) -> Dataset:
    """Return the data set that DATA and its options name."""
    chosen = split_columns(columns)
    return open_dataset(data, data_dir, columns=chosen, labels=labels, descriptions=descriptions)


def split_columns(columns: str | None) -> list[str] | None:
    """Return the columns that were chosen, if any were."""
    return columns.split(",") if columns else None


def print_notes(dataset: Dataset) -> None:
    """Say what was left out of a graph."""
    for note in dataset.notes:
        render.console(stderr=True).print(note)


def print_untrained(dataset: Dataset, *names: str | None) -> None:
    """Say which of the entities that were asked about have learnt nothing."""
    for entity in dict.fromkeys(dataset.entities.find(name) for name in names if name is not None):
        if dataset.untrained(entity):
            finding = f"{dataset.entities.label(entity)!r} is in no training fact"
            render.console(stderr=True).print(
                f"{finding}: its row is as it was drawn, its answers are guesses"
            )


def main() -> NoReturn:
    """Run a command; what a user can mend is one line on stderr and exit code 2."""
    if sys.stderr is None:  # it was closed, so nobody wants to see it
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name the terminal cannot show is no failure
    pa.enable_signal_handlers(False)  # Arrow's own, while it reads a table, now and then loses a Ctrl-C
    asked = sys.argv[1:]
    try:
        status = app(asked or ["--help"], prog_name="modulekge", standalone_mode=False)
        if status == 130:  # as Typer takes Ctrl-C
            raise KeyboardInterrupt
        part()
        sys.exit(status)
    except ModulekgeError as error:
        _fail(f"error: {error}", 2)
    except UsageError as error:
        command = error.ctx.command_path if error.ctx else "modulekge"
        name = not getattr(error, "option_name", "--").startswith("--")  # -5, say
        advice = f"see '{command} --help'{', and write -- before names that start with -' if name else ''}"
        _fail(f"error: {error.format_message().rstrip('.')}; {advice}", 2)
    except (typer.Abort, KeyboardInterrupt):
        _fail("interrupted", 130)
    except BrokenPipeError:
        sys.stdout = None  # nobody reads it any more
        sys.exit(1)
    except OSError as error:
        place = error.filename or "input or output"
        _fail(f"error: {place}: {error.strerror or error}; check its permissions and the free space", 2)
    except Exception as error:
        if is_short(error):
            _fail(f"error: {str(error) or 'no memory is left'}; lower model.k or train.batch", 2)
        if "CUDA error" in str(error):
            said = str(error).splitlines()[0]
            _fail(f"error: the GPU failed: {said}; what was kept stays, and 'modulekge resume' goes on", 2)
        if os.environ.get("MODULEKGE_TRACEBACK"):
            raise
        advice = "please report it, with what MODULEKGE_TRACEBACK=1 prints"
        _fail(f"internal error: {type(error).__name__}: {error}; {advice}", 1)


def _fail(message: str, code: int) -> NoReturn:
    if speaks():
        print(" ".join(map(str.strip, message.splitlines())), file=sys.stderr, flush=True)
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
