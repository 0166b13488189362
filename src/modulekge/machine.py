"""What this machine can do beyond plain PyTorch: run kernels of ours, compile loops."""

import importlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


def kernels(module: str, x: Tensor) -> Any:
    """Return the module of Triton kernels for tensors such as this, or None where they cannot run."""
    return _imported(module) if x.is_cuda and x.dtype == torch.float32 else None


@cache
def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:  # Triton comes with PyTorch on Linux only
        return None


@cache
def has_bfloat16(device: str) -> bool:
    """Whether such a device multiplies in bfloat16 itself; a CPU without is many times slower."""
    described = Path("/proc/cpuinfo")
    return device != "cpu" or not described.exists() or "bf16" in described.read_text("utf-8")


@cache
def compiled(function: Callable[..., Any], dynamic: bool | None = None) -> Callable[..., Any]:
    """Return the function as compiled loops."""
    return torch.compile(function, dynamic=dynamic)


@cache
def can_compile(device: str) -> bool:
    """Whether torch.compile has what it needs for this kind of device; tried once on a small sum."""
    try:
        torch.compile(lambda x: x + 1)(torch.ones(2, device=device))
    except Exception:  # whatever is missing, plain PyTorch does without it
        return False
    return True
