"""A study as Markdown, CSV and pictures."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from modulekge.run.files import write_file
from modulekge.run.plotting import markdown_table, missing_for_pictures, new_figure, write_figure
from modulekge.run.rows import comma_separated
from modulekge.studies.cell import Cell, Result
from modulekge.studies.study import Line, Study, curves

_COLUMNS = (
    "data",
    "model",
    "what",
    "paper",
    "ours",
    "95 % interval",
    "over",
    "difference",
    "verdict",
    "best epoch; seconds",
    "made",
    "command",
)

_LINE_INCHES = 0.2  # of height for a figure and its name
_MOST_INCHES = 400.0  # a higher picture would have more dots than can be counted
_VERDICTS = {
    "PASS": ("o", "#2a7f62", "ours, PASS"),
    "MISS": ("X", "#c8553d", "ours, MISS"),
    "": ("o", "#555555", "ours"),
}


def line_cells(line: Line) -> tuple[str, ...]:
    """One line as text, in the order of the columns."""

    def figure(value: float | None, sign: str = "") -> str:
        return "" if value is None else f"{value:{sign}.4f}"

    apart = line.mean - line.paper if line.mean is not None and line.paper is not None else None
    interval = " .. ".join(map(figure, line.interval)) if line.interval else ""
    return (
        line.dataset, line.model, line.what, figure(line.paper), figure(line.mean), interval, line.over,
        figure(apart, "+"), line.verdict, line.trained, line.made, line.command,
    )  # fmt: skip


def markdown(study: Study, lines: Iterable[Line]) -> str:
    """The table, with what its verdicts mean; what nobody has a figure of is counted below it."""
    lines = list(lines)
    shown = [line for line in lines if line.ours or line.paper is not None]
    missing = [line for line in lines if line not in shown]
    table = markdown_table([_COLUMNS, *((*c[:-1], f"`{c[-1]}`") for c in map(line_cells, shown))])
    note = (
        "Filtered ranks of test, both directions, BOTTOM ties, the weights that were best on valid. PASS: "
        "the mean over seeds reaches the paper's figure to its last digit. Intervals are over seeds "
        f"(Student's t){'' if study.relations else ', or over triples (bootstrap) where there is one seed'}."
    )
    left = {line.command: line.dataset for line in missing}
    counts = ", ".join(f"{count} on {data}" for data, count in Counter(left.values()).items())
    more = f"\nNot run yet: {counts}. `modulekge reproduce {study.name}` runs them.\n" if left else ""
    return f"# {study.title}\n\n{note}\n\n{table}{more}"


def draw(study: Study, lines: list[Line], found: dict[Cell, Result]) -> Any:
    """The picture that suits the study: curves over epochs, lines over size, or points with intervals."""
    figure = new_figure()
    axes = figure.subplots()
    figure.suptitle(study.title, fontsize="medium")
    if study.name == "convergence":
        _draw_curves(axes, found)
    elif study.name == "size":
        _draw_sizes(axes, found)
    else:
        _draw_points(axes, [line for line in lines if line.what == "mrr" or study.relations])
        figure.legend(fontsize="small", loc="outside lower right", ncols=4)
        return figure
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")
    return figure


def _draw_curves(axes: Any, found: dict[Cell, Result]) -> None:
    """A line per training in the colour of its data set and model, with a dot where it stopped rising."""
    colours: dict[str, str] = {}
    for cell, result in found.items():
        label = f"{cell.dataset} {cell.model}"
        new = label not in colours
        colour = colours.setdefault(label, f"C{len(colours)}")
        best = [i for i, (epoch, _) in enumerate(result.curve) if epoch == result.best_epoch < result.epochs]
        axes.plot(
            *zip(*result.curve, strict=True), color=colour, linewidth=1, marker="o", markevery=best,
            label=label if new else None,
        )  # fmt: skip
    axes.set(xlabel="epoch", ylabel="valid MRR")


def _draw_sizes(axes: Any, found: dict[Cell, Result]) -> None:
    """A line per data set and model, through the means over seeds."""
    points: dict[str, dict[int, list[float]]] = {}
    for cell, result in found.items():
        sizes = points.setdefault(f"{cell.dataset} {cell.model}", {})
        sizes.setdefault(result.entity_numbers, []).append(result.both["mrr"])
    for label, sizes in points.items():
        places = sorted(sizes)
        axes.plot(places, [fmean(sizes[place]) for place in places], marker="o", label=label)
    axes.set(xlabel="numbers stored for an entity", ylabel="test MRR", xscale="log")


def _draw_points(axes: Any, lines: list[Line]) -> None:
    """Our figures with their intervals, coloured by verdict, and a stroke where the paper has its own."""
    shown = list(enumerate(line for line in lines if line.ours))
    axes.figure.set_figheight(min(max(4.5, _LINE_INCHES * len(shown)), _MOST_INCHES))
    for verdict, (marker, colour, label) in _VERDICTS.items():
        some = [(i, line) for i, line in shown if line.verdict == verdict]
        if some:
            points = [line.mean for _, line in some], [i for i, _ in some]
            axes.plot(*points, marker, color=colour, label=label)
    for i, line in shown:
        if line.interval:
            axes.plot(line.interval, (i, i), color=_VERDICTS[line.verdict][1])
    paper = [(line.paper, i) for i, line in shown if line.paper is not None]
    if paper:
        axes.plot(*zip(*paper, strict=True), "k|", markersize=10, label="paper")
    names = [
        f"{line.dataset} {line.model}" + ("" if line.what == "mrr" else f" {line.what}") for _, line in shown
    ]
    axes.set_yticks(range(len(shown)), names, fontsize="small")
    axes.set_ylim(len(shown) - 0.5, -0.5)  # the first on top
    axes.grid(alpha=0.3)
    axes.set_xlabel("test MRR")


def write_study(study: Study, cells: list[list[Cell]], results: Path, out: Path) -> list[Path]:
    """Write tables, and where they can be drawn pictures, of what has been run; return their files."""
    lines, found = study.lines(cells, results), curves(cells, results)
    out.mkdir(parents=True, exist_ok=True)
    files = [out / f"{study.name}.{ending}" for ending in ("md", "csv", "svg", "png")]
    write_file(files[0], markdown(study, lines))
    write_file(files[1], comma_separated([_COLUMNS, *map(line_cells, lines)]))
    if missing_for_pictures():
        return files[:2]
    if not found:
        for path in files[2:]:  # a picture of what is no longer there
            path.unlink(missing_ok=True)
        return files[:2]
    figure = draw(study, lines, found)
    for path in files[2:]:
        write_figure(figure, path)
    return files
