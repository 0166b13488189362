"""What was found of an installation."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from modulekge.installation import Check, Level
from modulekge.render.terminal import new_table

_STYLES: dict[Level, str] = {"ok": "", "note": "yellow", "problem": "bold red"}


def checks_view(checks: Sequence[Check]) -> RenderableType:
    """A line for each check, with what to do, and at the end whether the program can be used."""
    table = new_table("", "")
    table.show_header = False
    for check in checks:
        advice = f"; {check.advice}" if check.advice else ""
        table.add_row(Text(check.name, _STYLES[check.level]), Text.assemble(check.found, (advice, "dim")))
    ready = [] if any(check.level == "problem" for check in checks) else [Text("ready", "bold green")]
    return Group(table, *ready)
