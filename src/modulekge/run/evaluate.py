"""Evaluating a run on its own graph."""

from pathlib import Path

from modulekge.data.benchmarks import Split
from modulekge.evaluation import evaluate as ranking
from modulekge.evaluation.report import Report
from modulekge.run.run import Run, load


def evaluate(run: Run | str | Path, split: Split = "test", every: bool = False) -> Report:
    """Rank the questions of a split of the run's own graph; of a very large split a sample, or ``every`` one.

    >>> modulekge.evaluate("runs/demo", "valid").both["mrr"]  # doctest: +SKIP
    """
    run = run if isinstance(run, Run) else load(run)
    triples = run.dataset[split] if every else None
    return ranking.evaluate(run.scorer, run.dataset, split, triples=triples)
