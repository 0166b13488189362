"""Tables of reports and studies."""

from collections.abc import Iterable
from math import isnan

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from modulekge.evaluation.report import Metrics, RelationReport, Report
from modulekge.render.terminal import FEW, format_number, more, new_table
from modulekge.studies.render import line_cells
from modulekge.studies.study import Line
from modulekge.wording import counted


def report_view(report: Report, all_relations: bool) -> RenderableType:
    """The figures, and the protocol without which they mean nothing."""
    triples = counted(report.triples, "triple")
    head = f"{report.model} on {report.dataset}, {report.split}: {triples}, both sides"
    overall = new_table("", " MRR", " Hits@1", " Hits@3", " Hits@10", " MR", "95 % interval of MRR")
    low, high = report.intervals["mrr"]
    overall.add_row("all questions", *_figures(report.both), f"{low:.4f} .. {high:.4f}", style="bold")
    overall.add_row("  tails", *_figures(report.tail))
    overall.add_row("  heads", *_figures(report.head))
    for rule in ("top", "mean"):
        overall.add_row(f"  ties {rule.upper()}", *_figures(report.ties[rule]))
    if report.without_unseen:
        overall.add_row(f"  without {report.unseen_triples} unseen", *_figures(report.without_unseen))
    rows = sorted(report.relations, key=lambda r: -r.triples)
    shown = rows if all_relations else rows[:FEW]
    return Group(
        Text(head, "bold"), "", overall, "",
        _parts("category", report.categories), "",
        _parts("relation", shown), *more(len(rows) - len(shown)), "",
        *(Text(f"{name}: {text}", "dim") for name, text in vars(report.protocol).items()),
    )  # fmt: skip


def _parts(kind: str, parts: Iterable[RelationReport]) -> Table:
    table = new_table(kind, " triples", " MRR", " tails", " heads", " Hits@1", " Hits@10")
    for part in parts:
        b = part.both
        values = (b["mrr"], part.tail["mrr"], part.head["mrr"], b["hits@1"], b["hits@10"])
        table.add_row(part.name, f"{part.triples:,}", *map(format_number, values))
    return table


def _figures(metrics: Metrics) -> list[str]:
    mr = "-" if isnan(metrics["mr"]) else f"{metrics['mr']:,.1f}"
    return [*(format_number(metrics[name]) for name in ("mrr", "hits@1", "hits@3", "hits@10")), mr]


def study_table(lines: Iterable[Line]) -> Table:
    """The figures of a study beside the paper's, each with when and how it was made."""
    table = new_table(
        "data", "model", "what", " paper", " ours", "95 % interval", "over", " difference", "verdict",
        "made",
    )  # fmt: skip
    for line in lines:
        cells = line_cells(line)
        table.add_row(*cells[:-3], cells[-2])
    return table


def retrained_table(pairs: Iterable[tuple[Line, Line]]) -> Table:
    """Figures as they were stored beside those of the same trainings, made now."""
    table = new_table("data", "model", "what", " paper", " stored", " now", " difference", "verdict")
    for stored, now in pairs:
        apart = "" if None in (stored.mean, now.mean) else f"{(now.mean or 0) - (stored.mean or 0):+.4f}"
        means = map(format_number, (stored.paper, stored.mean, now.mean))
        table.add_row(now.dataset, now.model, now.what, *means, apart, now.verdict)
    return table
