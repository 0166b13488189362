"""What is known of a run: its settings, its training curve, its report and its calibration."""

import math
from collections.abc import Mapping

from modulekge.config import dotted
from modulekge.evaluation.calibration import Calibration
from modulekge.evaluation.report import RelationReport, Report
from modulekge.run.listing import valid_figures
from modulekge.run.run import Run
from modulekge.server.views import (
    CalibrationView,
    CurvePoint,
    Figures,
    FiguresOf,
    MeasuredView,
    ReportView,
    RunDetail,
    RunSummary,
)


def run_summary(name: str, run: Run, triples: int) -> RunSummary:
    """Return a run at a glance."""
    records, report = run.folder.records(), run.folder.report()
    valid = valid_figures(run.folder, records)
    return RunSummary(
        name=name,
        data=run.dataset.name,
        model=run.name,
        k=run.config.model.k,
        entities=len(run.dataset.entities),
        relations=len(run.dataset.relations),
        triples=triples,
        epochs=len(records),
        valid_mrr=finite(valid["mrr"]) if valid else None,
        test_mrr=finite(report.both["mrr"]) if report else None,
        calibrated=run.folder.calibration() is not None,
    )


def run_detail(summary: RunSummary, run: Run) -> RunDetail:
    """Return a run with all that was measured of it."""
    settings = dotted(run.config)
    report, calibration = run.folder.report(), run.folder.calibration()
    return RunDetail(
        **vars(summary),
        settings={key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()},
        curve=[
            CurvePoint(r.epoch, finite(r.loss), finite(r.valid["mrr"]) if r.valid else None)
            for r in run.folder.records()
        ],
        report=None if report is None else _report(run, report),
        calibration=None if calibration is None else _calibration(calibration),
    )


def _report(run: Run, report: Report) -> ReportView:
    relations = run.dataset.relations
    names = {relations.label(i): name for i, name in enumerate(relations.names)}

    def part(of: RelationReport) -> FiguresOf:
        name = names.get(of.name, of.name)
        return FiguresOf(name, of.name, of.triples, _figures(of.both), _figures(of.head), _figures(of.tail))

    return ReportView(
        split=report.split,
        triples=report.triples,
        candidates=report.candidates,
        both=_figures(report.both),
        intervals={name: (finite(low), finite(high)) for name, (low, high) in report.intervals.items()},
        head=_figures(report.head),
        tail=_figures(report.tail),
        ties={rule: _figures(values) for rule, values in report.ties.items()},
        without_unseen=_figures(report.without_unseen or {}),
        unseen_triples=report.unseen_triples,
        relations=[part(of) for of in report.relations],
        categories=[part(of) for of in report.categories],
        protocol=report.protocol,
    )


def _calibration(found: Calibration) -> CalibrationView:
    measured = None
    if found.measured is not None:
        together = found.measured.together
        measured = MeasuredView(
            found.measured.split, together.questions, together.before, together.after, found.measured.sets
        )
    return CalibrationView(found.together.triples, len(found.own), measured)


def _figures(values: Mapping[str, float]) -> Figures:
    return {name: finite(value) for name, value in values.items()}


def finite(value: float) -> float | None:
    """Return a number that JSON has: NaN and infinity are None."""
    return value if math.isfinite(value) else None
