"""Tables and pictures as files."""

import importlib.util
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from modulekge.errors import ModulekgeError
from modulekge.installation import to_install
from modulekge.run.files import write_file


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows, the first of them the headings, as a table of Markdown."""
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    lines.insert(1, " | ".join("---" for _ in rows[0]))
    return "".join(f"| {line} |\n" for line in lines)


def latex_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows, the first of them the headings, as a tabular with the rules of booktabs."""
    head, *body = (" & ".join(map(_escaped, row)) + r" \\" for row in rows)
    columns = "l" + "r" * (len(rows[0]) - 1)
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}", ""])


def _escaped(text: str) -> str:
    """Return text with the characters escaped that LaTeX reads as commands."""
    plain = text.replace("\\", r"\textbackslash ")
    for character in "&%$#_{}":
        plain = plain.replace(character, "\\" + character)
    return plain.replace("~", r"\textasciitilde ").replace("^", r"\textasciicircum ")


def missing_for_pictures() -> str:
    """Say what has to be installed to draw; empty where it is there."""
    found = importlib.util.find_spec("matplotlib")
    return "" if found else f"pictures need matplotlib: {to_install('figures')}"


def new_figure() -> Any:
    """Return an empty picture."""
    if missing := missing_for_pictures():
        raise ModulekgeError(missing)
    plots = importlib.import_module("matplotlib.figure")
    return plots.Figure(figsize=(8, 4.5), layout="constrained")


def write_figure(figure: Any, path: Path) -> None:
    """Write a picture, undated, in the format of its ending: drawn again it has the same bytes."""
    picture = io.BytesIO()
    undated = {"Date": None} if path.suffix == ".svg" else {}
    with importlib.import_module("matplotlib").rc_context({"svg.hashsalt": "modulekge"}):
        figure.savefig(picture, format=path.suffix[1:], dpi=150, metadata=undated)
    write_file(path, picture.getvalue())
