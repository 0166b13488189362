"""What it takes to train on a graph: bytes and seconds, reckoned from its size and the machine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import torch

from modulekge.config import Config, PathsConfig, make_config, nested
from modulekge.data.dataset import Dataset
from modulekge.machine import free_memory
from modulekge.models.messages import Message
from modulekge.models.paths import MOST_NUMBERS
from modulekge.models.spec import ModelSpec, spec_of

# Copies of the tables: weights, gradients, Adagrad's sums, means, and what is written to disk; with drawn
# candidates there are gradients of some rows alone
_COPIES, _COPIES_DRAWN = 8, 4
_MOVES = 6  # of the tables in a step: entities made, gradients brought back, Adagrad
# On a thread of a CPU and on a GPU: multiplications and additions per second in products of matrices,
# bytes moved per second, and seconds that a step takes however small (docs/performance.md)
_SPEEDS = {"cpu": (2.5e10, 5e9, 5e-3), "cuda": (4e13, 2e12, 5e-4)}
# Of a model of paths: bytes kept of a layer for a number of its messages, and for one of its states on each
# machine; messages that cost as much as to update an entity; numbers of messages in a second, there and back,
# and how much faster there alone is (docs/paths.md)
_MESSAGE_BYTES, _STATE_BYTES = 8.0, {"cpu": 128.0, "cuda": 26.0}
_ENTITY_MESSAGES = {"cpu": 2, "cuda": 14}
_MESSAGE_RATES = {"cpu": 1.8e8, "cuda": 5.5e11}
_TRAINING_TO_ASKING = 4
_VALIDATED = 300  # triples of a sample, about


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


def with_choices(choices: Iterable[Choice], overrides: Mapping[str, Any]) -> Config:
    """Return the settings that rules chose, with what was asked for over them."""
    return make_config([*(nested(choice.key, choice.value) for choice in choices), overrides], "settings")


@dataclass(frozen=True)
class Load:
    """What it takes to train a row with k blocks on a graph: bytes and seconds, estimated."""

    size: Size
    machine: Machine
    spec: ModelSpec
    k: int
    batch: int
    candidates: int  # scored for each question

    @property
    def reals(self) -> int:
        """Numbers of an entity that meet a query."""
        return self.k * self.spec.query_size

    @property
    def bytes(self) -> float:
        """What the tables of entities take, with all that is kept beside them."""
        stored = self.k * sum(group.width for group in self.spec.entity_groups)
        copies = _COPIES if self.candidates >= self.size.entities else _COPIES_DRAWN
        return 4.0 * self.size.entities * (copies * stored + 2 * self.reals)

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return ceil(2 * self.size.train / self.batch)

    @property
    def times(self) -> "Times":
        """A pass: three products of matrices, the tables moved, its steps. A validation: one product."""
        touched = self.size.entities if self.candidates == self.size.entities else self.candidates
        flops = 6.0 * 2 * self.size.train * self.candidates * self.reals
        moved = self.steps * _MOVES * 4.0 * touched * self.reals
        asking = 2.0 * self.size.entities * self.reals
        validating = self._seconds(2 * self.size.valid * asking, 0.0, 1)
        return Times(self._seconds(flops, moved, self.steps), validating, self._seconds(asking, 0.0, 0))

    def _seconds(self, flops: float, moved: float, steps: int) -> float:
        rate, bandwidth, each = _SPEEDS[self.machine.kind]
        threads = self.machine.threads if self.machine.kind == "cpu" else 1
        return flops / (rate * threads) + moved / (bandwidth * threads) + each * steps


@dataclass(frozen=True)
class PathLoad:
    """What it takes to train a model of paths."""

    size: Size
    machine: Machine
    paths: PathsConfig
    batch: int
    components: int  # of a state and of the element that moves it, per block

    @property
    def numbers(self) -> float:
        """Numbers of the states and messages of a layer, for one question."""
        entities = _ENTITY_MESSAGES[self.machine.kind] * self.size.entities
        return (2.0 * self.size.train + entities) * self.paths.d * self.components

    @property
    def bytes(self) -> float:
        """What a batch keeps of its layers until gradients have come back through them."""
        states = _STATE_BYTES[self.machine.kind] * self.size.entities
        if self.machine.kind == "cuda":
            return self.paths.layers * self.paths.d * states * self.batch
        at_once = min(self.batch, max(1.0, MOST_NUMBERS / self.numbers))
        messages = _MESSAGE_BYTES * 2 * self.size.train
        return self.paths.layers * self.paths.d * self.components * (states + messages) * at_once

    @property
    def times(self) -> "Times":
        """A pass and a validation: messages at the rate of this kind of machine."""
        threads = self.machine.threads if self.machine.kind == "cpu" else 1
        question = self.paths.layers * self.numbers / (_MESSAGE_RATES[self.machine.kind] * threads)
        questions, asking = 2 * min(self.size.valid, _VALIDATED), question / _TRAINING_TO_ASKING
        return Times(2 * self.size.train * question, questions * asking, asking)


def load_of(size: Size, machine: Machine, config: Config) -> Load | PathLoad:
    """Return what a run with these settings takes."""
    spec = spec_of(config.model)
    if spec.along_paths:
        return PathLoad(size, machine, config.paths, config.train.batch, Message(spec).terms)
    candidates = size.entities if config.loss.candidates == "all" else config.loss.negatives
    return Load(size, machine, spec, config.model.k, config.train.batch, candidates)


@dataclass(frozen=True)
class Times:
    """Seconds of a pass over the questions, of a validation, and of a question that is only asked.

    Measured by taking steps, or reckoned.
    """

    a_pass: float
    validation: float
    question: float = 0.0
    measured: bool = False
