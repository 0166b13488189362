"""Sums of block moduli: plain PyTorch, our kernels, compiled loops, tiles.

python benchmarks/distance.py [--device cuda] [--questions 256] [--entities 15000] [--blocks 200] [--drawn 99]

Of all pairs, where plain PyTorch is torch.cdist block by block, or of each question with the entities that
were drawn for it, where it gathers them all at once.

Prints a table and, as its last line, JSON. Times are medians, forward and backward together; the memory
is what a forward and backward takes beyond inputs and the (questions, entities) scores (CUDA only).
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from modulekge.algebra.norms import modulus
from modulekge.kernels import distance


def by_cdist(q: Tensor, t: Tensor) -> Tensor:
    """torch.cdist for each block, summed: autograd keeps a (questions, entities) tensor per block."""
    total = q.new_zeros(len(q), len(t))
    for i in range(q.shape[-1]):
        block = torch.cdist(q[..., i], t[..., i], compute_mode="donot_use_mm_for_euclid_dist")
        total = total + block
    return total


def by_gathering(q: Tensor, t: Tensor, rows: Tensor) -> Tensor:
    """What autograd makes of the formula: several tensors of (questions, drawn, reals, blocks)."""
    named = t.index_select(0, rows.flatten()).unflatten(0, rows.shape)  # faster than t[rows]
    return modulus(q[:, None] - named).sum(-1)


def contenders(device: str, drawn: Tensor | None) -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    """Return the ways to compute these sums on this device."""

    def ours(q: Tensor, t: Tensor, worth: int = distance._WORTH) -> Tensor:
        distance._WORTH = worth  # on a CPU, compiled from this much work on
        return distance.block_distance(q, t) if drawn is None else distance.row_distance(q, t, drawn)

    plain = {"cdist": by_cdist} if drawn is None else {"gathered": partial(by_gathering, rows=drawn)}
    if device != "cpu":
        return {**plain, "kernels": ours}
    return {**plain, "compiled": partial(ours, worth=0), "tiles": partial(ours, worth=1 << 62)}


def measure(
    function: Callable[[Tensor, Tensor], Tensor], q: Tensor, t: Tensor, repeats: int
) -> dict[str, float]:
    """Median seconds of forward and backward, and extra memory."""
    cuda = q.is_cuda
    seconds, extra = [], 0.0
    for _ in range(repeats + 1):  # the first warms up
        leaves = [q.clone().requires_grad_(), t.clone().requires_grad_()]
        if cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
        start = time.perf_counter()
        function(*leaves).sum().backward()
        if cuda:
            torch.cuda.synchronize()
            extra = (torch.cuda.max_memory_allocated() - before) / 2**20
        seconds.append(time.perf_counter() - start)
    return {"seconds": statistics.median(seconds[1:]), "extra_MiB": round(extra)}


def main() -> None:
    """Measure blocks of 1 to 4 reals."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--questions", type=int, default=256)
    parser.add_argument("--entities", type=int, default=15_000)
    parser.add_argument("--blocks", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--drawn", type=int, default=0, help="entities of each question; 0: all")
    args = parser.parse_args()
    shape, rows = (args.questions, args.drawn), []
    drawn = torch.randint(args.entities, shape, device=args.device) if args.drawn else None
    for d in (1, 2, 3, 4):
        q = torch.randn(args.questions, d, args.blocks, device=args.device)
        t = torch.randn(args.entities, d, args.blocks, device=args.device)
        for name, function in contenders(args.device, drawn).items():
            try:
                found = measure(function, q, t, args.repeats)
            except torch.OutOfMemoryError:
                found = {"seconds": float("inf"), "extra_MiB": float("inf")}
            rows.append({"reals": d, "how": name, **found})
            print(f"{d} reals  {name:9} {found['seconds']:9.4f} s  {found['extra_MiB']:9} MiB", flush=True)
    print(json.dumps({**vars(args), "torch": torch.__version__, "rows": rows}))


if __name__ == "__main__":
    main()
