"""The program: its root, the options that commands share, and how it ends.

Nothing here or in the other files of this folder imports PyTorch: the grammar of the command line answers at
once, and a command imports what it does when it runs.
"""

import inspect
import os
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast, get_type_hints

import typer

from modulekge.cli import completion
from modulekge.cli.graph import GraphOptions, HeaderRow
from modulekge.errors import ModulekgeError, PointedError
from modulekge.version import __version__

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
        help="Columns of head, relation and tail, by name or number: subject,predicate,object or 1,3,2; "
        "of a wide table that of heads, with 'id,*' or '*' (the first): the others are relations; or some, "
        "with 'id,*kind,*tags[;]', where ';' stands between the tags of a cell."
    ),
]
Header = Annotated[
    HeaderRow,
    typer.Option(help="Whether the first row of CSV or TSV is a header; auto: found out, and said."),
]
Labels = Annotated[
    Path | None, typer.Option(help="File of 'name label': what to call entities and relations.")
]
Descriptions = Annotated[
    Path | None, typer.Option(help="File of 'name description': what the explorer says about entities.")
]
ModelName = Annotated[
    str | None,
    typer.Option(
        help="A model that 'modulekge models' lists; 'train' also takes Mixture.",
        autocompletion=completion.models,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as train.epochs=5; repeatable."),
]
OtherGraph = Annotated[
    str | None,
    typer.Option(
        "--graph",
        metavar="DATA",
        help="Ask a run of paths about another graph whose relations it knows; nothing is trained.",
        autocompletion=completion.datasets,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
All = Annotated[bool, typer.Option("--all", help="Show every relation.")]


def _graph(
    data: DataArgument,
    columns: Columns = None,
    header: Header = HeaderRow.auto,
    labels: Labels = None,
    descriptions: Descriptions = None,
    data_dir: DataDir = None,
) -> GraphOptions:
    return GraphOptions(data, columns, header, labels, descriptions, data_dir)


def command(
    name: str | None = None, *, epilog: str, of: typer.Typer = app
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare a command by its options; modulekge.commands does it, by the same names, once it is asked for.

    One that takes a ``graph`` has the argument and the options that name one.
    """

    def declare(options: Callable[..., None]) -> Callable[..., None]:
        @wraps(options)
        def run(**given: Any) -> None:
            home = import_module(options.__module__.replace(".cli.", ".commands."))
            getattr(home, options.__name__)(**given)

        takes_graph = options.__annotations__.get("graph") is GraphOptions
        of.command(name, epilog=epilog)(_with_graph(run) if takes_graph else run)
        return run

    return declare


def _with_graph(command: Callable[..., None]) -> Callable[..., None]:
    named = inspect.signature(_graph, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True).parameters
    data, *options = named.values()
    rest = [parameter for name, parameter in own.items() if name != "graph"]

    @wraps(command)
    def run(**given: Any) -> None:
        command(graph=_graph(**{name: given.pop(name) for name in named}), **given)

    joined = [data, *(p for p in rest if p.name != "as_json"), *options, *rest[-1:]]
    run.__signature__ = inspect.Signature(joined)  # type: ignore[attr-defined]
    run.__annotations__ = {
        **get_type_hints(_graph, include_extras=True),
        **get_type_hints(command, include_extras=True),
    }
    return run


def main() -> NoReturn:
    """Run a command; what a user can mend is one line on stderr and exit code 2."""
    if sys.stderr is None:  # it was closed, so nobody wants to see it
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name the terminal cannot show is no failure
    asked = sys.argv[1:]
    try:
        status = app(asked or ["--help"], prog_name="modulekge", standalone_mode=False)
        if status == 130:  # as Typer takes Ctrl-C
            raise KeyboardInterrupt
        if workers := _workers():
            workers.part()
        sys.exit(status)
    except PointedError as error:
        _fail(f"error: {error.finding}", 2, error.pointer)
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
        _fail(*_said_of(error))


def _said_of(error: Exception) -> tuple[str, int]:
    """Return what to say of an error that no part of the program foresaw, and the exit code."""
    from modulekge.machine import is_short

    if is_short(error):
        return f"error: {str(error) or 'no memory is left'}; lower model.k or train.batch", 2
    if "CUDA error" in str(error):
        said = str(error).splitlines()[0]
        return f"error: the GPU failed: {said}; what was kept stays, and 'modulekge resume' goes on", 2
    if os.environ.get("MODULEKGE_TRACEBACK"):
        raise error
    advice = "please report it, with what MODULEKGE_TRACEBACK=1 prints"
    return f"internal error: {type(error).__name__}: {error}; {advice}", 1


def _workers() -> Any:
    """The other processes of this job, if a command has met them."""
    return sys.modules.get("modulekge.workers")


def _fail(message: str, code: int, pointer: str = "") -> NoReturn:
    workers = _workers()
    if workers.speaks() if workers else os.environ.get("RANK", "0") == "0":
        line = " ".join(map(str.strip, message.splitlines()))
        print(*filter(None, (line, pointer)), sep="\n", file=sys.stderr, flush=True)
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
