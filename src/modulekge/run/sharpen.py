"""Asking candidates back in a run that is trained: weights chosen on valid, and kept in its settings."""

from dataclasses import replace
from pathlib import Path

from modulekge.config import AskingConfig
from modulekge.errors import RunError
from modulekge.evaluation.sharpening import WEIGHTS, Watch, Weighed, weigh
from modulekge.models.back import Back
from modulekge.run.train import Run, is_training, load


def sharpen(run: Run | str | Path, watch: Watch = iter, weights: AskingConfig | None = None) -> Weighed:
    """Compare weights of asking back on valid and keep the best in the settings of a run, or those given.

    Where they change, reports and the calibration go, for they are not of this score.

    >>> modulekge.sharpen("runs/demo").best  # doctest: +SKIP
    """
    run = run if isinstance(run, Run) else load(run)
    if is_training(run.folder):
        raise RunError(f"{run.folder.path}: another process is training this run; wait for it")
    found = weigh(run.model, run.dataset, watch, WEIGHTS if weights is None else (weights,))
    kept = found.best[0] if weights is None else weights
    if kept != run.model.back.weights:
        run.folder.change_asking(replace(run.config, asking=kept))
        run.model.back = Back(kept, run.dataset.questions("train"))
    return found
