"""How far the answers of a run moved as facts were added and everything was trained on."""

from dataclasses import dataclass

import torch

from modulekge.choices import FEW
from modulekge.models.scorer import Scorer
from modulekge.run.run import Run
from modulekge.shapes import Triples
from modulekge.training.fit import validate


@dataclass(frozen=True)
class Drift:
    """The questions of valid, asked before and after."""

    mrr_before: float  # among the entities of that time, as after
    mrr_after: float
    changed: float  # share of questions for which the ten best of the old entities are no longer the same


def drift(before: Run, after: Run) -> Drift | None:
    """Ask the questions of valid of a run and of one that was made of it; None without a valid split."""
    old, new = (validate(run.scorer, run.dataset) for run in (before, after))
    if old is None or new is None:
        return None
    return Drift(old["mrr"], new["mrr"], _changed(before, after))


@torch.no_grad()
def _changed(before: Run, after: Run) -> float:
    old, found = len(before.dataset.entities), 0
    questions = [run.dataset.questions("valid") for run in (before, after)]
    order = before.scorer.order(questions[0][:, 1])
    size = after.scorer.at_once
    for pair in zip(*(part[order].split(size) for part in questions), strict=True):
        best = [_best(run.scorer, part, old) for run, part in zip((before, after), pair, strict=True)]
        found += int((best[0] != best[1]).any(1).sum())
    return found / len(order)


def _best(scorer: Scorer, questions: Triples, old: int) -> torch.Tensor:
    """The ten best of the old entities."""
    heads, relations, _ = questions.unbind(1)
    scores = scorer.scores(heads, relations)[:, :old]
    return scores.topk(min(FEW, old)).indices.sort().values
