"""What training will need here, before an hour is spent on it."""

import time
from dataclasses import dataclass

import torch

from modulekge.config import Config
from modulekge.data.dataset import Dataset
from modulekge.run.defaults import Load, Machine, Size
from modulekge.run.train import begin
from modulekge.training.optimizers import begin_epoch, pick_device
from modulekge.training.questions import Questions
from modulekge.training.step import Step

_STEPS = 3  # that are timed, after one that is not


@dataclass(frozen=True)
class Estimate:
    """Bytes of memory, and seconds of an epoch; none where the model does not fit and was not tried."""

    device: str
    memory: int
    free: int
    epoch_seconds: float | None
    epochs: int

    @property
    def fits(self) -> bool:
        """Whether there is memory enough."""
        return self.memory < self.free


def needs(dataset: Dataset, config: Config) -> Estimate:
    """Reckon the memory of a training, and time a few of its steps where it fits."""
    device = pick_device(config.train.device)
    machine = Machine.at(device)
    memory = int(Load.of(Size.of(dataset), machine, config).bytes)
    seconds = _epoch_seconds(dataset, config, device) if memory < machine.memory else None
    return Estimate(str(device), memory, machine.memory, seconds, config.train.epochs)


def _epoch_seconds(dataset: Dataset, config: Config, device: torch.device) -> float:
    questions = Questions.of(dataset, config.loss, device)
    model, optimizer = begin(config, dataset)
    begin_epoch(optimizer, config.train, 1)
    step = Step(model, questions, optimizer, config)
    order = torch.randperm(len(questions.triples), generator=torch.Generator().manual_seed(0)).to(device)
    batches = order.split(config.train.batch)[: _STEPS + 1]
    step.begin(1)
    step(batches[0])
    step.mean(1)
    started = time.perf_counter()
    timed = batches[1:] or batches
    for rows in timed:
        step(rows)
    step.mean(1)
    return (time.perf_counter() - started) / sum(map(len, timed)) * len(order)
