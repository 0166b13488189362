"""What the benchmarks share: a model in training, and how to time steps and ranks."""

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from modulekge.config import Config
from modulekge.data.filter_index import FilterIndex
from modulekge.errors import ModulekgeError
from modulekge.models.embedding import Embedding
from modulekge.training.optimizers import begin_epoch, make_optimizer
from modulekge.training.questions import Questions
from modulekge.training.step import Step
from modulekge.training.tables import PlainTables


@dataclass
class Timing:
    """Seconds before the first step is at full speed, then of a step; the most bytes held meanwhile."""

    setup: float
    step: float
    peak: int


class PlainStep(Step):
    """A step as one would write it: all scores of a batch kept, and autograd through them."""

    _exact_loss = Step._plain_loss

    def __init__(self, model: Embedding, *given: Any) -> None:
        super().__init__(model, *given)
        self._build, self._compile, self._tables = None, False, PlainTables(model)


def plainly(main: Callable[[], None]) -> None:
    """Run a benchmark; what a user can mend is said in one line."""
    try:
        main()
    except ModulekgeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def synchronize(device: torch.device) -> None:
    """Wait for a GPU; a CPU has nothing under way."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def time_steps(
    model: Embedding,
    questions: Questions,
    config: Config,
    steps: int,
    rounds: int = 3,
    kind: type[Step] = Step,
) -> Timing:
    """Time so many steps: the median of a few rounds."""
    device = model.entity_scalar.device
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    optimizer = make_optimizer(model, config.train)
    step = kind(model, questions, optimizer, config)
    begin_epoch(optimizer, config.train, 1)
    batch, count = config.train.batch, len(questions.triples)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0)).to(device)
    batches = [rows for rows in order.split(batch) if len(rows) == batch]
    step.begin(1)
    for i in range(5 if device.type == "cuda" else 2):
        step(batches[i % len(batches)])
    step.mean(1)
    ready, seconds = time.perf_counter() - started, []
    for _ in range(rounds):
        begin = time.perf_counter()
        for i in range(steps):
            step(batches[i % len(batches)])
        step.mean(1)
        seconds.append((time.perf_counter() - begin) / steps)
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
    return Timing(ready, statistics.median(seconds), peak)


def best_of(function: Callable[[], object], device: torch.device, repeats: int = 5) -> float:
    """The shortest of a few runs, in seconds; a first one warms up."""
    function()
    seconds = []
    for _ in range(repeats):
        synchronize(device)
        begin = time.perf_counter()
        function()
        synchronize(device)
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def write_lines(lines: Iterable[dict[str, Any]], out: Path | None) -> None:
    """Print each line of JSON as it comes, then all; write those so far to a file if one is named."""
    found = []
    for line in lines:
        found.append(line)
        print(json.dumps(line), flush=True)
        if out:
            out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(json.dumps(found))


def random_questions(entities: int, relations: int, count: int, device: torch.device) -> Questions:
    """Questions about nothing, on the device where they are asked."""
    sizes = torch.tensor([entities, relations, entities], device=device)
    triples: Tensor = (torch.rand(count, 3, device=device, dtype=torch.float64) * sizes).long()
    return Questions(triples, None, FilterIndex.of(triples[:1].cpu(), relations).to(device))
