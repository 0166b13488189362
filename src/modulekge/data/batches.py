"""Shuffled batches that depend on the seed and the epoch alone, so that a run can be continued."""

from collections.abc import Iterator

import numpy as np
import torch

from modulekge.shapes import Ids


def batches(
    count: int, size: int, seed: int, epoch: int, device: torch.device | None = None
) -> Iterator[Ids]:
    """Yield the numbers 0 .. count - 1 in pieces, in the order drawn for (seed, epoch)."""
    order = torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(count))
    yield from torch.split(order.to(device), size)
