"""A learning rate that is halved where the loss stays on a plateau, worked out where the loss is."""

import torch
from torch import Tensor
from torch.optim import Optimizer

from modulekge.config import TrainConfig

PLATEAU = "plateau"  # its name in the optimiser's memory, with which it is written down
_LOWER = 1 - 1e-4  # a loss is lower than another if it is below this much of it
_LEAST = 2e-6  # of the rate at first; from there on it stays


@torch.no_grad()
def ease(optimizer: Optimizer, loss: Tensor, config: TrainConfig) -> None:
    r"""$\eta \leftarrow \eta / 2$ if $p$ steps in a row were no lower than the lowest before them.

    Then nothing is counted for $p / 2$ steps. These are the rules of PyTorch's ``ReduceLROnPlateau``,
    without a wait of the host for the loss.
    """
    memory = optimizer.state[optimizer.param_groups[0]["params"][0]]
    if PLATEAU not in memory:
        memory[PLATEAU] = loss.new_tensor([1.0, torch.inf, 0.0, 0.0])
    share, lowest, stuck, rest = memory[PLATEAU].unbind()
    stuck.add_(1).mul_(loss >= lowest * _LOWER)
    lowest.copy_(torch.where(loss < lowest * _LOWER, loss, lowest))
    stuck.mul_(rest <= 0)
    rest.sub_(1)
    over = stuck > config.plateau_steps
    factor = torch.where(over & (share > _LEAST), 0.5, 1.0)
    share.mul_(factor)
    rest.copy_(torch.where(over, config.plateau_steps // 2, rest))
    stuck.mul_(~over)
    for group in optimizer.param_groups:
        rate = group["lr"]
        group["lr"] = rate.mul_(factor) if isinstance(rate, Tensor) else rate * float(factor)


def share_left(optimizer: Optimizer) -> float:
    """Return what plateaus have left of the rate."""
    memory = optimizer.state.get(optimizer.param_groups[0]["params"][0], {})
    return float(memory[PLATEAU][0]) if PLATEAU in memory else 1.0
