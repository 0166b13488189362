"""Curves drawn with characters."""

from collections.abc import Sequence

import numpy as np
from rich.text import Text

from modulekge.run.comparison import Curve

_WIDTH, _HEIGHT = 60, 12  # characters: half a terminal's width
_MARKS = "●○◆◇■□▲△"
_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")


def mark(place: int) -> tuple[str, str]:
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
            cells[row][column] = mark(place)
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
