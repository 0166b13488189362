"""Runs side by side: the settings that differ, the metrics, the curves of valid MRR."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum
from pathlib import Path
from statistics import fmean
from typing import Any

from modulekge.config import dotted
from modulekge.evaluation.report import Report
from modulekge.evaluation.seeds import difference_over_seeds, spread_over_seeds
from modulekge.run.files import as_text, read_json, write_file
from modulekge.run.listing import best_record, valid_figures
from modulekge.run.plotting import latex_table, markdown_table, new_figure, write_figure
from modulekge.run.rows import check_target, comma_separated
from modulekge.run.run_files import RunFiles
from modulekge.training.records import EpochRecord, curve

Number = int | float
Curve = tuple[tuple[int, float], ...]  # epoch, valid MRR


@dataclass(frozen=True)
class Comparison:
    """Runs by name, and in the same order what each has of what is compared."""

    runs: tuple[str, ...]
    settings: dict[str, tuple[Any, ...]]  # those that differ, by dotted key
    metrics: dict[str, tuple[Number | None, ...]]
    curves: tuple[Curve, ...]
    cautions: tuple[str, ...]  # why figures may not be comparable
    groups: tuple["Seeds", ...] = ()  # of runs that differ in the seed alone
    differences: tuple["Difference", ...] = ()  # of each two such groups

    def rows(self) -> list[tuple[str, ...]]:
        """Return headings, settings and metrics as text, a column per run."""
        settings = [(key, *map(str, values)) for key, values in self.settings.items()]
        metrics = [(name, *map(_figure, values)) for name, values in self.metrics.items()]
        return [("", *self.runs), *settings, *metrics]

    def seed_rows(self) -> list[tuple[str, ...]]:
        """Return headings, groups over seeds and their differences as text; nothing without groups."""
        groups = [
            (g.name, str(g.seeds), g.figure, f"{g.mean:.4f}", f"{g.low:.4f} .. {g.high:.4f}")
            for g in self.groups
        ]
        apart = [
            (f"{d.first} - {d.second}", "", d.figure, f"{d.mean:+.4f}", f"{d.low:+.4f} .. {d.high:+.4f}")
            for d in self.differences
        ]
        return [("over seeds", "seeds", "figure", "mean", "95 % interval"), *groups, *apart] if groups else []


@dataclass(frozen=True)
class Seeds:
    """Runs that differ in the seed alone: the mean of a figure that all of them have, by Student's t."""

    name: str
    seeds: int
    figure: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """By how much one group is ahead of another in the mean, with its 95 % interval by Welch's t."""

    first: str
    second: str
    figure: str
    mean: float
    low: float
    high: float


def compare(runs: Sequence[Path]) -> Comparison:
    """Read runs and lay them side by side; no data set is needed and no weights are loaded."""
    folders = [RunFiles.existing(run) for run in runs]
    records = [folder.records() for folder in folders]
    reports = [folder.report() for folder in folders]
    settings = [dotted(folder.config()) for folder in folders]
    metrics = [_metrics(*each) for each in zip(folders, records, reports, strict=True)]
    values = {key: tuple(each[key] for each in settings) for key in settings[0]}
    names = dict.fromkeys(name for each in metrics for name in each)
    groups = _groups(settings, metrics)
    pairs = [(a, b) for a, b in combinations(groups, 2) if a[1] == b[1]]
    return Comparison(
        runs=tuple(as_text(str(run)) for run in runs),
        settings={key: each for key, each in values.items() if len(set(each)) > 1},
        metrics={name: tuple(each.get(name) for each in metrics) for name in names},
        curves=tuple(map(curve, records)),
        cautions=tuple(_cautions(folders, reports, settings)),
        groups=tuple(
            Seeds(name, len(values), figure, fmean(values), *spread_over_seeds(values))
            for name, figure, values in groups
        ),
        differences=tuple(
            Difference(a, b, figure, fmean(x) - fmean(y), *difference_over_seeds(x, y))
            for (a, figure, x), (b, _, y) in pairs
        ),
    )


