"""Optimisers with a state that can be written down, and the precision of matrix products."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from math import cos, pi

import torch
from torch import Tensor, nn, optim
from torch.optim import Optimizer

from modulekge.config import TrainConfig
from modulekge.errors import ConfigError
from modulekge.machine import has_bfloat16, kernels
from modulekge.training.ema import MEAN
from modulekge.training.plateau import PLATEAU, share_left

# What optimisers remember of a table: numbers in its shape, but for these
_SHAPES = {**dict.fromkeys(("sum", "exp_avg", "exp_avg_sq", MEAN)), "step": (), PLATEAU: (4,)}
_LEAST_SHARE = 0.01  # of the rate, at which a schedule starts and ends
WHOLE = tuple(name for name, shape in _SHAPES.items() if shape is not None)


def make_optimizer(model: nn.Module, config: TrainConfig) -> Optimizer:
    """Return the optimiser of a model's tables; those without numbers are left out.

    On a GPU its rate and its count of steps lie there too, so that a recorded step reads them.
    """
    tables = [table for table in model.parameters() if table.numel() and table.requires_grad]
    betas = 0.9, config.beta2
    if not tables[0].is_cuda:
        if config.optimizer == "adagrad":
            return optim.Adagrad(tables, lr=config.lr, fused=True)
        return optim.Adam(tables, lr=config.lr, betas=betas, fused=True)
    rate = torch.tensor(config.lr, device=tables[0].device)
    if config.optimizer == "adagrad":
        return GpuAdagrad(tables, lr=rate)
    return optim.Adam(tables, lr=rate, betas=betas, capturable=True, fused=True)


class GpuAdagrad(optim.Adagrad):
    r"""$G \mathrel{+}= g^2$, $x \mathrel{-}= \eta\, g / (\sqrt G + \epsilon)$ in one pass over a table."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update the tables that have gradients."""
        for group in self.param_groups:
            for table in (table for table in group["params"] if table.grad is not None):
                total, rate, eps = self.state[table]["sum"], group["lr"], group["eps"]
                if gpu := kernels("modulekge.kernels.step_triton", table):
                    gpu.adagrad_(table, table.grad, total, rate, eps)
                else:
                    total.addcmul_(table.grad, table.grad)
                    table.sub_(rate * table.grad / (total.sqrt() + eps))


def begin_epoch(optimizer: Optimizer, config: TrainConfig, epoch: int) -> None:
    r"""$\eta_i = \eta\, \gamma^{i - 1}$ in epoch $i$; after the drop a tenth of it, with memory cleared.

    The rate depends on the epoch and the optimiser's memory alone, so that a run can be continued.
    """
    set_rate(optimizer, rate_of(optimizer, config, epoch))
    if 0 < config.drop_after < epoch and epoch == config.drop_after + 1:
        for memory in optimizer.state.values():
            for name, quantity in memory.items():
                if name not in (MEAN, PLATEAU):
                    quantity.zero_()


def rate_of(optimizer: Optimizer, config: TrainConfig, epoch: int, done: float = 0.0) -> float:
    r"""Return the rate after a share of an epoch; ``schedule`` is $\frac12 (1 + \cos \pi x)$ or 1.

    $x$ is the share of the whole training; for the first ``warmup`` of it the rate rises from 0.
    """
    dropped = 0 < config.drop_after < epoch
    rate = config.lr * config.decay ** (epoch - 1) * (0.1 if dropped else 1) * share_left(optimizer)
    share = min(1.0, (epoch - 1 + done) / config.epochs)
    if config.schedule == "cosine":
        rate *= (1 + cos(pi * share)) / 2 + _LEAST_SHARE
    if share < config.warmup:
        rate *= (share + _LEAST_SHARE) / (config.warmup + _LEAST_SHARE)
    return rate


def set_rate(optimizer: Optimizer, rate: float | Tensor) -> None:
    """Set the rate; on a GPU in its place, where recorded steps read it."""
    for group in optimizer.param_groups:
        group["lr"] = group["lr"].fill_(rate) if isinstance(group["lr"], Tensor) else float(rate)


def state_tensors(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """Return the optimiser's memory, a tensor per table and quantity."""
    return {
        f"{name}.{quantity}": value
        for name, table in model.named_parameters()
        for quantity, value in sorted(optimizer.state.get(table, {}).items())
    }


def fresh_state(model: nn.Module, config: TrainConfig) -> dict[str, Tensor]:
    """Return what a new optimiser remembers: sums of 0 for Adagrad, nothing yet for Adam.

    Without making one: the first optimiser of a process makes PyTorch import its compiler.
    """
    state: dict[str, Tensor] = {}
    for name, table in model.named_parameters():
        if config.optimizer == "adagrad" and table.numel():
            state |= {f"{name}.step": torch.tensor(0.0), f"{name}.sum": torch.zeros_like(table.data)}
    return state


def fits(model: nn.Module, state: Mapping[str, Tensor], needed: Collection[str]) -> bool:
    """Say whether a memory is of this model's tables, and has what is needed."""
    tables = dict(model.named_parameters())
    for key, value in state.items():
        owner, _, quantity = key.rpartition(".")
        table = tables.get(owner)
        if table is None or quantity not in _SHAPES or not value.is_floating_point():
            return False
        if value.shape != (table.shape if _SHAPES[quantity] is None else _SHAPES[quantity]):
            return False
    return set(needed) <= set(state)


def load_state(model: nn.Module, optimizer: Optimizer, state: Mapping[str, Tensor]) -> bool:
    """Give an optimiser back the memory that :func:`state_tensors` took from it; say whether it fits."""
    if not fits(model, state, state_tensors(model, optimizer)):
        return False
    tables = dict(model.named_parameters())
    for key, value in state.items():
        owner, _, quantity = key.rpartition(".")
        optimizer.state[tables[owner]][quantity] = value.to(tables[owner].device)
    return True


def pick_device(name: str) -> torch.device:
    """Return the device of this name; ``auto`` is CUDA where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"train.device = {name!r}: expected auto, cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda") or name.startswith("cpu:"):
        raise ConfigError(f"train.device = {name!r}: expected auto, cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"train.device = {name!r}: this machine has {torch.cuda.device_count()} CUDA devices"
        )
    return device


def check_matmul(name: str, device: torch.device) -> None:
    """Refuse what a device has no instructions for."""
    if name == "bfloat16" and not has_bfloat16(device.type):
        raise ConfigError('train.precision = "bfloat16": this CPU has no instructions for it; use "float32"')


@contextmanager
def matmul_precision(name: str, device: torch.device) -> Iterator[None]:
    """Multiply matrices in float32, in TF32 where the device has it, or in bfloat16 where it has that."""
    check_matmul(name, device)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    try:
        with torch.autocast(device.type, torch.bfloat16) if name == "bfloat16" else nullcontext():
            yield
    finally:
        torch.set_float32_matmul_precision(before)
