"""The command that looks at this installation: what this machine has, and what works on it."""

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from modulekge.data.benchmarks import DATA_VARIABLE, benchmarks, cache_dir
from modulekge.installation import Check
from modulekge.kernels.distance import block_distance
from modulekge.machine import compile_trouble, free_memory, has_bfloat16
from modulekge.wording import counted, duration

_GIB = 1 << 30
_LEAST = 1 << 30  # bytes of memory: PyTorch and a small graph
_CACHE = "TORCHINDUCTOR_CACHE_DIR"
_DRIVER = Path("/proc/driver/nvidia/version")


def machine_checks(begin: Callable[[str], None]) -> Iterator[Check]:
    """Look at devices, memory, disk and data sets, and try kernels; ``begin`` is told of each try."""
    yield _processor()
    yield _gpu()
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        begin(f"compiling a small loop ({device})")
        yield _compiled(device)
    if torch.cuda.is_available():
        begin("running a kernel of Triton")
        yield _kernel()
    yield _memory()
    yield _disk()
    yield _data()


def _processor() -> Check:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    said = os.environ.get("OMP_NUM_THREADS")
    threads = counted(torch.get_num_threads(), "thread") + (f" (OMP_NUM_THREADS={said})" if said else "")
    half = "bfloat16 instructions" if has_bfloat16("cpu") else "no bfloat16 instructions"
    return Check("CPU", f"{counted(cores, 'core')} of {platform.machine()}, {threads}, {half}")


def _gpu() -> Check:
    if not torch.cuda.is_available():
        if _DRIVER.exists():
            built = "is built for CPUs" if torch.version.cuda is None else "cannot use it"
            advice = "install the build of PyTorch for its CUDA version, to train on it"
            return Check("GPU", f"there is a driver of NVIDIA, but this PyTorch {built}", advice, "note")
        return Check("GPU", "none; training and answers use the CPU")
    cards = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    free = free_memory(torch.device("cuda"))
    names = ", ".join(f"{card.name} ({card.total_memory / _GIB:.0f} GiB)" for card in cards)
    return Check("GPU", f"{names}; {free / _GIB:.0f} GiB free on the first")


def _compiled(device: str) -> Check:
    """Compile a loop with no cache to take it from: the compiler itself is tried."""
    name, begun = f"torch.compile ({device})", time.perf_counter()
    with _own_cache():
        trouble = compile_trouble(device)
    if trouble:
        advice = "install a C++ compiler (g++ or clang++) to train faster; plain PyTorch does without"
        return Check(name, f"does not work: {trouble}", advice, "note")
    return Check(name, f"works; a small loop compiled in {duration(time.perf_counter() - begun)}")


@contextmanager
def _own_cache() -> Iterator[None]:
    before = os.environ.get(_CACHE)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ[_CACHE] = folder
        try:
            yield
        finally:
            os.environ.pop(_CACHE)
            os.environ.update({_CACHE: before} if before else {})


def _kernel() -> Check:
    """Run a kernel of ours on the GPU beside the plain form on the CPU."""
    begun, (q, t) = time.perf_counter(), torch.randn(2, 8, 4, 3)
    try:
        apart = (block_distance(q.cuda(), t.cuda()).cpu() - block_distance(q, t)).abs().max().item()
    except Exception as error:  # whatever Triton and its compiler raise
        finding = next(filter(None, str(error).splitlines()), type(error).__name__)
        return Check("Triton", f"does not work: {finding}", "install a C compiler", "problem")
    if apart > 1e-4:
        return Check("Triton", f"a kernel differs from PyTorch by {apart:.1e}", "please report it", "problem")
    return Check("Triton", f"works; a kernel ran in {duration(time.perf_counter() - begun)}")


def _memory() -> Check:
    free = free_memory(torch.device("cpu"))
    found = f"{free / _GIB:.1f} GiB free"
    return Check("memory", found) if free >= _LEAST else Check("memory", found, "free 1 GiB", "problem")


def _disk() -> Check:
    here = Path.cwd()
    found = f"{shutil.disk_usage(here).free / _GIB:.1f} GiB free in {here}"
    if os.access(here, os.W_OK):
        return Check("disk", found)
    return Check("disk", f"{found}, which is not yours to write to", "work in another folder", "note")


def _data() -> Check:
    variable = os.environ.get(DATA_VARIABLE, "")
    places = [*filter(None, variable.split(os.pathsep)), ".", str(cache_dir())]
    known = {name.casefold() for name in benchmarks()}
    found = {
        folder.name
        for place in map(Path, places)
        for folder in (place.glob("*") if place.is_dir() else ())
        if folder.name.casefold() in known
    }
    held = f"there: {', '.join(sorted(found))}" if found else "none there yet"
    named = "" if variable else f" ({DATA_VARIABLE} names no other)"
    return Check("data sets", f"looked for in {', '.join(places)}{named}; {held}; 'world' is built in")
