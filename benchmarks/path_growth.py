"""How the time and memory of a model of paths grow with the edges of a graph and with layers.

    python benchmarks/path_growth.py --out results/path-growth-cpu.json
    python benchmarks/path_growth.py --edges 5e6 --layers 3
    python benchmarks/path_growth.py --graphs FB15k-237 WN18RR --layers 6

Random graphs of five edges to an entity and 50 relations, or graphs by name; d = 32. Each size runs in a
process of its own: the graph is sorted once, then the questions of 24 facts are answered one after another,
of which the median counts, and a step of training is taken on as many questions as fit. Prints a line per
size; the last one is JSON.
"""

import argparse
import itertools
import multiprocessing
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
from measure import write_lines

from modulekge.config import make_config
from modulekge.data.dataset import Dataset
from modulekge.data.registry import open_dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.machine import held_memory
from modulekge.models.paths import Paths
from modulekge.run.checkpoint import begin
from modulekge.training.fit import make_step
from modulekge.training.questions import Questions

RELATIONS, ASKED, BATCH = 50, 24, 8


def graph(edges: float | str) -> Dataset:
    """A random graph of so many edges, or the one of a name."""
    if isinstance(edges, str):
        return open_dataset(edges)
    draw, entities = torch.Generator().manual_seed(0), max(2, int(edges) // 5)
    columns = [torch.randint(n, (int(edges),), generator=draw) for n in (entities, RELATIONS, entities)]
    triples = torch.stack(columns, 1)
    vocabularies = [
        Vocabulary(kind, tuple(map(str, range(n))))
        for kind, n in (("entity", entities), ("relation", RELATIONS))
    ]
    return Dataset("random", *vocabularies, triples, triples[:0], triples[:0])


def measure(edges: float | str, layers: int, device: str) -> dict[str, Any]:
    """Seconds of sorting, of a question and of a step; the memory held at most."""
    dataset = graph(edges)
    train = {"batch": BATCH, "optimizer": "adam", "device": device}
    settings = {"model": {"name": "Paths-DistMult"}, "paths": {"layers": layers}, "train": train}
    config = make_config([{**settings, "regularizer": {"weight": 0.0}}])
    before = held_memory()
    started = time.perf_counter()
    model, optimizer = begin(config, dataset)
    assert isinstance(model, Paths)
    sorted_in = time.perf_counter() - started
    scorer, split = model.scorer(), dataset.test if len(dataset.test) else dataset.train
    asked = split[torch.randperm(len(split), generator=torch.Generator().manual_seed(1))[: ASKED + 1]]
    seconds = []
    for h, r, _ in asked.to(model.device):
        started = time.perf_counter()
        float(scorer.scores(h[None], r[None]).sum())
        seconds.append(time.perf_counter() - started)
    question = median(seconds[1:])  # the first takes memory
    answered = held_memory()
    questions = Questions.of(dataset, config.loss, model.device, known=True)
    step = make_step(model, questions, optimizer, config)
    step.begin(1)
    rows = torch.arange(BATCH, device=model.device)
    step(rows)
    step.mean(1)
    started = time.perf_counter()
    step(rows)
    step.mean(1)
    return {
        "graph": dataset.name,
        "edges": len(dataset.train),
        "entities": len(dataset.entities),
        "layers": layers,
        "device": device,
        "threads": torch.get_num_threads(),
        "sorted_s": round(sorted_in, 2),
        "question_ms": round(question * 1e3, 1),
        "step_ms": round((time.perf_counter() - started) * 1e3, 1),
        "questions_of_a_step": BATCH,
        "graph_GiB": round(before / 2**30, 2),
        "answering_GiB": round(answered / 2**30, 2),
        "training_GiB": round(held_memory() / 2**30, 2),
    }


def measure_apart(edges: float | str, layers: int, device: str) -> dict[str, Any]:
    """Measure in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (edges, layers, device))


def main() -> None:
    """Measure every size, or the one that is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--edges", type=float, nargs="*", default=[5e4, 5e5, 5e6])
    parser.add_argument("--graphs", nargs="*", default=[], help="by name, instead of random ones")
    parser.add_argument("--layers", type=int, nargs="*", default=[3, 6])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    sizes = itertools.product(args.graphs or args.edges, args.layers)
    write_lines((measure_apart(edges, layers, args.device) for edges, layers in sizes), args.out)


if __name__ == "__main__":
    main()
