"""What the command line shows: tables of models, graphs, reports, answers; progress of training."""

from modulekge.show.console import console
from modulekge.show.data import datasets_table, survey_view
from modulekge.show.models import models_table
from modulekge.show.progress import RankingDisplay, TrainingDisplay, ranking_display
from modulekge.show.reports import answers_view, report_view, study_table

__all__ = [
    "RankingDisplay",
    "TrainingDisplay",
    "answers_view",
    "console",
    "datasets_table",
    "models_table",
    "ranking_display",
    "report_view",
    "study_table",
    "survey_view",
]
