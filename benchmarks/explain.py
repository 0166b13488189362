"""Whether supporting facts support: remove them, train anew, and see what becomes of the triple.

    python benchmarks/explain.py world
    python benchmarks/explain.py UMLS --model RotatE --set train.epochs=30

For groups of test triples that a model ranks well, the facts that `modulekge explain` names are taken out
of training, for all triples of a group at once; then as many random ones of those that touch the same heads
and tails. Both are trained anew from the same seed. The last line is JSON.
"""

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from measure import plainly
from torch import Tensor

from modulekge.config import parse_setting
from modulekge.data.dataset import Dataset
from modulekge.data.registry import open_dataset
from modulekge.evaluation.evaluate import rank
from modulekge.explanations.explanation import facts_around, influences
from modulekge.explanations.paths import sample
from modulekge.models.embedding import Embedding
from modulekge.run.folder import RunFolder
from modulekge.run.plan import resolve
from modulekge.run.run import load
from modulekge.run.train import continue_run

FIGURES = ("score", "log-probability", "reciprocal rank")


def trained(dataset: Dataset, args: argparse.Namespace, seed: int = 0) -> Embedding:
    """Train with the last epoch kept: no valid split, so none is chosen by it."""
    layers = [*map(parse_setting, args.settings or ()), {"train": {"seed": seed}, "model": {"k": args.k}}]
    blind = replace(dataset, valid=dataset.valid[:0])
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder.create(Path(folder) / "run", resolve(blind, args.model, layers), blind)
        for _ in continue_run(run):
            pass
        return load(run.path).model


@torch.no_grad()
def figures(model: Embedding, dataset: Dataset, triples: Tensor) -> Tensor:
    """Return score, log-probability and reciprocal rank of triples, each a mean of both directions."""
    n = len(triples)
    questions = torch.cat([triples, triples.flip(1) + torch.tensor([0, len(dataset.relations), 0])])
    scores = model(questions[:, 0], questions[:, 1])
    rows = (scores, scores.log_softmax(1))
    found = [row.gather(1, questions[:, 2:])[:, 0].double() for row in rows]
    found.append(1 / rank(model.scorer(), questions, dataset.known).rank("mean"))
    return torch.stack([(values[:n] + values[n:]) / 2 for values in found], 1)


def without(dataset: Dataset, facts: Tensor) -> Dataset:
    """Return the graph with these facts taken out of train."""
    size = len(dataset.entities)
    code = torch.tensor([size * len(dataset.relations), size, 1])
    left = ~torch.isin((dataset.train * code).sum(1), (facts * code).sum(1))
    return replace(dataset, train=dataset.train[left])


def removals(model: Embedding, dataset: Dataset, triples: Tensor, count: int) -> dict[str, Tensor]:
    """Return what to remove for these triples: the facts named as supports, and random ones around."""
    named, drawn = [], []
    for i, (h, r, t) in enumerate(triples.tolist()):
        facts, _ = facts_around(dataset, (h, r, t))
        influence = influences(model, facts, (h, r, t), len(dataset.relations))
        named.append(facts[influence.topk(min(count, len(facts))).indices])
        drawn.append(sample(facts.roll(i, 0), count))
    return {"supports": torch.cat(named), "random": torch.cat(drawn)}


def interval(values: Tensor) -> tuple[float, float]:
    """Return the mean and half of its 95 % interval."""
    return float(values.mean()), float(1.96 * values.std() / len(values) ** 0.5)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="?", default="world")
    parser.add_argument("--model", default="ModulE-HH")
    parser.add_argument("--k", type=int, default=16, help="blocks of the model")
    parser.add_argument("--facts", type=int, default=3, help="removed for each triple")
    parser.add_argument("--group", type=int, default=40, help="triples for which facts go at once")
    parser.add_argument("--groups", type=int, default=3)
    parser.add_argument("--set", dest="settings", action="append", metavar="KEY=VALUE")
    args = parser.parse_args()
    dataset = open_dataset(args.data)
    model = trained(dataset, args)
    before = figures(model, dataset, dataset.test)
    well = sample((before[:, 2] > 0.3).nonzero()[:, 0], args.group * args.groups)
    drops: dict[str, list[Tensor]] = {"supports": [], "random": [], "another seed": []}
    other = figures(trained(dataset, args, seed=1), dataset, dataset.test)
    for rows in well.split(args.group):
        drops["another seed"].append(before[rows] - other[rows])
        for name, facts in removals(model, dataset, dataset.test[rows], args.facts).items():
            after = figures(trained(without(dataset, facts), args), dataset, dataset.test[rows])
            drops[name].append(before[rows] - after)
        print(f"{len(drops['random'])} of {args.groups} groups", flush=True)
    report: dict[str, Any] = {**vars(args), "triples": len(well)}
    for name, parts in drops.items():
        columns = torch.cat(parts).unbind(1)
        report[name] = {figure: interval(values) for figure, values in zip(FIGURES, columns, strict=True)}
        cells = (f"{figure} {mean:6.3f} ± {half:.3f}" for figure, (mean, half) in report[name].items())
        print(f"{name:12}", "   ".join(cells))
    print(json.dumps(report))


if __name__ == "__main__":
    plainly(main)
