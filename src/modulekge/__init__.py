"""Module embeddings of knowledge graphs.

>>> import modulekge
>>> run = modulekge.train("world", "ModulE-HH")  # doctest: +SKIP
>>> modulekge.evaluate(run).both["mrr"]  # doctest: +SKIP
>>> modulekge.predict(run, head="France", relation="borders", k=3)  # doctest: +SKIP
"""

from pathlib import Path

from modulekge.answers.predictor import Predictor, predict
from modulekge.answers.questions import Answer, Link, PredictionSet, Question
from modulekge.data.dataset import Dataset, Split
from modulekge.data.registry import open_dataset
from modulekge.evaluation import report as _report
from modulekge.evaluation.calibration import Calibration
from modulekge.evaluation.report import Report
from modulekge.explain.explanation import Explanation, explain
from modulekge.explain.relation_patterns import RelationPatterns, relation_patterns
from modulekge.export.formats import Export, export
from modulekge.export.index import EntityIndex
from modulekge.models.embedding import Embedding
from modulekge.models.spec import ModelSpec, row
from modulekge.models.table import MODELS
from modulekge.run.add import add
from modulekge.run.calibrate import calibrate
from modulekge.run.rerank import rerank
from modulekge.run.run import Run, load
from modulekge.run.train import resume, train
from modulekge.version import __version__


def evaluate(run: Run | str | Path, split: Split = "test") -> Report:
    """Rank every question of a split of the run's own graph."""
    run = run if isinstance(run, Run) else load(run)
    return _report.evaluate(run.scorer, run.dataset, split)


__all__ = [
    "MODELS",
    "Answer",
    "Calibration",
    "Dataset",
    "Embedding",
    "EntityIndex",
    "Explanation",
    "Export",
    "Link",
    "ModelSpec",
    "PredictionSet",
    "Predictor",
    "Question",
    "RelationPatterns",
    "Report",
    "Run",
    "__version__",
    "add",
    "calibrate",
    "evaluate",
    "explain",
    "export",
    "load",
    "open_dataset",
    "predict",
    "relation_patterns",
    "rerank",
    "resume",
    "row",
    "train",
]
