"""Triples a second with drawn candidates, on a CPU, beside PyKEEN's sLCWA in the same run.

    .venv-peers/bin/python benchmarks/drawn.py graph.tsv --negatives 1024 --reals 128 --batch 1024

Both train ComplEx with Adagrad and softmax over the answer and so many negatives; an entity has so many
reals. Here the negatives are drawn once for a batch, and every triple is asked from both ends; PyKEEN draws
them for each triple, of which it asks one end at random. A triple is counted once. Without PyKEEN only ours
is timed. The last line is JSON.
"""

import argparse
import json
import time
from importlib.util import find_spec

import torch

from modulekge.config import make_config
from modulekge.data.dataset import Dataset
from modulekge.data.registry import open_dataset
from modulekge.run.checkpoint import begin
from modulekge.training.fit import make_step
from modulekge.training.optimizers import begin_epoch
from modulekge.training.questions import Questions


def ours(dataset: Dataset, batch: int, negatives: int, reals: int, seconds: float) -> float:
    """Triples a second of training here."""
    settings = {
        "model": {"name": "ComplEx", "k": reals // 2},
        "loss": {"candidates": "shared", "negatives": negatives},
        "regularizer": {"weight": 0.0},
        "train": {"batch": 2 * batch, "device": "cpu"},
    }
    config = make_config([settings])
    model, optimizer = begin(config, dataset)
    questions = Questions.of(dataset, config.loss, model.device)
    step = make_step(model, questions, optimizer, config)
    begin_epoch(optimizer, config.train, 1)
    step.begin(1)
    batches = torch.randperm(len(questions.triples)).split(2 * batch)
    step(batches[0])
    started, done = time.perf_counter(), 0
    for rows in batches[1:]:
        step(rows)
        done += len(rows) / 2
        if time.perf_counter() - started > seconds:
            break
    return done / (time.perf_counter() - started)


def pykeen(dataset: Dataset, batch: int, negatives: int, reals: int, seconds: float) -> float:
    """Triples a second of PyKEEN's sLCWA."""
    from pykeen.losses import CrossEntropyLoss
    from pykeen.models import ComplEx
    from pykeen.training import SLCWATrainingLoop
    from pykeen.triples import CoreTriplesFactory

    def took(steps: int) -> float:
        some = dataset.train[torch.randperm(len(dataset.train))[: batch * steps]]
        triples = CoreTriplesFactory(some, len(dataset.entities), len(dataset.relations))
        model = ComplEx(triples_factory=triples, embedding_dim=reals // 2, loss=CrossEntropyLoss())
        loop = SLCWATrainingLoop(
            model=model,
            triples_factory=triples,
            optimizer=torch.optim.Adagrad(model.parameters(), lr=0.1),
            negative_sampler="basic",
            negative_sampler_kwargs={"num_negs_per_pos": negatives},
        )
        started = time.perf_counter()
        options = {"num_epochs": 1, "batch_size": batch, "use_tqdm": False, "use_tqdm_batch": False}
        loop.train(triples_factory=triples, **options)
        return time.perf_counter() - started

    steps = 2
    once = took(steps)
    more = max(2, int(seconds / (once / steps)))
    return batch * more / (took(steps + more) - once)  # what is spent once cancels out


def main() -> None:
    """Time both on one graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("graph")
    for name, value in (("batch", 1024), ("negatives", 1024), ("reals", 128), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--seconds", type=float, default=20)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    dataset = open_dataset(args.graph)
    shape = args.batch, args.negatives, args.reals, args.seconds
    found = {**vars(args), "graph": dataset.name, "ours": round(ours(dataset, *shape))}
    if find_spec("pykeen"):
        found["pykeen"] = round(pykeen(dataset, *shape))
        found["ratio"] = round(found["ours"] / found["pykeen"], 1)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
