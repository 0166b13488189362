"""Whether the facts that carried a score did: leave them out of the graph, and ask again.

    python benchmarks/explain_paths.py RUN --triples 100 --facts 3

For test triples whose tail a run of paths ranks well, the facts that `modulekge explain` names are left out
of the graph, then as many random ones of those that touch an entity at most one hop from head or tail, then
of those that touch head or tail themselves. Nothing is trained anew: the weights belong to relations. The
last line is JSON.
"""

import argparse
import json
import time
from typing import Any

import torch
from measure import plainly
from torch import Tensor

from modulekge.errors import RunError
from modulekge.explanations.path_explanation import PathQuestion
from modulekge.explanations.paths import sample
from modulekge.explanations.standing import Standing, tail_standing
from modulekge.models.paths import Paths
from modulekge.run.run import Run, load

FIGURES = ("score", "reciprocal rank")
RESAMPLES = 1000


def named(asked: PathQuestion, k: int) -> list[int]:
    """Return the facts that `explain -k` leaves out one at a time, those of the best paths."""
    return list(asked.drops(asked.paths(k), k))


def around(asked: PathQuestion, hops: int) -> Tensor:
    """Return the facts that touch an entity so many hops from head or tail at most."""
    edges = asked.every_edge[asked.kept]
    near = torch.tensor([asked.triple[0], asked.triple[2]])
    for _ in range(hops):
        near = torch.cat([near, edges[torch.isin(edges[:, 0], near), 2]]).unique()
    return asked.facts[asked.kept][torch.isin(edges[:, 0], near)].unique()


def standing(run: Run, asked: PathQuestion, without: list[int]) -> Standing:
    """Return how the tail stands without some facts."""
    return tail_standing(asked.model_without(without).scorer(), run.dataset, asked.triple)


def drops(run: Run, asked: PathQuestion, args: argparse.Namespace, number: int) -> dict[str, list[float]]:
    """Return what score and reciprocal rank lose without the facts named, and without random ones."""
    found = named(asked, args.facts)
    chosen = {"named": found}
    for hops, name in ((1, "random within a hop"), (0, "random at the ends")):
        pool = around(asked, hops)
        chosen[name] = sample(pool.roll(number), len(found)).tolist()
    before = standing(run, asked, [])
    after = {name: standing(run, asked, facts) for name, facts in chosen.items()}
    return {
        name: [before.score - left.score, 1 / before.rank - 1 / left.rank] for name, left in after.items()
    }


def interval(values: Tensor) -> tuple[float, float, float]:
    """Return the mean and its 95 % interval, by percentiles of the bootstrap over triples."""
    rows = torch.randint(len(values), (RESAMPLES, len(values)), generator=torch.Generator().manual_seed(0))
    low, high = values[rows].mean(1).quantile(torch.tensor([0.025, 0.975], dtype=values.dtype)).tolist()
    return float(values.mean()), low, high


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run")
    parser.add_argument("--triples", type=int, default=100)
    parser.add_argument("--facts", type=int, default=3, help="left out for each triple")
    parser.add_argument("--rank", type=int, default=3, help="of a tail that is ranked well, at most")
    args = parser.parse_args()
    run = load(args.run)
    if not isinstance(run.model, Paths):
        raise RunError(
            f"{args.run}: {run.name} has no paths; use benchmarks/explain.py, or train with --model Paths"
        )
    lost: dict[str, list[list[float]]] = {}
    seconds = used = 0.0
    for triple in sample(run.dataset.test, len(run.dataset.test)).tolist():
        asked = PathQuestion(run.model, tuple(triple))
        if standing(run, asked, []).rank > args.rank:
            continue
        started = time.perf_counter()
        named(asked, args.facts)
        seconds, used = seconds + time.perf_counter() - started, used + 1
        for name, values in drops(run, asked, args, int(used)).items():
            lost.setdefault(name, []).append(values)
        if used == args.triples:
            break
    report: dict[str, Any] = {**vars(args), "run": run.name, "data": run.dataset.name}
    report |= {"layers": run.model.config.layers, "triples": int(used), "seconds": round(seconds / used, 4)}
    for name, rows in lost.items():
        columns = torch.tensor(rows, dtype=torch.float64).unbind(1)
        report[name] = {figure: interval(values) for figure, values in zip(FIGURES, columns, strict=True)}
        cells = (
            f"{figure} {mean:6.3f} ({low:.3f} .. {high:.3f})"
            for figure, (mean, low, high) in report[name].items()
        )
        print(f"{name:20}", "   ".join(cells))
    print(json.dumps(report))


if __name__ == "__main__":
    plainly(main)
