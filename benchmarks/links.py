"""What type constraints keep, remove and do for new links: python benchmarks/links.py [GRAPH ...].

Of six graphs, the share of held-out answers that stay candidates, and of candidates that are removed. Of the
four that benchmarks/calibration.py trains, the facts of test, which is hidden, among the 100 and the 1,000
most probable new links, of any type, of fitting types, and by the probability of their tails alone; WN18RR
takes most of an hour. Writes results/links.json.
"""

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from time import process_time
from typing import Any, get_args

import torch
from calibration import SETTINGS, trained

import modulekge
from modulekge.answers.predictor import Predictor
from modulekge.data.benchmarks import Split
from modulekge.data.dataset import Dataset
from modulekge.data.registry import open_dataset
from modulekge.data.type_constraints import TypeConstraints, Types
from modulekge.run.provenance import source_commit
from modulekge.run.run import Run

GRAPHS = ("world", "UMLS", "CoDEx-S", "WN18RR", "Nations", "FB15k-237")
LINKS = (100, 1000)  # the best of them
RESULTS = Path(__file__).parents[1] / "results" / "links.json"


def constrained(dataset: Dataset, split: Split) -> dict[str, float]:
    """Shares over the answers of a split: kept, observed with their relation in train, seen there at all.

    And of all entities, the share that is no candidate any more.
    """
    constraints = TypeConstraints.of(dataset)
    kept = observed = seen = left = 0
    _, relations, answers = dataset.questions(split).unbind(1)
    for relation in relations.unique().tolist():
        asked, allowed = answers[relations == relation], constraints.allowed(relation)
        kept += int(allowed[asked].sum())
        in_train = constraints.observed[1, constraints.observed[0] == relation]
        observed += int(torch.isin(asked, in_train).sum())
        seen += int(torch.isin(asked, dataset.train[:, [0, 2]]).sum())
        left += int(allowed.sum()) * len(asked)
    count = len(answers)
    return {
        "kept": kept / count,
        "observed": observed / count,
        "seen": seen / count,
        "removed": 1 - left / count / len(dataset.entities),
    }


def links_found(run: Run, types: Types, as_links: bool = True) -> dict[str, Any]:
    """How many of the most probable new links stand in test, which was hidden; probability and CPU time.

    Ranked as links, or by the probability of their tail, as if each question missed an answer.
    """
    hidden = replace(run, dataset=replace(run.dataset, test=run.dataset.test[:0]))
    asked, start = Predictor(hidden), process_time()
    if not as_links:
        vars(asked)["calibration"] = replace(asked.calibrated(), links=None)
    links = asked.links(k=max(LINKS), types=types)
    seconds = process_time() - start
    names = run.dataset.entities.names, run.dataset.relations.names
    test = {(names[0][h], names[1][r], names[0][t]) for h, r, t in run.dataset.test.tolist()}
    held = [(x.head, x.relation, x.tail) in test for x in links]
    return {
        "in test": {k: sum(held[:k]) for k in LINKS},
        "mean probability": {k: fmean(x.probability or 0 for x in links[:k]) for k in LINKS},
        "candidates": sum(heads * tails for heads, tails in asked.link_candidates(types=types)),
        "CPU seconds": round(seconds, 1),
    }


def measure(graph: str) -> dict[str, Any]:
    """Everything about one graph."""
    run = trained(graph) if graph in SETTINGS else None
    if run:
        modulekge.calibrate(run)
    dataset = run.dataset if run else open_dataset(graph)
    splits: tuple[Split, ...] = ("valid", "test")
    return {
        "graph": graph,
        "settings": SETTINGS.get(graph),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": source_commit(),
        "entities": len(dataset.entities),
        "types": {split: constrained(dataset, split) for split in splits},
        "links": {types: links_found(run, types) for types in get_args(Types)} if run else None,
        "by tail": links_found(run, "constrained", as_links=False) if run else None,
    }


def main(graphs: list[str]) -> None:
    """Measure graphs and keep them beside what was measured before."""
    for graph in graphs or GRAPHS:
        found = measure(graph)
        print(json.dumps(found), flush=True)
        kept = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else []
        kept = [entry for entry in kept if entry["graph"] != graph] + [found]
        kept.sort(key=lambda entry: GRAPHS.index(entry["graph"]))
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