def _groups(
    settings: Sequence[dict[str, Any]], metrics: Sequence[dict[str, Number]]
) -> list[tuple[str, str, list[float]]]:
    """Return groups of several seeds of the same settings: a name, the figure, and what each seed has."""
    found: dict[str, list[int]] = {}
    for place, each in enumerate(settings):
        rest = {key: value for key, value in each.items() if key != "train.seed"}
        found.setdefault(repr(rest), []).append(place)
    several = [places for places in found.values() if len({settings[p]["train.seed"] for p in places}) > 1]
    models = [settings[places[0]]["model.name"] for places in several]
    groups = []
    for number, (model, places) in enumerate(zip(models, several, strict=True), start=1):
        figure = next((f for f in ("test mrr", "valid mrr") if all(f in metrics[p] for p in places)), None)
        if figure:
            name = model if models.count(model) == 1 else f"{model} ({number})"
            groups.append((name, figure, [float(metrics[p][figure]) for p in places]))
    return groups


def _metrics(folder: RunFiles, records: list[EpochRecord], report: Report | None) -> dict[str, Number]:
    best, valid = best_record(records), valid_figures(folder, records)
    found: dict[str, Number] = {"epochs": len(records), "seconds": fsum(r.seconds for r in records)}
    if records:
        found["last loss"] = records[-1].loss
    if best:
        found["best epoch"] = best.epoch
    if valid:
        found |= {f"valid {name}": value for name, value in valid.items()}
    if report:
        low, high = report.intervals["mrr"]
        found |= {"test mrr": report.both["mrr"], "test mrr, 95 % from": low, "test mrr, 95 % to": high}
        found |= {f"test {name}": value for name, value in report.both.items()}
    return found


def _cautions(
    folders: Sequence[RunFiles], reports: Sequence[Report | None], settings: Sequence[dict[str, Any]]
) -> Iterator[str]:
    if len({_graph(folder) for folder in folders}) > 1:
        yield "the runs were trained on different graphs, so their figures do not compare"
    for model in sorted({each["model.name"] for each in settings}):
        same = [each for each in settings if each["model.name"] == model]
        differ = sorted(key for key in same[0] if len({str(each[key]) for each in same}) > 1)
        if "train.seed" in differ and len(differ) > 1:
            told = ", ".join(differ[:3]) + ", ..." * (len(differ) > 3)
            yield (
                f"runs of {model} differ in more than the seed ({told}), so they are not taken together; "
                "rules time the machine: --recipe RUN/config.toml keeps settings"
            )
    if len({report.protocol for report in reports if report}) > 1:
        yield "the reports were made by different protocols, so their test figures do not compare"


def _graph(folder: RunFiles) -> str | None:
    """The fingerprint of the graph a run was trained on, be its facts in the folder or not."""
    fields = read_json(folder.path / "run.json")
    return fields.get("graph") or fields.get("fingerprint")


def _figure(value: Number | None) -> str:
    """A count or a measure as text, four digits behind the point where they say something."""
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 10 else f"{value:,.1f}"
    return "" if value is None else str(value)


def write_comparison(comparison: Comparison, path: Path) -> None:
    """Write the table (.md, .tex, .csv) or the curves (.svg, .png), as the ending of the file says."""
    check_target(path, (".md", ".tex", ".csv", ".svg", ".png"))
    tables = [rows for rows in (comparison.seed_rows(), comparison.rows()) if rows]
    if path.suffix == ".md":
        write_file(path, "\n".join(map(markdown_table, tables)))
    elif path.suffix == ".tex":
        write_file(path, "\n".join(map(latex_table, tables)))
    elif path.suffix == ".csv":
        values = comparison.settings | comparison.metrics
        rows = ((name, *each) for name, each in values.items())
        write_file(path, comma_separated([("", *comparison.runs), *rows]))
    else:
        write_figure(_draw(comparison), path)


def _draw(comparison: Comparison) -> Any:
    figure = new_figure()
    axes = figure.subplots()
    axes.set(xlabel="epoch", ylabel="valid MRR")
    for name, points in zip(comparison.runs, comparison.curves, strict=True):
        if points:
            axes.plot(*zip(*points, strict=True), marker=".", label=name)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")
    return figure
