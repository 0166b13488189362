"""What is known of a run: its settings, its training curve, its report and its calibration."""

from collections.abc import Iterable
from dataclasses import fields

import numpy as np

from modulekge.config import dotted
from modulekge.data.benchmarks import SPLITS
from modulekge.evaluation.calibration import Calibration
from modulekge.evaluation.report import RelationReport, Report
from modulekge.run.listing import valid_figures
from modulekge.run.run import Run
from modulekge.server.lookup import Lookup
from modulekge.server.views import (
    CalibrationView,
    CurvePoint,
    FiguresOf,
    MeasuredView,
    Name,
    PairItem,
    RelationCard,
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
        graph=run.dataset.fingerprint,
        model=run.name,
        k=run.model.k,
        entities=len(run.dataset.entities),
        relations=len(run.dataset.relations),
        triples=triples,
        epochs=len(records),
        valid_mrr=valid["mrr"] if valid else None,
        test_mrr=report.both["mrr"] if report else None,
        calibrated=run.folder.calibration() is not None,
    )


def run_detail(summary: RunSummary, run: Run) -> RunDetail:
    """Return a run with all that was measured of it."""
    settings, records = dotted(run.config), run.folder.records()
    report, calibration = run.folder.report(), run.folder.calibration()
    return RunDetail(
        **vars(summary),
        settings={key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()},
        curve=[CurvePoint(r.epoch, r.loss, r.mrr) for r in records],
        report=None if report is None else _report(run, report),
        calibration=None if calibration is None else _calibration(calibration),
    )


def _report(run: Run, report: Report) -> ReportView:
    relations = run.dataset.relations
    names = {relations.label(i): name for i, name in enumerate(relations.names)}

    def parts(of: Iterable[RelationReport]) -> list[FiguresOf]:
        return [FiguresOf(label=p.name, **vars(p) | {"name": names.get(p.name, p.name)}) for p in of]

    shown = {field.name: getattr(report, field.name) for field in fields(ReportView)}
    shown |= {"relations": parts(report.relations), "categories": parts(report.categories)}
    return ReportView(**shown | {"without_unseen": report.without_unseen or {}})


def relation_card(run: Run, lookup: Lookup, relation: int, limit: int, offset: int) -> RelationCard:
    """Return a relation with some of its facts and what was measured of it."""
    name, pairs, entities = lookup.relation(relation), lookup.facts.pairs(relation), run.dataset.entities
    report, calibration = run.folder.report(), run.folder.calibration()
    parts = _report(run, report).relations if report else []
    own = calibration.measured.own if calibration and calibration.measured else {}

    def end(i: int) -> Name:
        return Name(entities.names[i], entities.label(i))

    return RelationCard(
        **vars(name),
        triples=len(pairs),
        n_heads=len(np.unique(pairs[:, 0])),
        n_tails=len(np.unique(pairs[:, 1])),
        facts=[PairItem(end(h), end(t), SPLITS[s]) for h, t, s in pairs[offset : offset + limit].tolist()],
        figures=next((part for part in parts if part.name == name.name), None),
        tails=own.get(relation),
        heads=own.get(relation + len(run.dataset.relations)),
    )


def _calibration(found: Calibration) -> CalibrationView:
    measured, view = found.measured, None
    if measured is not None:
        view = MeasuredView(measured.split, **vars(measured.together), sets=measured.sets)
    return CalibrationView(found.together.triples, len(found.own), view)
