"""Commands that make answers better: probabilities (calibrate), order (rerank), several runs (mix)."""

from dataclasses import asdict
from pathlib import Path

from modulekge import render
from modulekge.commands.graph import on_device, print_found
from modulekge.commands.runs import make_calibration, mix_with_display
from modulekge.config import RerankConfig, make_config
from modulekge.errors import ConfigError
from modulekge.evaluation.rerank import MOST_QUESTIONS, WEIGHTS, Weighed, weigh
from modulekge.run.calibrate import PICTURES, write_reliability
from modulekge.run.mix import check_mixable
from modulekge.run.rerank import check_rerankable, rerank_with
from modulekge.run.rows import check_target
from modulekge.run.run import load


def calibrate(run: Path, figure: Path | None, as_json: bool) -> None:
    """Fit probabilities to the valid split, and measure on test how true they are."""
    if figure:
        check_target(figure, PICTURES)
    loaded = load(run)
    found = make_calibration(loaded)
    if figure:
        write_reliability(found, figure)
    if as_json:
        print(found.to_json())
    else:
        render.console().print(render.calibration_view(found, loaded.dataset.relations))


def rerank(run: Path, weights: str | None, as_json: bool) -> None:
    """Rerank candidates with the inverse question, if that is better on valid, and keep the best weights."""
    given = None if weights is None else _weights(weights)
    loaded = on_device(load(run))
    check_rerankable(loaded)
    questions = min(2 * len(loaded.dataset.valid), MOST_QUESTIONS)
    found = Weighed((), 0)
    if given is None or questions:
        with render.progress_display("reranking", questions, lambda sums: int(sums[-1])) as watch:
            found = weigh(loaded.scorer, loaded.dataset, watch, (given,) if given else WEIGHTS)
    kept = given or found.best[0]
    reranked = rerank_with(loaded, kept)
    changed = reranked is not loaded
    if changed and questions:
        make_calibration(reranked)
    advice = f"; 'modulekge evaluate {run}' reports on test" if len(loaded.dataset.test) else ""
    weighed = asdict(found) | {"kept": asdict(kept)}
    print_found(weighed, lambda: render.weighed_view(found, kept, changed, advice), as_json)


def mix(runs: list[Path], out: Path, as_json: bool) -> None:
    """Mix runs of one graph into a run that answers with all of them, and calibrate it."""
    loaded = [on_device(load(run)) for run in runs]
    check_mixable(loaded, out)
    mixed, found = mix_with_display(loaded, out)
    make_calibration(mixed)
    names, relations = [run.name for run in loaded], list(mixed.dataset.relations.names)
    fields = {
        "run": str(out),
        "members": dict(zip(map(str, runs), found.alone, strict=True)),
        "mixed": found.mixed,
        "helps": found.helps,
        "fitted_on": found.fitted_on,
        "checked_on": found.checked_on,
        "shares": found.mix.shares.tolist(),
    }
    print_found(fields, lambda: render.mixture_view(found, names, relations, out), as_json)


def _weights(text: str) -> RerankConfig:
    try:
        inverse, hubness, prior = map(float, text.split(","))
    except ValueError:
        raise ConfigError(
            f"--weights {text}: expected three numbers, inverse, hubness and prior, such as 0.5,0.5,0"
        ) from None
    layer = {"rerank": {"inverse": inverse, "hubness": hubness, "prior": prior}}
    return make_config([layer], "--weights").rerank
