"""Shuffled batches that depend on the seed and the epoch alone, so that a run can be continued."""

from collections.abc import Iterator

import numpy as np
import torch

from modulekge.shapes import Triples


def batches(questions: Triples, size: int, seed: int, epoch: int) -> Iterator[Triples]:
    """Yield the rows of one epoch in the order drawn for (seed, epoch)."""
    order = torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(len(questions)))
    yield from torch.split(questions[order.to(questions.device)], size)
