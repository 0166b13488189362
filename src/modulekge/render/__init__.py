"""What the command line shows: tables of models, graphs, runs, reports, answers; progress of training."""

from modulekge.render.answers import (
    answers_view,
    calibration_view,
    links_table,
    prediction_set_view,
    progress_display,
    weighed_view,
)
from modulekge.render.console import console
from modulekge.render.data import (
    datasets_table,
    estimate_view,
    findings_view,
    statistics_view,
    synthetic_view,
)
from modulekge.render.models import models_table
from modulekge.render.progress import RankingDisplay, TrainingDisplay, TrainingsDisplay, ranking_display
from modulekge.render.reports import report_view, retrained_table, study_table
from modulekge.render.runs import addition_view, comparison_view, kept_in, runs_table
from modulekge.render.tuning import TuningDisplay, choices_view, trials_table
from modulekge.render.why import explanation_view, relation_patterns_view

__all__ = [
    "RankingDisplay",
    "TrainingDisplay",
    "TrainingsDisplay",
    "TuningDisplay",
    "addition_view",
    "answers_view",
    "calibration_view",
    "choices_view",
    "comparison_view",
    "console",
    "datasets_table",
    "estimate_view",
    "explanation_view",
    "findings_view",
    "kept_in",
    "links_table",
    "models_table",
    "prediction_set_view",
    "progress_display",
    "ranking_display",
    "relation_patterns_view",
    "report_view",
    "retrained_table",
    "runs_table",
    "statistics_view",
    "study_table",
    "synthetic_view",
    "trials_table",
    "weighed_view",
]
