"""Settings by rule for a model of paths; docs/paths.md has what they rest on."""

from collections.abc import Callable, Iterator, Mapping
from math import ceil
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from modulekge.config import Config, holds
from modulekge.data.dataset import Dataset
from modulekge.run.load import Choice, Machine, Size, Times, load_of, with_choices
from modulekge.shapes import Triples
from modulekge.wording import duration

_QUESTIONS = 800_000  # that a training asks at most, and in how many passes over small graphs
_PASSES = 8
_ENOUGH = 15_000  # questions, or passes, that make a training worth its name
_ENOUGH_PASSES = 1.5
_BATCH, _LEAST_BATCH, _STEPS = 64, 4, 400
_EPOCHS = 8  # of which each is validated
_SIZES = ((6, 32), (4, 32), (4, 16), (3, 16), (2, 32))  # layers and numbers of a state, the best first
_NEAR = 2  # layers that reach few of many edges: how few, only measuring tells
_RARELY = 0.5  # share of what train has, below which valid joins entities that train joins
_ALWAYS = (
    Choice("regularizer.weight", 0.0, "weights belong to relations, and these are few"),
    Choice("paths.prior", "relations", "speaks for candidates that no path reaches"),
    Choice(
        "paths.dropout", 0.1, "hides a tenth of the edges in each step, so that no few of them are relied on"
    ),
    Choice("train.optimizer", "adam", "the layers are a network"),
    Choice("train.lr", 0.003, "with a schedule, as in the runs that docs/paths.md has"),
    Choice("train.beta2", 0.98, "likewise"),
    Choice("train.schedule", "cosine", "ends at the best weights, so nothing stops it early"),
    Choice("train.warmup", 0.05, "lets the first steps be small"),
    Choice("train.patience", 0, "a schedule has to come to its end"),
)


def choose_paths(
    size: Size,
    machine: Machine,
    overrides: Mapping[str, Any],
    budget: float,
    pace: Callable[[Config], Times] | None,
) -> tuple[Choice, ...]:
    """Return settings for a graph of this size on this machine, for a training of ``budget`` seconds."""
    passes = min(_PASSES, _QUESTIONS / (2 * size.train))
    least = min(_ENOUGH / (2 * size.train), _ENOUGH_PASSES)
    for choices in _ladder(size, machine):
        config = with_choices((*_ALWAYS, *choices), overrides)
        times = load_of(size, machine, config).times
        if pace and (config.paths.layers <= _NEAR or times.a_pass * least < 4 * budget):
            times = pace(config)
        if times.a_pass * least <= budget:
            break
    affordable = min(passes, budget / times.a_pass)
    batch = int(min(_BATCH, max(_LEAST_BATCH, affordable * 2 * size.train / _STEPS)))
    if pace and times.measured:  # with this batch, and with memory that the first steps have had
        times = pace(with_choices((*_ALWAYS, *choices, Choice("train.batch", batch, "")), overrides))
    passes = min(passes, budget / times.a_pass)
    parts = max(1, ceil(_EPOCHS / passes))
    epochs = max(1, round(passes * parts))
    how = "measured" if times.measured else "estimated"
    time = f"about {duration(epochs * times.a_pass / parts)} on {machine.words}, {how}"
    every = max(1, ceil(10 * times.validation * parts / times.a_pass)) if size.valid else epochs
    course = (
        Choice("train.batch", batch, f"makes {ceil(passes * 2 * size.train / batch):,} steps"),
        Choice("train.parts", parts, "epochs make a pass over the questions"),
        Choice("train.epochs", epochs, time),
        Choice("train.eval_every", min(every, epochs), "validating takes a small share of the time"),
    )
    chosen = {choice.key: choice for choice in (*_ALWAYS, *choices, *course)}
    return tuple(choice for choice in chosen.values() if not holds(overrides, choice.key))


def _ladder(size: Size, machine: Machine) -> Iterator[tuple[Choice, ...]]:
    """Yield layers and states as one would like them, and then what takes less time."""
    for i, (layers, d) in enumerate(_SIZES):
        why = f"as much as the time allows on {machine.words}" if i else "as long as paths need to be"
        batch = Choice("train.batch", min(_BATCH, max(1, size.train // 8)), "usual")
        yield Choice("paths.layers", layers, why), Choice("paths.d", d, "numbers of a state"), batch


def left_out(dataset: Dataset) -> Choice:
    """Choose what is hidden with a triple: what is asked later decides, which valid shows.

    Where valid asks for pairs that no fact of train joins, a model must not learn to look for one.
    """
    train = _joined(dataset.train, dataset, itself=1)
    if len(dataset.valid) == 0:
        return Choice("paths.left_out", "triple", "no valid split says whether other edges may stay")
    of_train, of_valid = float(train.float().mean()), float(_joined(dataset.valid, dataset, 0).float().mean())
    pair = of_valid < _RARELY * of_train
    reason = (
        f"train joins {of_valid:.0%} of the pairs that valid asks for, and {of_train:.0%} of its own twice"
    )
    return Choice("paths.left_out", "pair" if pair else "triple", reason)


def _joined(triples: Triples, dataset: Dataset, itself: int) -> Bool[Tensor, " _m"]:
    """Say which triples have two ends that a fact of train joins, other than the triple itself."""
    count = len(dataset.entities)

    def keys(some: Triples) -> Tensor:
        heads, tails = some[:, 0], some[:, 2]
        return torch.minimum(heads, tails) * count + torch.maximum(heads, tails)

    known, counts = keys(dataset.train).unique(return_counts=True)
    places = torch.searchsorted(known, keys(triples)).clamp(max=len(known) - 1)
    found: Tensor = (known[places] == keys(triples)) & (counts[places] > itself)
    return found
