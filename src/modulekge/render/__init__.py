"""What a terminal shows: tables of models, graphs, runs, reports, answers; progress of training."""

from modulekge.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
