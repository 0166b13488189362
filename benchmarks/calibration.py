"""How true probabilities and prediction sets are: python benchmarks/calibration.py [GRAPH ...].

Trains a model on each graph (kept in runs/calibration), calibrates it on valid, and measures on test. Then
valid and test are mixed anew, where that is quick, so that chance in the split can be told from what
calibration does. Writes results/calibration.json.
"""

import json
import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

import modulekge
from modulekge.evaluation.calibration import Calibration, calibrate
from modulekge.evaluation.odds import scored_batches
from modulekge.run.provenance import source_commit
from modulekge.run.run import Run

SETTINGS: dict[str, dict[str, Any]] = {
    "world": {},
    "UMLS": {"train.epochs": 40},
    "CoDEx-S": {"model.k": 64, "train.epochs": 10, "train.eval_every": 5},
    "WN18RR": {"model.k": 32, "train.epochs": 5, "train.precision": "float32"},
}
MIXED, QUICK = 30, ("world", "UMLS")
COVERAGE = 0.9
RESULTS = Path(__file__).parents[1] / "results" / "calibration.json"


def trained(graph: str) -> Run:
    """The run of a graph, trained where it is not there yet."""
    path = Path("runs/calibration") / graph
    return (
        modulekge.load(path) if path.exists() else modulekge.train(graph, "ModulE-HH", SETTINGS[graph], path)
    )


def mixed(run: Run, seed: int) -> tuple[float, float]:
    """Share and size of prediction sets with valid and test drawn anew."""
    dataset = run.dataset
    facts = torch.cat([dataset.valid, dataset.test])
    facts = facts[torch.randperm(len(facts), generator=torch.Generator().manual_seed(seed))]
    halves = {"valid": facts[: len(dataset.valid)], "test": facts[len(dataset.valid) :]}
    found = calibrate(run.scorer, replace(dataset, **halves)).measured
    return found.sets.share, found.sets.size


def all_missing(run: Run, calibration: Calibration) -> dict[str, float]:
    """Share and size of the sets of someone who knows no fact of test: missing facts are rivals."""
    bars = (
        calibration.least(relation, COVERAGE)[0] for relation in range(run.dataset.n_relations_with_inverses)
    )
    least = torch.tensor([-torch.inf if bar is None else bar for bar in bars])
    held = sizes = facts = 0
    for asked in scored_batches(run.scorer, run.dataset, "test"):
        odds = asked.odds.masked_fill(~asked.candidate, -torch.inf)
        inside = odds >= least[asked.relations, None]
        inside.scatter_(1, odds.argmax(1, keepdim=True), True)
        held += int(inside[asked.rows, asked.places].sum())
        sizes += int(inside.sum(1)[asked.rows].sum())
        facts += len(asked.rows)
    return {"share": held / facts, "size": sizes / facts}


def measure(graph: str) -> dict[str, Any]:
    """Everything about one graph."""
    run = trained(graph)
    found = modulekge.calibrate(run)
    together, sets = found.measured.together, found.measured.sets
    again = [mixed(run, seed) for seed in range(MIXED)] if graph in QUICK else []
    return {
        "graph": graph,
        "settings": SETTINGS[graph],
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": source_commit(),
        "entities": len(run.dataset.entities),
        "questions": together.questions,
        "softmax": {k: v for k, v in asdict(together.before).items() if k != "bins"},
        "calibrated": {k: v for k, v in asdict(together.after).items() if k != "bins"},
        "sets": asdict(sets),
        "sets, all of test missing": all_missing(run, found),
        "mixed": {"share": fmean(s for s, _ in again), "size": fmean(n for _, n in again)} if again else None,
    }


def main(graphs: list[str]) -> None:
    """Measure graphs and keep them beside what was measured before."""
    kept = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else []
    for graph in graphs or SETTINGS:
        found = measure(graph)
        print(json.dumps(found))
        kept = [entry for entry in kept if entry["graph"] != graph] + [found]
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
