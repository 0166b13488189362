"""Runs side by side: the settings that differ, the metrics, the curves of valid MRR."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import Any

from modulekge.config import dotted
from modulekge.evaluation.report import Report
from modulekge.run.files import as_text, read_json, write_file
from modulekge.run.listing import best_record, valid_figures
from modulekge.run.plotting import markdown_table, new_figure, write_figure
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

    def rows(self) -> list[tuple[str, ...]]:
        """Return headings, settings and metrics as text, a column per run."""
        settings = [(key, *map(str, values)) for key, values in self.settings.items()]
        metrics = [(name, *map(_figure, values)) for name, values in self.metrics.items()]
        return [("", *self.runs), *settings, *metrics]


def compare(runs: Sequence[Path]) -> Comparison:
    """Read runs and lay them side by side; no data set is needed and no weights are loaded."""
    folders = [RunFiles.existing(run) for run in runs]
    records = [folder.records() for folder in folders]
    reports = [folder.report() for folder in folders]
    settings = [dotted(folder.config()) for folder in folders]
    metrics = [_metrics(*each) for each in zip(folders, records, reports, strict=True)]
    values = {key: tuple(each[key] for each in settings) for key in settings[0]}
    names = dict.fromkeys(name for each in metrics for name in each)
    return Comparison(
        runs=tuple(as_text(str(run)) for run in runs),
        settings={key: each for key, each in values.items() if len(set(each)) > 1},
        metrics={name: tuple(each.get(name) for each in metrics) for name in names},
        curves=tuple(map(curve, records)),
        cautions=tuple(_cautions(folders, reports)),
    )


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


def _cautions(folders: Sequence[RunFiles], reports: Sequence[Report | None]) -> Iterator[str]:
    if len({_graph(folder) for folder in folders}) > 1:
        yield "the runs were trained on different graphs, so their figures do not compare"
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
    """Write the table (.md, .csv) or the curves (.svg, .png), as the ending of the file says."""
    check_target(path, (".md", ".csv", ".svg", ".png"))
    if path.suffix == ".md":
        write_file(path, markdown_table(comparison.rows()))
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
