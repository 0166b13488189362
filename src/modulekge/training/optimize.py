"""Optimisers with a state that can be written down, and the precision of matrix products."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.optim import Adagrad, Adam, Optimizer

from modulekge.config import TrainConfig
from modulekge.errors import ConfigError

_OPTIMIZERS: dict[str, type[Optimizer]] = {"adagrad": Adagrad, "adam": Adam}


def make_optimizer(model: nn.Module, config: TrainConfig) -> Optimizer:
    """Return the optimiser of a model's tables; those without numbers are left out."""
    tables = [table for table in model.parameters() if table.numel()]
    return _OPTIMIZERS[config.optimizer](tables, lr=config.lr)  # type: ignore[call-arg]


def set_rate(optimizer: Optimizer, config: TrainConfig, epoch: int) -> None:
    r"""$\eta_i = \eta\, \gamma^{i - 1}$ in epoch $i$: the rate depends on the epoch alone."""
    for group in optimizer.param_groups:
        group["lr"] = config.lr * config.decay ** (epoch - 1)


def state_tensors(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """Return the optimiser's memory, a tensor per table and quantity."""
    return {
        f"{name}.{quantity}": value
        for name, table in model.named_parameters()
        for quantity, value in optimizer.state.get(table, {}).items()
    }


def load_state(model: nn.Module, optimizer: Optimizer, tensors: dict[str, Tensor]) -> None:
    """Give an optimiser back the memory that :func:`state_tensors` took from it."""
    for name, table in model.named_parameters():
        for key, value in tensors.items():
            owner, _, quantity = key.rpartition(".")
            if owner == name:
                device = value.device if quantity == "step" else table.device
                optimizer.state[table][quantity] = value.to(device)


def pick_device(name: str) -> torch.device:
    """Return the device of this name; ``auto`` is CUDA where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"train.device = {name!r}: expected auto, cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"train.device = {name!r}: only cpu and cuda are supported")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"train.device = {name!r}: this machine has {torch.cuda.device_count()} CUDA devices"
        )
    return device


@contextmanager
def matmul_precision(name: str, device: torch.device) -> Iterator[None]:
    """Multiply matrices in float32, in TF32 where the device has it, or in bfloat16."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    try:
        with torch.autocast(device.type, torch.bfloat16) if name == "bfloat16" else nullcontext():
            yield
    finally:
        torch.set_float32_matmul_precision(before)
