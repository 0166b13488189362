"""Answers on graphs none of whose entities was there in training: GraIL's splits.

    python benchmarks/inductive.py FOLDER --minutes 4 --out results/inductive.json

FOLDER holds NAME, to train on, and NAME-new, to answer on, for each NAME. A model of paths is trained on
NAME with settings by rule, chosen on NAME's valid split; then the test split of NAME-new is ranked on its own
train facts: among all entities, and, as GraIL does, among 50 drawn ones that are no known answers (the mean
of five draws; the answer behind all of equal score). Prints a line per graph; the last one is JSON.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from measure import write_lines

import modulekge
from modulekge.run.run import Run

_DRAWN, _DRAWS = 50, 5


def among_drawn(run: Run) -> float:
    """Hits@10 of the answers of test among drawn candidates."""
    dataset, hits = run.dataset, []
    questions = dataset.questions("test")
    for part in questions.split(256):
        heads, relations, tails = part.unbind(1)
        scores = run.scorer.scores(heads, relations).cpu()
        true = scores.gather(1, tails[:, None])
        for draw in range(_DRAWS):
            seed = torch.Generator().manual_seed(draw)
            weights = torch.ones_like(scores)
            weights[dataset.known.of_questions(heads, relations)] = 0
            drawn = torch.multinomial(weights, _DRAWN, generator=seed)
            above = (scores.gather(1, drawn) >= true).sum(1)
            hits.append((above < 10).double())
    return float(torch.cat(hits).mean())


def measure(folder: Path, name: str, model: str, minutes: float, seed: int) -> dict[str, Any]:
    """Train on one graph, and answer on the other."""
    with tempfile.TemporaryDirectory() as place:
        started = time.perf_counter()
        run = modulekge.train(
            folder / name, model, {"train.seed": seed}, out=Path(place) / "run", minutes=minutes
        )
        seconds = time.perf_counter() - started
        records = [record for record in run.folder.records() if record.valid]
        there = run.along(modulekge.open_dataset(folder / f"{name}-new"))
        started = time.perf_counter()
        report = modulekge.evaluate(there, every=True)
        return {
            "graph": name,
            "model": run.name,
            "size": run.config.size,
            "left_out": run.config.paths.left_out,
            "seed": seed,
            "train_seconds": round(seconds),
            "valid_mrr": round(max(record.mrr or 0.0 for record in records), 4),
            "test_triples": report.triples,
            "entities": report.candidates,
            "mrr": round(report.both["mrr"], 4),
            "mrr_interval": [round(x, 4) for x in report.intervals["mrr"]],
            "hits@10": round(report.both["hits@10"], 4),
            "hits@10_of_50": round(among_drawn(there), 4),
            "test_seconds": round(time.perf_counter() - started, 1),
        }


def main() -> None:
    """Measure every graph of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="Paths")
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    names = [path.name.removesuffix("-new") for path in sorted(args.folder.glob("*-new"))]
    write_lines((measure(args.folder, name, args.model, args.minutes, args.seed) for name in names), args.out)


if __name__ == "__main__":
    main()
