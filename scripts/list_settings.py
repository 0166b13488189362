"""Write docs/settings.md, every setting with its values, default and meaning, from src/modulekge/config.py.

python scripts/list_settings.py docs/settings.md

A meaning is the comment beside a field; a section has the docstring of its class.
"""

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from modulekge import config

SOURCE = Path(config.__file__).read_text("utf-8")


def comments(kind: type) -> dict[str, str]:
    """Return the comment of each field of a class: beside it, in the lines that it takes."""
    (node,) = (n for n in ast.parse(SOURCE).body if isinstance(n, ast.ClassDef) and n.name == kind.__name__)
    lines = SOURCE.splitlines()
    return {
        field.target.id: " ".join(
            found[1]
            for line in lines[field.lineno - 1 : field.end_lineno]
            if (found := re.search(r"  # (.*)", line))
        )
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }


def values(hint: Any) -> str:
    """Return what a setting may be: one of some words, or a number from one to another."""
    if get_origin(hint) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(hint))
    if bounds := getattr(hint, "__metadata__", ()):
        whole = get_args(hint)[0] is int
        least, most = (f"{bound:,}" if whole else f"{bound:g}" for bound in bounds)
        return f"{'whole, ' if whole else ''}{least} to {most}"
    return {bool: "`true`, `false`", str: "text"}.get(hint, "numbers")


def rows(section: str, kind: type) -> Iterator[str]:
    """Yield a row for each setting of a section."""
    told, hints = comments(kind), get_type_hints(kind, include_extras=True)
    for name, meaning in told.items():
        value = getattr(kind(), name)
        default = "" if value in ("", ()) and value is not False else str(value)
        default = default.lower() if isinstance(value, bool) else default
        row = f"| `{section}.{name}` | {values(hints[name])} | {default} | {meaning} |"
        yield row.replace("|x|", "&#124;x&#124;")


def document() -> str:
    """The whole page."""
    kinds = get_type_hints(config.Config)
    parts = [
        "# Settings\n\nEvery setting, for `--set KEY=VALUE`, a recipe, or `settings=` in Python. Defaults "
        "are those without a recipe and without [rules](training.md#settings-by-rule)."
    ]
    for section, kind in kinds.items():
        if kind is not str:
            said = (kind.__doc__ or "").split("\n\n")[0].strip()
            table = ["| setting | values | default | meaning |", "|---|---|---|---|", *rows(section, kind)]
            parts.append(f"## {section}\n\n{said}\n\n" + "\n".join(table))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.parse_args().out.write_text(document(), encoding="utf-8")
