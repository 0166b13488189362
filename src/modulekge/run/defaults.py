"""Settings by rule: what to train with on a graph for which there is no recipe, and why.

docs/training.md has the rules as a table, on what they rest and what they gave.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import ceil, log2, log10, sqrt
from typing import Any

from modulekge.config import Config, holds, make_config
from modulekge.models.spec import COLUMNS, ModelSpec, named, spec_of
from modulekge.run.load import Choice, Load, Machine, Size, Times, load_of, with_choices
from modulekge.run.path_defaults import choose_paths
from modulekge.wording import duration

DEFAULT_MODEL = "ModulE-RC"
_REALS, _LEAST_REALS = 256, 64  # numbers of an entity that meet a query; down to how many time may bring them
_LEAST_REALS_FOR_MEMORY = 8
_LEAST_BATCH, _LARGEST_BATCH, _LEAST_STEPS = 128, 4096, 16
_LEAST_WEIGHT, _LARGEST_WEIGHT = 0.003, 0.05
_WEIGHT_RATE = 0.0016  # of the regularizer, per entity and root of the number of triples
_DISTANCE_WEIGHT = 0.001
_PASSES, _PASSES_UNWATCHED = (
    100,
    30,
)  # over the questions at most, also where no valid split says when to stop
_LEAST_PASSES = {"all": 20, "drawn": 4}  # that make a training worth its name
_VALIDATIONS, _VALIDATING, _PATIENCE = 20, 0.1, 5
_EMA = 0.7
_NEGATIVES, _LEAST_TO_DRAW = 1024, 4096  # candidates drawn for a batch, of how many entities at least
_DRAWN_REGULARIZER = 0.1  # share of its weight where candidates are drawn: passes are few, and it slows them
TRAINING = 0.75  # share of the time that training may take; the rest is for what comes after it
_EPOCH_SECONDS = 40  # that an epoch may take on a CPU: after it there is a model to ask
_MEMORY = 0.5  # share of the free memory that training may take
_HOPELESS = {"all": 4, "drawn": 2}  # times too slow by the estimate, and no step is timed to find out


Pace = Callable[[Config], Times]


def default_minutes(size: Size) -> float:
    """Return how long a training and what follows it may take unless told: 5 to 15 minutes."""
    return min(max(5.0, 5 * log10(max(1, size.train)) - 20), 15.0)


def choose(
    size: Size,
    machine: Machine,
    overrides: Mapping[str, Any] | None = None,
    minutes: float | None = None,
    pace: Pace | None = None,
) -> tuple[Choice, ...]:
    """Return settings for a graph of this size on this machine, each with its reason.

    They go with the ``overrides`` that were asked for, which are not among them. Of exact training, drawn
    candidates and fewer numbers, the first that makes enough passes in the ``minutes`` given is chosen, by
    the ``pace`` at which steps are taken here; without it, by an estimate. Nothing else is looked at.
    """
    overrides = overrides or {}
    own_row = any(overrides.get("model", {}).get(key) for key in ("name", *COLUMNS))
    spec = spec_of(make_config([overrides]).model) if own_row else named(DEFAULT_MODEL)
    budget = TRAINING * 60 * (minutes or default_minutes(size))
    if spec.along_paths:
        return choose_paths(size, machine, overrides, budget, pace)
    always = [
        *([] if own_row else [Choice("model.name", spec.name, "near the best on every graph tuned for")]),
        Choice("model.scalar_scale", 0.1, "gets going sooner than smaller numbers"),
        Choice("model.vector_scale", 0.1, "lets directions turn quickly at first"),
        _regularizer(size, spec),
        _batch(size),
        *(
            [Choice("train.precision", "tf32", "twice as fast on a GPU, and ranks alike")]
            * (machine.kind == "cuda")
        ),
    ]
    for choices in (steps := list(_ladder(size, machine, spec, overrides))):
        config = with_choices([*always, *choices], overrides)
        kind = "all" if config.loss.candidates == "all" else "drawn"
        longest = budget / _LEAST_PASSES[kind]
        times = load_of(size, machine, config).times
        if pace and (choices is steps[-1] or times.a_pass < _HOPELESS[kind] * longest):
            times = pace(config)
        if times.a_pass <= longest:
            break
    chosen = {c.key: c for c in (*always, *choices, *_course(size, machine, times, budget))}
    return tuple(choice for choice in chosen.values() if not holds(overrides, choice.key))


def _ladder(
    size: Size, machine: Machine, spec: ModelSpec, overrides: Mapping[str, Any]
) -> Iterator[list[Choice]]:
    """Yield candidates and size of a model as one would like them, and then what takes less time."""
    load = Load(size, machine, spec, max(1, _REALS // spec.query_size), 1, size.entities)
    why = f"{load.reals} numbers to an entity"
    while load.bytes > _MEMORY * machine.memory and load.reals > _LEAST_REALS_FOR_MEMORY and load.k > 1:
        load = replace(load, k=load.k // 2)
        why = f"as much as {machine.memory / 2**30:.1f} GiB of free memory allow"
    yield [Choice("model.k", load.k, why)]
    drawn: list[Choice] = []
    loss = with_choices((), overrides).loss
    drawable = loss.targets == "one" and not loss.smoothing and not holds(overrides, "loss.candidates")
    if size.entities >= _LEAST_TO_DRAW and drawable:
        drawn = [
            Choice("loss.candidates", "shared", "all entities would take too long"),
            Choice("loss.negatives", _NEGATIVES, "drawn once for all questions of a batch"),
            _regularizer(size, spec, _DRAWN_REGULARIZER),
        ]
        yield [Choice("model.k", load.k, why), *drawn]
    while load.reals > _LEAST_REALS and load.k > 1 and not holds(overrides, "model.k"):
        load = replace(load, k=load.k // 2)
        yield [Choice("model.k", load.k, f"as much as the time allows on {machine.words}"), *drawn]


def _batch(size: Size) -> Choice:
    questions = 2 * size.train
    batch = min(max(2 ** round(log2(questions) / 2), _LEAST_BATCH), _LARGEST_BATCH)
    batch = min(batch, max(1, questions // _LEAST_STEPS))
    return Choice("train.batch", batch, f"makes {ceil(questions / batch):,} steps of {questions:,} questions")


def _regularizer(size: Size, spec: ModelSpec, share: float = 1.0) -> Choice:
    """Regularize the more, the fewer of the possible pairs of entities are joined."""
    if not spec.score.bilinear:
        return Choice("regularizer.weight", _DISTANCE_WEIGHT, "distances hold their numbers themselves")
    weight = _WEIGHT_RATE * size.entities / sqrt(size.train)
    weight = share * min(max(weight, _LEAST_WEIGHT), _LARGEST_WEIGHT)
    reason = f"{size.train / size.entities:.1f} triples to an entity, {size.entities:,} entities"
    return Choice("regularizer.weight", float(f"{weight:.2g}"), reason)


def _course(size: Size, machine: Machine, times: Times, budget: float) -> list[Choice]:
    """Return how long to train, and when to validate and to stop."""
    parts = max(1, ceil(times.a_pass / _EPOCH_SECONDS)) if machine.kind == "cpu" else 1
    parts = min(parts, ceil(2 * size.train / _LEAST_BATCH))
    seconds = times.a_pass / parts
    most = parts * (_PASSES if size.valid else _PASSES_UNWATCHED)
    epochs = min(max(1, int(budget / seconds)), most)
    how = "measured" if times.measured else "estimated"
    time = f"about {duration(seconds)} each and {duration(epochs * seconds)} in all on {machine.words}, {how}"
    choices = [Choice("train.parts", parts, "epochs make a pass over the questions")] if parts > 1 else []
    if size.valid == 0:
        return [
            *choices,
            Choice("train.epochs", epochs, f"no valid split says when to stop; {time}"),
            Choice("train.ema", _EMA, "nor which epoch is best, so a mean over some is kept"),
        ]
    every = max(ceil(epochs / _VALIDATIONS), ceil(times.validation / (_VALIDATING * seconds)))
    return [
        *choices,
        Choice("train.epochs", epochs, f"at most, {time}"),
        Choice("train.eval_every", min(every, epochs), "validating takes a small share of the time"),
        Choice("train.patience", _PATIENCE, "validations without a better one end the training"),
    ]
