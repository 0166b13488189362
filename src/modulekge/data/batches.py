"""Shuffled batches that depend on the seed and the epoch alone, so that a run can be continued."""

from collections.abc import Iterator

import numpy as np
import torch

from modulekge.shapes import Ids


def batches(
    count: int, size: int, seed: int, epoch: int, device: torch.device | None = None, parts: int = 1
) -> Iterator[Ids]:
    """Yield the numbers 0 .. count - 1 in pieces, in the order drawn for (seed, pass).

    An epoch is one of the ``parts`` of a pass, which in turn yield each number once.
    """
    parts = min(parts, count)
    whole, part = divmod(epoch - 1, parts)
    order = torch.from_numpy(np.random.default_rng([seed, whole + 1]).permutation(count))
    bounds = [count * i // parts for i in (part, part + 1)]
    yield from torch.split(order[slice(*bounds)].to(device), size)
