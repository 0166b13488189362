"""Mixing trained runs of one graph into a run that answers with all of them."""

import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from modulekge.errors import ConfigError, RunError
from modulekge.evaluation.mixing import Fitted, Watch, fit
from modulekge.models.mixture import Mix
from modulekge.run.calibrate import calibrate
from modulekge.run.files import as_text
from modulekge.run.folder import RunFolder
from modulekge.run.lock import is_training
from modulekge.run.run import Run, load
from modulekge.run.tensors import write_tensors

_LEFT = (".*", "members", "report*.json", "calibration.json")  # of a member; and what a training goes on from


def mix(runs: Sequence[Run | str | Path], out: str | Path) -> Run:
    """Fit on valid how much each of some runs of one graph counts; return the calibrated run of all of them.

    Where together they are no better than the best alone, that one has all the weight. ``out`` holds copies
    of the members, so that it can be moved.

    >>> modulekge.mix(["runs/embedding", "runs/paths"], "runs/both")  # doctest: +SKIP
    """
    loaded = [run if isinstance(run, Run) else load(run) for run in runs]
    check_mixable(loaded, Path(out))
    mixed, _ = mix_runs(loaded, Path(out))
    calibrate(mixed)
    return mixed


def check_mixable(runs: Sequence[Run], out: Path) -> None:
    """Refuse runs that cannot answer together: of other graphs, mixtures, one alone."""
    if len(runs) < 2:
        raise ConfigError("a mixture takes two runs or more; name another of the same graph")
    RunFolder.check_free(out)
    first = runs[0]
    first.dataset.check_split("valid", "to fit weights on")
    for run in runs:
        path = run.folder.path
        if run.members:
            raise RunError(f"{path}: a mixture already; name its members, in {run.folder.members}")
        if is_training(run.folder):
            raise RunError(f"{path}: a process is training this run; wait for it")
        if run.dataset.fingerprint != first.dataset.fingerprint:
            finding = f"of another graph than {first.folder.path} ({run.dataset.name}, {first.dataset.name})"
            raise RunError(f"{path}: {finding}; mix runs of one graph and split")


def mix_runs(
    runs: Sequence[Run],
    out: Path,
    watch: Watch = iter,
    most_questions: int | None = None,
    origin: Mapping[str, Any] | None = None,
) -> tuple[Run, Fitted]:
    """Keep the mixture of some runs in ``out``; return it and its fit. ``origin`` is kept with it."""
    fitted = fit([run.scorer for run in runs], runs[0].dataset, watch, most_questions)
    return load(_make_folder(runs, fitted, out, origin or {}).path), fitted


def _make_folder(runs: Sequence[Run], fitted: Fitted, out: Path, origin: Mapping[str, Any]) -> RunFolder:
    """Make the folder of a mixture, the best member first."""
    order = sorted(range(len(runs)), key=lambda i: -fitted.alone[i])
    order = [fitted.best, *(i for i in order if i != fitted.best)]
    members = [runs[i] for i in order]
    about = {
        "mixed": {
            "from": [as_text(str(run.folder.path)) for run in members],
            "valid_mrr_alone": [fitted.alone[i] for i in order],
            "valid_mrr": fitted.mixed,
            "fitted_on": fitted.fitted_on,
            "checked_on": fitted.checked_on,
            "helps": fitted.helps,
            **origin,
        }
    }
    fill = partial(fill_mixture, mix=fitted.mix.ordered(order), members=[run.folder.path for run in members])
    first = members[0]
    return RunFolder.create(out, first.config, first.dataset, about, fill=fill)


def fill_mixture(folder: Path, mix: Mix, members: Sequence[Path]) -> None:
    """Put copies of members, and how much they count, into a folder."""
    new = RunFolder(folder)
    for path, target in zip(members, new.member_folders(len(members)), strict=True):
        left = (*_LEFT, "last.safetensors") if RunFolder(path).weights.exists() else _LEFT
        shutil.copytree(path, target, ignore=shutil.ignore_patterns(*left))
    write_tensors(new.mixture_file, {"shares": mix.shares.contiguous(), "scales": mix.scales.contiguous()})
