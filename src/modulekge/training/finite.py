"""Whether training still works with numbers: a loss may be one while what it left behind is not."""

import torch
from torch import Tensor
from torch.optim import Optimizer

from modulekge.models.model import Model
from modulekge.training.optimizers import state_tensors
from modulekge.training.plateau import PLATEAU


@torch.no_grad()
def not_finite(model: Model, optimizer: Optimizer) -> str:
    """Say what is infinite or no number: a table, the optimiser's memory of one, or a query; else nothing.

    A memory of squares that is infinite stops a row for good, and finite numbers of a relation can describe
    an infinite one. Neither shows in the loss of the epoch in which it happens.
    """
    memory = state_tensors(model, optimizer)
    memory = {name: value for name, value in memory.items() if not name.endswith(PLATEAU)}
    for name, numbers in {**dict(model.named_parameters()), **memory}.items():
        if not finite(numbers):
            return f"{name} became infinite or no number"
    if not finite(model.samples()):
        return "a relation became infinite or no number"
    return ""


def finite(numbers: Tensor) -> bool:
    """Say whether all are finite; their extremes tell, without a copy as large as they are."""
    return not numbers.numel() or all(bool(end.isfinite()) for end in numbers.aminmax())
