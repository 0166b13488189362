"""What training will need here, before an hour is spent on it: time by taking some steps, and memory."""

import time
from dataclasses import dataclass, replace
from itertools import islice
from statistics import median
from typing import Any

import torch
from torch import nn

from modulekge.config import Config
from modulekge.data.dataset import Dataset
from modulekge.evaluation.evaluate import rank
from modulekge.machine import give_memory_back, held_memory
from modulekge.models.paths import Paths
from modulekge.models.spec import spec_of
from modulekge.run.checkpoint import new_model
from modulekge.run.defaults import Pace
from modulekge.run.load import Machine, Size, Times, load_of
from modulekge.training.fit import make_step, valid_questions
from modulekge.training.optimizers import begin_epoch, make_optimizer, pick_device
from modulekge.training.questions import Questions
from modulekge.workers import many

_QUICK = 20.0  # seconds of a whole training, as estimated, that need not be measured
# For so many seconds steps are timed, after one that is not, but so many at least, within longer, and at most
_SECONDS, _LONGEST, _LEAST_STEPS, _STEPS = 0.5, 4.0, 4, 30
_ASKED = 8  # questions of a step along paths, which take as long in a larger one
_RANKED = 64  # questions that are timed
_WEIGHT = 0.1  # of what is timed: to draw them would take as long as the steps


@dataclass(frozen=True)
class Estimate:
    """Bytes of memory, and seconds of an epoch; none where the model does not fit and was not tried.

    A mixture has its time in ``minutes`` instead, whatever the number of its epochs.
    """

    device: str
    memory: int
    free: int
    epoch_seconds: float | None = None
    epochs: int | None = None
    minutes: float | None = None

    @property
    def fits(self) -> bool:
        """Whether there is memory enough."""
        return self.memory < self.free


def needs(dataset: Dataset, config: Config, pace: Pace) -> Estimate:
    """Reckon the memory of a training, and where it fits its time by the pace of this machine."""
    device = pick_device(config.train.device)
    machine = Machine.at(device)
    memory = int(load_of(Size.of(dataset), machine, config).bytes)
    seconds = pace(config).a_pass / config.train.parts if memory < machine.memory else None
    return Estimate(str(device), held_memory() + memory, machine.memory, seconds, config.train.epochs)


def reckoned(dataset: Dataset, config: Config) -> Times:
    """Return how long training and validating take by estimate alone."""
    return load_of(Size.of(dataset), Machine.at(pick_device(config.train.device)), config).times


class Pacer:
    """How long training and validating take on a graph, by its settings; each is measured once."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset, self._known = dataset, dict[Config, Times]()

    def __call__(self, config: Config) -> Times:
        """Return the times, reckoned where training is quick, memory short, or a GPU or others take part."""
        spec = spec_of(config.model)
        row: dict[str, Any] = {"name": spec.name, **spec.words()}  # however the settings name it
        key = replace(
            config,
            data="",
            model=replace(config.model, **row),
            train=replace(config.train, epochs=1, eval_every=1, patience=0, parts=1),
        )
        if key in self._known:
            return self._known[key]
        device = pick_device(config.train.device)
        load = load_of(Size.of(self._dataset), Machine.at(device), config)
        quick = config.train.epochs / config.train.parts * load.times.a_pass < _QUICK
        if quick or device.type != "cpu" or many() or load.bytes > load.machine.memory:
            return load.times
        self._known[key] = measured(self._dataset, config, device)
        give_memory_back()
        return self._known[key]


def measured(dataset: Dataset, config: Config, device: torch.device) -> Times:
    """Take some steps and rank some questions, and reckon from them; what weights are takes no time."""
    model = new_model(config, dataset).to(device)
    for weights in model.parameters():
        nn.init.constant_(weights, _WEIGHT)
    optimizer = make_optimizer(model, config.train)
    along = isinstance(model, Paths)
    questions = Questions.of(dataset, config.loss, device, known=along)
    begin_epoch(optimizer, config.train, 1)
    step = make_step(model, questions, optimizer, config)
    order = torch.randperm(len(questions.triples), generator=torch.Generator().manual_seed(0)).to(device)
    batches = order.split(min(config.train.batch, _ASKED) if along else config.train.batch)
    step.begin(1)
    step(batches[0])
    step.mean(1)
    paces: list[float] = []  # seconds of a question, by steps
    begun = time.perf_counter()
    for rows in islice(batches[1:] or batches, _STEPS):
        started = time.perf_counter()
        step(rows)
        step.mean(1)
        paces.append((time.perf_counter() - started) / len(rows))
        if time.perf_counter() - begun > (_SECONDS if len(paces) >= _LEAST_STEPS else _LONGEST):
            break
    a_pass = median(paces) * len(order)  # a step that something else held up says nothing of the others
    scorer = model.scorer()
    valid = valid_questions(scorer, dataset)
    started = time.perf_counter()
    rank(scorer, valid[:_RANKED], dataset.known)
    question = (time.perf_counter() - started) / max(1, min(len(valid), _RANKED))
    return Times(a_pass, question * len(valid), question, measured=True)
