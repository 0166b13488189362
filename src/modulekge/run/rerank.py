"""Reranking a trained run: weights chosen on valid, and kept in its settings."""

from dataclasses import replace
from pathlib import Path

from modulekge.config import RerankConfig
from modulekge.errors import RunError
from modulekge.evaluation.rerank import Watch, weigh
from modulekge.run.calibrate import calibrate
from modulekge.run.lock import only_one
from modulekge.run.run import Run, load


def rerank(run: Run | str | Path, watch: Watch = iter) -> Run:
    """Compare weights of reranking on valid, keep the best, and return the run with them.

    Where they are others than before, its probabilities are made anew.

    >>> run = modulekge.rerank("runs/demo")  # doctest: +SKIP
    """
    run = run if isinstance(run, Run) else load(run)
    check_rerankable(run)
    reranked = rerank_with(run, weigh(run.scorer, run.dataset, watch).best[0])
    if reranked is not run:
        calibrate(reranked)
    return reranked


def check_rerankable(run: Run) -> None:
    """Refuse a run of paths: asking every entity back would take as many questions as there are entities."""
    if run.members:
        raise RunError(f"{run.folder.path}: a mixture; rerank its members and mix them again")
    if run.model.spec.along_paths:
        finding = f"{run.name} would have to ask every entity back, each at the cost of a question"
        raise RunError(f"{run.folder.path}: {finding}; rerank an embedding")


def rerank_with(run: Run, weights: RerankConfig) -> Run:
    """Keep weights in the settings of a run, and return the run with them.

    Where they are others than before, reports and the calibration go, for they are not of this score.
    """
    if weights == run.config.rerank:
        return run
    run.folder.check_rerank(weights, run.dataset)
    with only_one(run.folder):
        run.check_current()
        run.folder.change_rerank(replace(run.config, rerank=weights))
    return load(run.folder.path)
