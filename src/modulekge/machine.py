"""What this machine can do beyond plain PyTorch: run kernels of ours, compile loops, repeat itself."""

import ctypes
import gc
import importlib
import os
import resource
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
T = TypeVar("T")

_MMAP_THRESHOLD, _TRIM_THRESHOLD, _KEPT = -3, -1, (1 << 31) - 1  # of glibc's mallopt; bytes
_GROWN = 1 << 29  # bytes
_RESIDENT = Path("/proc/self/statm")
_MODELS = 64  # a process may train, one after another, before loops are no longer compiled for more


def kernels(module: str, x: Tensor) -> Any:
    """Return the module of Triton kernels for tensors such as this, or None where they cannot run."""
    return _imported(module) if x.is_cuda and x.dtype == torch.float32 else None


@cache
def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:  # Triton comes with PyTorch on Linux only
        return None


def free_memory(device: torch.device) -> int:
    """Bytes that can still be had: of the GPU, or of what the system and its limits leave to a process."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    own = [] if limit == resource.RLIM_INFINITY else [limit]
    return min([_free_of_machine(), *_free_of_container(), *own])


def _free_of_machine() -> int:
    try:
        lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):  # not Linux
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _free_of_container(group: Path = Path("/sys/fs/cgroup")) -> list[int]:
    """What is left of the memory that a container was given, where it was given so much."""
    try:
        most, held = ((group / f"memory.{name}").read_text("utf-8") for name in ("max", "current"))
        return [max(0, int(most) - int(held))]
    except (OSError, ValueError):  # no container, or "max": as much as there is
        return []


def held_memory() -> int:
    """Bytes that this process holds at most so far: PyTorch, and what was read."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def is_short(error: Exception) -> bool:
    """Whether this says that there was not enough memory, for which PyTorch has no class on a CPU."""
    return isinstance(error, MemoryError) or any(
        words in str(error) for words in ("out of memory", "allocate")
    )


@cache
def keep_memory() -> None:
    """Keep what is freed for the next step, where the C library lets us.

    glibc gives large pieces back to the system, which fills each page anew with zeros: a tenth of a step of
    an embedding and more, and a third of a question to paths.
    """
    with suppress(OSError, AttributeError):  # another system, or another C library
        mallopt = ctypes.CDLL(None).mallopt
        for setting in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
            mallopt(setting, _KEPT)


def give_memory_back() -> None:
    """Give what was freed, and kept for a next step, back to the system: another model has other pieces."""
    gc.collect()  # a model and what trains it know each other
    _trim()


def frugal(work: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """Have work that yields part by part give memory back whenever the process holds much more than before.

    glibc does not find again all large pieces that it keeps, and takes new ones.
    """

    @wraps(work)
    def watched(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        held = _trimmed(0)
        for part in work(*args, **kwargs):
            yield part
            held = _trimmed(held)

    return watched


def _trimmed(before: int) -> int:
    """Give back what is free once much more is held than before; return what was held after that."""
    if _resident() <= before + _GROWN:
        return before
    _trim()
    return _resident()


def _trim() -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _resident() -> int:
    """Bytes of this process that lie in memory now, where the system says it."""
    try:
        return int(_RESIDENT.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux
        return 0


@cache
def has_bfloat16(device: str) -> bool:
    """Whether such a device multiplies in bfloat16 itself; a CPU without is many times slower."""
    described = Path("/proc/cpuinfo")
    return device != "cpu" or not described.exists() or "bf16" in described.read_text("utf-8")


@cache  # each change of the filters has Python show anew what it has shown
def _hush() -> None:
    warnings.filterwarnings("ignore", "Deterministic behavior was enabled")


@contextmanager
def repeatable() -> Iterator[None]:
    """Add up in an order that is the same each time, so that the same seed gives the same bits.

    Of products of matrices PyTorch warns, for cuBLAS may choose another way where streams share its memory;
    each stream has its own from PyTorch.
    """
    memory: Any = torch.utils.deterministic
    before = torch.get_deterministic_debug_mode(), memory.fill_uninitialized_memory
    torch.set_deterministic_debug_mode("warn")  # use_deterministic_algorithms would import the compiler
    memory.fill_uninitialized_memory = False  # nothing here reads what it has not written
    _hush()
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before[0])
        memory.fill_uninitialized_memory = before[1]


@cache
def compiled(function: Callable[..., Any], dynamic: bool | None = None) -> Callable[..., Any]:
    """Return the function as compiled loops, anew for each model it meets; on a GPU several to a kernel."""
    torch._dynamo.config.recompile_limit = _MODELS
    settings: Any = importlib.import_module("torch._inductor.config")
    if hasattr(settings, "deterministic"):  # sums in one order here too
        settings.deterministic = True
    return torch.compile(function, dynamic=dynamic, options={"combo_kernels": True})


def can_compile(device: str) -> bool:
    """Whether torch.compile has what it needs for this kind of device."""
    return not compile_trouble(device)


@cache
def compile_trouble(device: str) -> str:
    """Say what keeps torch.compile from working for such a device, if anything; tried once on a small sum."""
    try:
        torch.compile(lambda x: x + 1)(torch.ones(2, device=device))
    except Exception as error:  # whatever is missing, plain PyTorch does without it
        return next(filter(None, str(error).splitlines()), type(error).__name__)
    return ""
