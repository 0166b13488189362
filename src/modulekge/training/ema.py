"""A running mean of the weights over epochs, which ranks better than the weights of any one of them."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.optim import Optimizer

from modulekge.config import TrainConfig

MEAN = "mean"  # its name in the optimiser's memory, with which it is written down


@torch.no_grad()
def update_mean(model: nn.Module, optimizer: Optimizer, config: TrainConfig, epoch: int) -> None:
    r"""$\bar\theta \leftarrow a \bar\theta + (1 - a) \theta$ after epoch $i$, with $a \le 1 - 1/i$.

    So the first epochs weigh alike, and none of them more than those that follow.
    """
    if not config.ema:
        return
    for table in (table for table in model.parameters() if table.numel()):
        memory = optimizer.state[table]
        if MEAN in memory:
            memory[MEAN].lerp_(table, 1 - min(config.ema, 1 - 1 / epoch))
        else:
            memory[MEAN] = table.clone()


@contextmanager
def averaged(model: nn.Module, optimizer: Optimizer, config: TrainConfig) -> Iterator[None]:
    """Lend the model its mean weights, where it has them; it has its own again afterwards."""
    own = {}
    for table in model.parameters() if config.ema else ():
        if MEAN in (memory := optimizer.state.get(table, {})):
            own[table] = table.detach().clone()
            table.data.copy_(memory[MEAN])
    try:
        yield
    finally:
        for table, weights in own.items():
            table.data.copy_(weights)
