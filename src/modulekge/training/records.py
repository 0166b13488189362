"""What training tells of itself: how far an epoch has come, and what it was."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class EpochProgress:
    """How far an epoch has come, or the validation after it."""

    epoch: int
    done: int
    questions: int
    phase: Literal["training", "validating"] = "training"


@dataclass(frozen=True)
class EpochRecord:
    """What an epoch was: its mean loss with penalty, its speed, and valid metrics where measured."""

    epoch: int
    loss: float
    lr: float
    seconds: float
    triples_per_second: float
    valid: dict[str, float] | None


def stalled(records: Sequence[EpochRecord], patience: int) -> bool:
    """Whether the last ``patience`` validations brought nothing better than what was before them."""
    curve = [r.valid["mrr"] for r in records if r.valid]
    if patience == 0 or len(curve) <= patience:
        return False
    return max(curve[-patience:]) <= max(curve[:-patience])
