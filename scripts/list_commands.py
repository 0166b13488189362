"""Write docs/commands.md, every command with its arguments, options and example, from the program itself.

python scripts/list_commands.py docs/commands.md
"""

import argparse
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from modulekge.cli import app


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command by its whole name, in the order of the help."""
    if hasattr(command, "commands"):
        for part in (part for part in command.commands.values() if not part.hidden):
            yield from commands(part, f"{name} {part.name}")
    else:
        yield name, command


def describe(name: str, command: Any) -> str:
    """One command as a section."""
    example = (command.epilog or "").removeprefix("Example: ")
    text = inspect.cleandoc(command.help or "").replace("\b", "")
    rows = [_row(part) for part in command.params if part.name != "help"]
    table = "\n".join(["| | |", "|---|---|", *rows])
    return f"## {name}\n\n{text}\n\n```sh\n{example}\n```\n\n{table}\n"


def _row(part: Any) -> str:
    said = part.help or ""
    if part.param_type_name == "argument":
        return f"| {part.metavar or part.name.upper()} | {said} |"
    switches = ", ".join(f"`{switch}`" for switch in part.opts)
    if part.show_default and part.default not in (None, False, ()):
        said += f" Default: {part.default}."
    return f"| {switches} | {said} |"


def document() -> str:
    """The whole page."""
    root = typer.main.get_command(app)
    sections = [describe(name, command) for name, command in commands(root, "modulekge")]
    head = "Every command with its arguments, options and an example, as `modulekge COMMAND --help` has them."
    return f"# Commands\n\n{head}\n\n" + "\n".join(sections)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.parse_args().out.write_text(document(), encoding="utf-8")
