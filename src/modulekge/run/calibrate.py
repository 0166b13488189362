"""Calibrating a run, and the picture of how true its probabilities are."""

from collections.abc import Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from modulekge.config import Config
from modulekge.errors import DataError
from modulekge.evaluation import calibration as fitting
from modulekge.evaluation.calibration import Calibration, Watch
from modulekge.evaluation.reliability import Bin
from modulekge.models.model import Model
from modulekge.run.checkpoint import weights_hash
from modulekge.run.plotting import new_figure, write_figure
from modulekge.run.rows import check_target
from modulekge.run.run import Run, load

PICTURES = (".png", ".svg")


def calibrate(run: Run | str | Path, watch: Watch = iter, measure: bool = True) -> Calibration:
    """Fit probabilities to the valid split of a run, ``measure`` them on test, and keep them in its folder.

    >>> modulekge.calibrate("runs/demo").measured.together.after.error  # doctest: +SKIP
    """
    run = run if isinstance(run, Run) else load(run)
    found = replace(fitting.calibrate(run.scorer, run.dataset, watch, measure), fitted_to=scored_by(run))
    run.check_current()
    run.folder.save_offsets(run.scorer, run.model)
    run.folder.save_calibration(found)
    return found


def scored_by(run: Run) -> str:
    """Return a hash of what makes scores: the weights, and how candidates are reranked or mixed."""
    if run.mix:
        return " ".join([*map(scored_by, run.members), run.mix.digest])
    return scored_with(run.model, run.config)


def scored_with(model: Model, config: Config) -> str:
    """Return a hash of a model and of how its candidates are reranked."""
    return f"{weights_hash(model)} {astuple(config.rerank)}"


def write_reliability(calibration: Calibration, path: Path) -> None:
    """Draw the share of answers that are true over their probability: on the diagonal, both agree."""
    check_target(path, PICTURES)
    if calibration.measured is None:
        raise DataError(f"{path}: there is no test split to measure probabilities on, so nothing to draw")
    figure = new_figure()
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="grey", linewidth=1)
    found = calibration.measured.together
    for name, accuracy in (("plain softmax", found.before), ("calibrated", found.after)):
        _draw(axes, f"{name}, error {accuracy.error:.3f}", accuracy.bins)
    axes.set(xlabel="probability", ylabel=f"share true ({calibration.measured.split})", aspect="equal")
    axes.legend(fontsize="small")
    write_figure(figure, path)


def _draw(axes: Any, name: str, bins: Sequence[Bin]) -> None:
    points = axes.plot([b.probability for b in bins], [b.true for b in bins], marker=".", label=name)
    sizes = [4 * b.answers**0.5 for b in bins]
    axes.scatter(
        [b.probability for b in bins], [b.true for b in bins], sizes, color=points[0].get_color(), alpha=0.3
    )
