"""What the command line shows: tables of models, graphs, runs, reports, answers; progress of training."""

from modulekge.render.answers import (
    answer_set_view,
    answers_view,
    calibration_view,
    links_table,
    progress_display,
    weighed_view,
)
from modulekge.render.console import console
from modulekge.render.data import datasets_table, findings_view, needs_view, survey_view, synthetic_view
from modulekge.render.models import models_table
from modulekge.render.progress import RankingDisplay, TrainingDisplay, TrainingsDisplay, ranking_display
from modulekge.render.reports import report_view, retrained_table, study_table
from modulekge.render.runs import addition_view, comparison_view, kept_in, runs_table
from modulekge.render.tuning import TuningDisplay, choices_view, trials_table
from modulekge.render.why import algebra_view, explanation_view

__all__ = [
    "RankingDisplay",
    "TrainingDisplay",
    "TrainingsDisplay",
    "TuningDisplay",
    "addition_view",
    "algebra_view",
    "answer_set_view",
    "answers_view",
    "calibration_view",
    "choices_view",
    "comparison_view",
    "console",
    "datasets_table",
    "explanation_view",
    "findings_view",
    "kept_in",
    "links_table",
    "models_table",
    "needs_view",
    "progress_display",
    "ranking_display",
    "report_view",
    "retrained_table",
    "runs_table",
    "study_table",
    "survey_view",
    "synthetic_view",
    "trials_table",
    "weighed_view",
]
