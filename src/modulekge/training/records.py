"""What training tells of itself: how far an epoch has come, and what it was."""

from collections.abc import Iterable, Sequence
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
    """What an epoch was: its mean loss with the regularizer, its speed, and valid metrics where measured."""

    epoch: int
    loss: float
    lr: float
    seconds: float
    triples_per_second: float
    valid: dict[str, float] | None

    @property
    def mrr(self) -> float | None:
        """The MRR on valid, by which epochs are compared; None where it was not measured."""
        return self.valid["mrr"] if self.valid else None


def curve(records: Iterable[EpochRecord]) -> tuple[tuple[int, float], ...]:
    """Return (epoch, valid MRR) of the epochs that were validated."""
    return tuple((record.epoch, record.mrr) for record in records if record.mrr is not None)


def stalled(records: Sequence[EpochRecord], patience: int) -> bool:
    """Whether the last ``patience`` validations brought nothing better than what was before them."""
    found = [mrr for _, mrr in curve(records)]
    if patience == 0 or len(found) <= patience:
        return False
    return max(found[-patience:]) <= max(found[:-patience])
