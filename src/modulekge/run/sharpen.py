"""Asking candidates back in a run that is trained: weights chosen on valid, and kept in its settings."""

from dataclasses import replace
from pathlib import Path

from modulekge.errors import RunError
from modulekge.evaluation.sharpening import Watch, Weighed, weigh
from modulekge.run.train import Run, is_training, load


def sharpen(run: Run | str | Path, watch: Watch = iter) -> Weighed:
    """Compare weights of asking back on valid and keep the best in the settings of a run.

    Where those change, reports and the calibration go, for they are not of this score; a loaded run has it
    once it is loaded again.

    >>> modulekge.sharpen("runs/demo").best  # doctest: +SKIP
    """
    run = run if isinstance(run, Run) else load(run)
    if is_training(run.folder):
        raise RunError(f"{run.folder.path}: another process is training this run; wait for it")
    found = weigh(run.model, run.dataset, watch)
    weights, _ = found.best
    if weights != run.config.asking:
        run.folder.change_asking(replace(run.config, asking=weights))
    return found
