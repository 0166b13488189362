"""Tables of runs."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from shlex import quote

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from modulekge.render.plot import curves_plot, mark
from modulekge.render.terminal import new_table
from modulekge.run.comparison import Comparison
from modulekge.run.drift import Drift


def kept_in(path: Path) -> str:
    """Say where a run is, and how to ask it."""
    return f"kept in {path}; ask it: modulekge predict {quote(str(path))} --head ... --relation ..."


def addition_view(counts: Mapping[str, int], drift: Drift | None) -> RenderableType:
    """What was added, and how far old answers moved if they were trained on."""
    table = new_table("added", " ")
    for name, count in counts.items():
        if count:
            table.add_row(_ADDED[name], f"{count:,}")
    if drift is None:
        return table
    moved = f"{drift.mrr_before:.4f} before, {drift.mrr_after:.4f} now"
    best = f"the ten best known entities are others in {drift.changed:.1%} of the questions"
    return Group(table, "", f"valid MRR {moved}; {best}")


_ADDED = {
    "facts": "facts",
    "entities": "  new entities",
    "relations": "  new relations",
    "between_known": "  facts between known entities",
    "known_before": "left out: known before",
    "repeated": "left out: given twice",
}


def comparison_view(comparison: Comparison) -> RenderableType:
    """The settings that differ, the metrics, and the curves with the mark of each run."""
    head, *rows = comparison.rows()
    differing = len(comparison.settings)
    parts: list[RenderableType] = []
    if differing:
        parts += [_side_by_side("settings that differ", head, rows[:differing]), ""]
    parts += [_side_by_side("metrics", head, rows[differing:])]
    if any(comparison.curves):
        parts += ["", curves_plot(comparison.curves), *_legend(comparison.runs)]
    return Group(*parts, *(Text(f"caution: {text}", "yellow") for text in comparison.cautions))


def _side_by_side(title: str, head: Iterable[str], rows: Iterable[tuple[str, ...]]) -> Table:
    table = new_table(title, *(f" {name}" for name in list(head)[1:]))
    for row in rows:
        table.add_row(*row)
    return table


def _legend(names: Iterable[str]) -> Iterator[Text]:
    for place, name in enumerate(names):
        character, colour = mark(place)
        yield Text.assemble(f"{'':>11}", (character, colour), f" {name}")
