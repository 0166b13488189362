"""Settings by rule: what to train with on a graph for which there is no recipe, and why.

docs/training.md has the rules as a table, on what they rest and what they gave.
"""

from dataclasses import dataclass, replace
from math import ceil, log2, sqrt
from typing import Any

import torch

from modulekge.config import Config
from modulekge.data.dataset import Dataset
from modulekge.machine import free_memory
from modulekge.models.spec import ModelSpec, named, spec_of

DEFAULT_MODEL = "ModulE-RC"
_REALS = 256  # numbers of an entity that meet a query
_LEAST_REALS, _LEAST_REALS_FOR_TIME = 8, 64  # down to which memory, and time, may bring them
_LEAST_BATCH, _LARGEST_BATCH, _LEAST_STEPS = 128, 4096, 16
_LEAST_PENALTY, _LARGEST_PENALTY = 0.003, 0.05
_PENALTY_RATE = 0.0016  # per entity and root of the number of triples
_DISTANCE_PENALTY = 0.001
_EPOCHS, _LEAST_EPOCHS, _EPOCHS_UNWATCHED = 100, 20, 30
_VALIDATIONS, _PATIENCE = 20, 5
_AVERAGE = 0.7
_NEGATIVES = 4096
_MINUTES, _LONGEST_HOURS = 5, 2  # a training aimed at, and one beyond which accuracy is given up for time
_MEMORY = 0.5  # share of the free memory that training may take
_COPIES = 8  # of the tables: weights, slopes, Adagrad's sums, means, and what is written to disk
_PASSES = 6  # over the tables in a step: entities made, slopes brought back, Adagrad
# On a thread of a CPU and on a GPU: multiplications and additions per second in products of matrices,
# bytes moved per second, and seconds that a step takes however small (docs/performance.md)
_SPEEDS = {"cpu": (2.5e10, 5e9, 5e-3), "cuda": (4e13, 2e12, 5e-4)}


@dataclass(frozen=True)
class Size:
    """How large a graph is: entities, triples to train on, triples to validate with."""

    entities: int
    train: int
    valid: int

    @classmethod
    def of(cls, dataset: Dataset) -> "Size":
        """Count a data set."""
        return cls(len(dataset.entities), len(dataset.train), len(dataset.valid))


@dataclass(frozen=True)
class Machine:
    """What there is to train on: the kind of device, threads of the CPU, free bytes on the device."""

    kind: str
    threads: int
    memory: int

    @classmethod
    def at(cls, device: torch.device) -> "Machine":
        """Look at a device."""
        return cls(device.type, torch.get_num_threads(), free_memory(device))

    @property
    def words(self) -> str:
        """The machine as a reader would call it."""
        threads = "one CPU thread" if self.threads == 1 else f"{self.threads} CPU threads"
        return "a GPU" if self.kind == "cuda" else threads


@dataclass(frozen=True)
class Choice:
    """A setting that a rule chose: its dotted key, its value, the reason."""

    key: str
    value: Any
    reason: str


@dataclass(frozen=True)
class Load:
    """What it takes to train a row with k blocks on a graph: bytes and seconds, estimated."""

    size: Size
    machine: Machine
    spec: ModelSpec
    k: int
    batch: int
    candidates: int  # scored for each question

    @classmethod
    def of(cls, size: Size, machine: Machine, config: Config) -> "Load":
        """Return what a run with these settings takes."""
        candidates = size.entities if config.loss.candidates == "all" else config.loss.negatives
        return cls(size, machine, spec_of(config.model), config.model.k, config.train.batch, candidates)

    @property
    def reals(self) -> int:
        """Numbers of an entity that meet a query."""
        return self.k * self.spec.query_size

    @property
    def bytes(self) -> float:
        """What the tables of entities take, with all that is kept beside them."""
        stored = self.k * sum(group.width for group in self.spec.entity_groups)
        return 4.0 * self.size.entities * (_COPIES * stored + 2 * self.reals)

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return ceil(2 * self.size.train / self.batch)

    @property
    def epoch_seconds(self) -> float:
        """An epoch: three products of matrices, passes over the tables, and the steps themselves."""
        flops = 6.0 * 2 * self.size.train * self.candidates * self.reals
        moved = self.steps * _PASSES * 4.0 * self.size.entities * self.reals
        return self._seconds(flops, moved, self.steps)

    @property
    def least_hours(self) -> float:
        """The shortest training that is worth its name."""
        return _LEAST_EPOCHS * self.epoch_seconds / 3600

    @property
    def validation_seconds(self) -> float:
        """A validation: one product of matrices against all entities."""
        return self._seconds(2.0 * 2 * self.size.valid * self.size.entities * self.reals, 0.0, 1)

    def _seconds(self, flops: float, moved: float, steps: int) -> float:
        rate, bandwidth, each = _SPEEDS[self.machine.kind]
        threads = self.machine.threads if self.machine.kind == "cpu" else 1
        return flops / (rate * threads) + moved / (bandwidth * threads) + each * steps


