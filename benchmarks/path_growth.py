"""How the time and memory of a model of paths grow with the edges of a graph and with layers.

    python benchmarks/path_growth.py --out results/path-growth-cpu.json
    python benchmarks/path_growth.py --edges 5e6 --layers 3

Random graphs of five edges to an entity, 50 relations, d = 32. Each size runs in a process of its own: the
graph is sorted once, then eight questions are answered one after another, and a step of training is taken
on as many questions as fit. Prints a line per size; the last one is JSON.
"""

import argparse
import itertools
import multiprocessing
import time
from pathlib import Path
from typing import Any

import torch
from measure import write_lines

from modulekge.config import make_config
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.machine import held_memory
from modulekge.models.paths import Paths
from modulekge.run.checkpoint import begin
from modulekge.training.fit import make_step
from modulekge.training.questions import Questions

RELATIONS, ASKED, BATCH = 50, 8, 8


def graph(edges: int) -> Dataset:
    """A random graph."""
    draw, entities = torch.Generator().manual_seed(0), max(2, edges // 5)
    columns = [torch.randint(n, (edges,), generator=draw) for n in (entities, RELATIONS, entities)]
    triples = torch.stack(columns, 1)
    vocabularies = [
        Vocabulary(kind, tuple(map(str, range(n))))
        for kind, n in (("entity", entities), ("relation", RELATIONS))
    ]
    return Dataset("random", *vocabularies, triples, triples[:0], triples[:0])


def measure(edges: int, layers: int, device: str) -> dict[str, Any]:
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
    scorer, asked = model.scorer(), dataset.train[:ASKED].to(model.device)
    started = time.perf_counter()
    for h, r, _ in asked:
        float(scorer.scores(h[None], r[None]).sum())
    question = (time.perf_counter() - started) / ASKED
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
        "edges": edges,
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


def measure_apart(edges: int, layers: int, device: str) -> dict[str, Any]:
    """Measure in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (edges, layers, device))


def main() -> None:
    """Measure every size, or the one that is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--edges", type=float, nargs="*", default=[5e4, 5e5, 5e6])
    parser.add_argument("--layers", type=int, nargs="*", default=[3, 6])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    sizes = itertools.product(args.edges, args.layers)
    write_lines((measure_apart(int(edges), layers, args.device) for edges, layers in sizes), args.out)


if __name__ == "__main__":
    main()
