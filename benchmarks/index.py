"""The index against exact scoring: which share of the best ten it finds, and how many questions a second.

python benchmarks/index.py RUN [--questions 1000] [--expansions 16 64 256]

RUN is a trained run, for random weights are searched unlike learned ones. Questions are of valid, both sides,
drawn by a seed; they are asked one by one, and all at once. Exact is one matrix product and top-k. Prints a
table and, as its last line, JSON.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from measure import plainly

import modulekge
from modulekge.exports.index import EntityIndex, Nearest
from modulekge.shapes import Ids

Search = Callable[[Ids, Ids], Nearest]
_SINGLE = 100  # questions that are asked one by one


def per_second(search: Search, heads: Ids, relations: Ids, batch: int) -> float:
    """Questions a second in batches of this size; the best of three rounds after a first one."""
    seconds = []
    for _ in range(4):
        started = time.perf_counter()
        for some in zip(heads.split(batch), relations.split(batch), strict=True):
            search(*some)
        seconds.append(time.perf_counter() - started)
    return len(heads) / min(seconds[1:])


def measure(name: str, search: Search, heads: Ids, relations: Ids, wanted: Nearest) -> dict[str, object]:
    """One line of the table."""
    found = search(heads, relations).ids
    line = {
        "how": name,
        "recall@10": round(float((wanted.ids[:, :, None] == found[:, None]).any(2).double().mean()), 4),
        "one by one": round(per_second(search, heads[:_SINGLE], relations[:_SINGLE], 1)),
        "all at once": round(per_second(search, heads, relations, len(heads))),
    }
    print("  ".join(f"{key} {value}" for key, value in line.items()), flush=True)
    return line


def main() -> None:
    """Measure exact scoring and the index at several expansions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--expansions", type=int, nargs="+", default=[16, 32, 64, 128, 256, 512])
    args = parser.parse_args()
    run = modulekge.load(args.run)
    started = time.perf_counter()
    index = EntityIndex.build(run)
    build = time.perf_counter() - started
    questions = run.dataset.questions("valid")
    order = torch.randperm(len(questions), generator=torch.Generator().manual_seed(0))[: args.questions]
    heads, relations, _ = questions[order].unbind(1)
    wanted = index.exact(heads, relations)
    lines = [measure("exact", index.exact, heads, relations, wanted)]
    for wide in args.expansions:

        def search(heads: Ids, relations: Ids, wide: int = wide) -> Nearest:
            return index.search(heads, relations, expansion=wide)

        lines.append(measure(f"index, expansion {wide}", search, heads, relations, wanted))
    records = run.folder.records()
    about = {
        "model": run.config.model.name,
        "k": run.model.k,
        "data": run.dataset.name,
        "entities": len(run.dataset.entities),
        "length": index.index.ndim,
        "best valid mrr": max((r.valid["mrr"] for r in records if r.valid), default=None),
        "questions": len(heads),
        "threads": torch.get_num_threads(),
        "build seconds": round(build, 1),
        "torch": torch.__version__,
    }
    print(json.dumps({**about, "lines": lines}))


if __name__ == "__main__":
    plainly(main)