def choose(size: Size, machine: Machine, model: ModelSpec | None = None) -> tuple[Choice, ...]:
    """Return settings for a graph of this size on this machine, each with its reason.

    A model that was asked for is not among them. Nothing is looked at but the arguments.
    """
    spec = model or named(DEFAULT_MODEL)
    load, why = _largest(size, machine, spec)
    choices = [] if model else [Choice("model.name", spec.name, "near the best on every graph tuned for")]
    choices += [
        Choice("model.k", load.k, why),
        Choice("model.scalar_scale", 0.1, "gets going sooner than smaller numbers"),
        Choice("model.vector_scale", 0.1, "lets directions turn quickly at first"),
        _penalty(size, spec),
        Choice("train.batch", load.batch, f"makes {load.steps:,} steps of {2 * size.train:,} questions"),
    ]
    if load.candidates < size.entities:
        exact = _duration(3600 * replace(load, candidates=size.entities).least_hours)
        choices += [
            Choice(
                "loss.candidates", "shared", f"{_LEAST_EPOCHS} epochs over all entities would take {exact}"
            ),
            Choice("loss.negatives", load.candidates, "drawn once for all questions of a batch"),
        ]
    if machine.kind == "cuda":
        choices.append(Choice("train.precision", "tf32", "twice as fast on a GPU, and ranks alike"))
    return (*choices, *_course(load))


def _largest(size: Size, machine: Machine, spec: ModelSpec) -> tuple[Load, str]:
    """Return the largest model that memory and time allow, and the reason for its size."""
    questions = 2 * size.train
    batch = min(max(2 ** round(log2(questions) / 2), _LEAST_BATCH), _LARGEST_BATCH)
    batch = min(batch, max(1, questions // _LEAST_STEPS))
    load = Load(size, machine, spec, max(1, _REALS // spec.query_size), batch, size.entities)
    why = f"{load.reals} numbers to an entity"
    while load.bytes > _MEMORY * machine.memory and load.reals > _LEAST_REALS and load.k > 1:
        load = replace(load, k=load.k // 2)
        why = f"as much as {machine.memory / 2**30:.1f} GiB of free memory allow"
    timely = _shortened(load)
    if timely.least_hours > _LONGEST_HOURS and size.entities > _NEGATIVES:
        timely = _shortened(replace(load, candidates=_NEGATIVES))
    if timely.k < load.k:
        why = f"as much as {_LONGEST_HOURS} hours allow on {machine.words}"
    return timely, why


def _shortened(load: Load) -> Load:
    """Take fewer numbers until the shortest training is not too long, or they are few."""
    while load.least_hours > _LONGEST_HOURS and load.reals > _LEAST_REALS_FOR_TIME and load.k > 1:
        load = replace(load, k=load.k // 2)
    return load


def _penalty(size: Size, spec: ModelSpec) -> Choice:
    """Penalise the more, the fewer of the possible pairs of entities are joined."""
    if not spec.score.bilinear:
        return Choice("regularizer.weight", _DISTANCE_PENALTY, "distances hold their numbers themselves")
    strength = _PENALTY_RATE * size.entities / sqrt(size.train)
    strength = min(max(strength, _LEAST_PENALTY), _LARGEST_PENALTY)
    reason = f"{size.train / size.entities:.1f} triples to an entity, {size.entities:,} entities"
    return Choice("regularizer.weight", float(f"{strength:.2g}"), reason)


def _course(load: Load) -> list[Choice]:
    """Return how long to train, and when to validate and to stop."""
    seconds = load.epoch_seconds
    epochs = min(max(int(60 * _MINUTES / seconds), _LEAST_EPOCHS), _EPOCHS)
    if load.size.valid == 0:
        epochs = min(epochs, _EPOCHS_UNWATCHED)
        return [
            Choice(
                "train.epochs", epochs, f"no valid split says when to stop; about {_duration(seconds)} each"
            ),
            Choice("train.ema", _AVERAGE, "nor which epoch is best, so a mean over some is kept"),
        ]
    time = f"about {_duration(seconds)} each and {_duration(epochs * seconds)} in all"
    every = max(ceil(epochs / _VALIDATIONS), ceil(5 * load.validation_seconds / seconds))
    return [
        Choice("train.epochs", epochs, f"at most, {time} on {load.machine.words}"),
        Choice("train.eval_every", min(every, epochs), "validating takes a small share of the time"),
        Choice("train.patience", _PATIENCE, "validations without a better one end the training"),
    ]


def _duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    for unit, name in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds:.1g} s"
