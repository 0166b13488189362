"""Asking candidates back in a run that is trained: weights chosen on valid, and kept in its settings."""

from dataclasses import replace
from pathlib import Path

from modulekge.config import AskingConfig
from modulekge.evaluation.rerank import Watch, weigh
from modulekge.run.calibrate import calibrate
from modulekge.run.train import Run, load, only_one


def sharpen(run: Run | str | Path, watch: Watch = iter) -> Run:
    """Compare weights of asking back on valid, keep the best, and return the run as it is asked with them.

    Where they are others than before, its probabilities are made anew.

    >>> run = modulekge.sharpen("runs/demo")  # doctest: +SKIP
    """
    run = run if isinstance(run, Run) else load(run)
    sharpened = ask_with(run, weigh(run.model, run.dataset, watch).best[0])
    if sharpened is not run:
        calibrate(sharpened)
    return sharpened


def ask_with(run: Run, weights: AskingConfig) -> Run:
    """Keep weights in the settings of a run, and return it as it is asked with them.

    Where they are others than before, reports and the calibration go, for they are not of this score.
    """
    if weights == run.config.asking:
        return run
    run.folder.check_asking(weights, run.dataset)
    with only_one(run.folder):
        run.check_current()
        run.folder.change_asking(replace(run.config, asking=weights))
    return load(run.folder.path)
