"""Trainings that one process and several must agree on: ``torchrun ... job.py OUT SHARDS [CASE ...]``."""

import json
import sys
from itertools import islice
from pathlib import Path

import torch

from modulekge.config import make_config, nested
from modulekge.data.batches import batches
from modulekge.data.registry import open_dataset
from modulekge.errors import ConfigError
from modulekge.evaluation.evaluate import rank
from modulekge.evaluation.metrics import metrics
from modulekge.models.paths import Paths
from modulekge.models.spec import MODELS
from modulekge.run.checkpoint import begin
from modulekge.training.fit import make_step
from modulekge.training.optimizers import begin_epoch
from modulekge.training.questions import Questions
from modulekge.workers import part, workers

STEPS = 8
BASE = {"model.k": 4, "model.scalar_scale": 0.3, "train.batch": 101, "train.epochs": 1}
SAMPLED = {"loss.candidates": "sampled", "loss.negatives": 7}
OPTIONS = {
    "softmax over 50 steps": {"train.batch": 90, "steps": 50},
    "logistic": {"loss.kind": "logistic"},
    "all answers": {"loss.targets": "all"},
    "logistic, all answers": {"loss.kind": "logistic", "loss.targets": "all"},
    "smoothing": {"loss.smoothing": 0.1},
    "weights": {"loss.degree_weight": 0.9, "loss.subsampling": 0.5},
    "bias": {"model.bias": True},
    "relations": {"loss.relation_prediction": 2.0},
    "dropout": {"train.dropout": 0.3},
    "adam": {"train.optimizer": "adam", "train.lr": 0.01},
    "plateau": {"train.plateau_steps": 2},
    "tied": {"model.name": "RotatE", "model.reciprocal": "tied"},
    "sampled": SAMPLED,
    "sampled, bias, dropout": {**SAMPLED, "model.bias": True, "train.dropout": 0.3},
    "self-adversarial": {**SAMPLED, "loss.kind": "self-adversarial", "loss.margin": 6.0},
    "shared": {"loss.candidates": "shared", "loss.negatives": 30, "model.bias": True},
}
CASES = {
    **{name: {"model.name": name} for name in MODELS},
    **{name: {"model.name": "ModulE-HH", **settings} for name, settings in OPTIONS.items()},
    "HAKE, logistic": {"model.name": "HAKE", "loss.kind": "logistic"},
    "Paths": {
        "model.name": "Paths",
        "paths.layers": 2,
        "paths.d": 8,
        "train.optimizer": "adam",
        "train.lr": 0.003,
        "steps": 3,
    },
}


def outcome(settings, shards=0):
    """Return the loss of each step, the metrics after them, and the sum of all weights."""
    settings = {**BASE, **settings, "train.shards": shards}
    steps = settings.pop("steps", STEPS)
    config, dataset = make_config([nested(k, v) for k, v in settings.items()]), open_dataset("world")
    model, optimizer = begin(config, dataset)
    questions = Questions.of(dataset, config.loss, model.device, known=isinstance(model, Paths))
    step = make_step(model, questions, optimizer, config)
    begin_epoch(optimizer, config.train, 1)
    # The last of them has fewer questions than there may be processes
    rows = [*islice(batches(len(questions.triples), config.train.batch, 0, 1), steps), torch.tensor([5])]
    losses = []
    for batch in rows:
        step.begin(1)
        step(batch.to(questions.triples.device))
        losses.append(step.mean(len(batch)))
    ranks = rank(model.scorer(), dataset.questions("valid")[:150], dataset.known)
    tables = model.parameters() if isinstance(model, Paths) else model.entity_tables
    total = sum(float(model.workers.sum(table.detach().sum())[0]) for table in tables)
    return {"losses": losses, "weights": total, "metrics": metrics(ranks.rank("bottom"))}


REFUSED = {
    "adversarial over all": {"loss.kind": "self-adversarial"},
    "shards that do not divide": {"train.shards": 3},
}


def refusal(settings, shards):
    """Return what is said of settings that several processes cannot have."""
    try:
        outcome(settings, settings.get("train.shards", shards))
    except ConfigError as error:
        return str(error)
    return ""


def main() -> None:
    out, shards, names = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or CASES
    found = {name: outcome(CASES[name], shards) for name in names}
    found |= {name: refusal(settings, shards) for name, settings in REFUSED.items()}
    if workers().is_main:
        out.write_text(json.dumps(found))
    part()


if __name__ == "__main__":
    main()
