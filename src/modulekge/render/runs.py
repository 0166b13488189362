"""Tables of runs, and their curves drawn with characters."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from modulekge.render.terminal import format_number, new_table
from modulekge.run.comparison import Comparison, Curve
from modulekge.run.drift import Drift
from modulekge.run.portfolio import Portfolio
from modulekge.wording import duration

_WIDTH, _HEIGHT = 60, 12  # characters: half a terminal's width
_MARKS = "●○◆◇■□▲△"
_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")


def kept_in(path: Path) -> str:
    """Say where a run is, and how to ask it."""
    return f"kept in {path}; ask it: modulekge predict {quote(str(path))} --head ... --relation ..."


def portfolio_view(portfolio: Portfolio) -> RenderableType:
    """What is tried in a time, with how much of it; and what is not, with the reason."""
    table = new_table("model", "size", " at first", " if best", " planned")
    for trial in portfolio.trials:
        planned = duration(trial.planned.time()[0])
        further = "" if trial.whole == trial.first else duration(trial.whole)
        table.add_row(trial.model, trial.planned.config.size, duration(trial.first), further, planned)
    notes = [Text(f"{name} is left out: {why}", "dim") for name, why in portfolio.left_out]
    whole = Text(f"{duration(60 * portfolio.minutes)} in all: training, mixing, calibrating, ranking", "dim")
    return Group(table, *notes, whole)


def tried_view(mixed: Mapping[str, Any]) -> RenderableType:
    """What each model that was tried gave, and what they give together."""
    table = new_table("model", " trained", " epochs", " valid MRR")
    for each in mixed["tried"]:
        figures = duration(each["seconds"]), str(each["epochs"]), format_number(each["valid_mrr"])
        table.add_row(each["model"], *figures)
    alone, together = mixed["valid_mrr_alone"][0], mixed["valid_mrr"]
    on = f"on the {mixed['checked_on']:,} questions of valid that shares were not fitted on"
    said = f"together {format_number(together)}, the best alone {format_number(alone)}, {on}"
    verdict = "" if mixed["helps"] else "; so the best has all the weight"
    return Group(table, f"{said}{verdict}")


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
    if comparison.groups:
        parts += ["", _over_seeds(comparison)]
    if any(comparison.curves):
        parts += ["", curves_plot(comparison.curves), *_legend(comparison.runs)]
    return Group(*parts, *(Text(f"caution: {text}", "yellow") for text in comparison.cautions))


def _over_seeds(comparison: Comparison) -> RenderableType:
    """The means of groups that differ in the seed alone, and by how much each two of them differ."""
    head, *rows = comparison.seed_rows()
    return _side_by_side(head[0], head, rows)


def _side_by_side(title: str, head: Iterable[str], rows: Iterable[tuple[str, ...]]) -> Table:
    table = new_table(title, *(f" {name}" for name in list(head)[1:]))
    for row in rows:
        table.add_row(*row)
    return table


def _legend(names: Iterable[str]) -> Iterator[Text]:
    for place, name in enumerate(names):
        character, colour = _mark(place)
        yield Text.assemble(f"{'':>11}", (character, colour), f" {name}")


def _mark(place: int) -> tuple[str, str]:
    """The character and the colour of a curve; there is always a next one."""
    return _MARKS[place % len(_MARKS)], _COLOURS[place % len(_COLOURS)]


def curves_plot(curves: Sequence[Curve]) -> Text:
    """Draw curves of valid MRR over epochs; where two meet, the later one is seen."""
    epochs = [epoch for curve in curves for epoch, _ in curve]
    values = [value for curve in curves for _, value in curve]
    low, high = min(values), max(values)
    cells = [[(" ", "")] * _WIDTH for _ in range(_HEIGHT)]
    for place, curve in enumerate(curves):
        for column, value in _columns(curve, min(epochs), max(epochs)):
            row = round((high - value) / ((high - low) or 1) * (_HEIGHT - 1))
            cells[row][column] = _mark(place)
    labels = {0: f"{high:.4f}", _HEIGHT - 1: f"{low:.4f}"}
    text = Text("valid MRR\n", "dim")
    for row, line in enumerate(cells):
        text.append(f"{labels.get(row, ''):>9} │", "dim")
        for character, colour in line:
            text.append(character, colour)
        text.append("\n")
    text.append(f"{'':>9} └{'─' * _WIDTH}\n", "dim")
    first, last = f"epoch {min(epochs)}", str(max(epochs))
    text.append(f"{'':>11}{first}{last:>{_WIDTH - len(first)}}", "dim")
    return text


def _columns(curve: Curve, first: int, last: int) -> list[tuple[int, float]]:
    """Return (column, value) of every column that a curve passes through."""
    if not curve:
        return []
    epochs, values = zip(*curve, strict=True)
    places = np.rint((np.array(epochs) - first) / ((last - first) or 1) * (_WIDTH - 1))
    columns = np.arange(int(places[0]), int(places[-1]) + 1)
    return list(zip(columns.tolist(), np.interp(columns, places, values).tolist(), strict=True))
