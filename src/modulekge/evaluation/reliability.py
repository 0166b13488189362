"""Whether probabilities are true: of the answers that are given 30 %, do 30 % hold?"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from modulekge.evaluation.odds import ScoredBatch

SHOWN = 10  # the best candidates of a question, among which reliability is measured: what people look at
BINS = 10


@dataclass(frozen=True)
class Bin:
    """Answers of nearly equal probability: how many, how probable on average, and which share is true."""

    answers: int
    probability: float
    true: float


@dataclass(frozen=True)
class Accuracy:
    r"""How good probabilities are, over all candidates of a question, and over the best ten of each.

    The log loss $-\sum_c \log P(c \text{ is what it is})$ and the Brier score $\sum_c (p_c - y_c)^2$ are
    means over questions. The calibration error is the mean of |probability - share true| over the bins of
    the best ten, weighted by their answers.
    """

    log_loss: float
    brier: float
    error: float
    bins: tuple[Bin, ...]


@dataclass(frozen=True)
class Reliability:
    """Accuracy of a plain softmax and of calibrated probabilities on the same questions."""

    questions: int
    before: Accuracy
    after: Accuracy


@dataclass(frozen=True)
class Coverage:
    """Which share of the missing facts lay in their prediction sets, and how large the same sets were.

    Each is the set that a user gets who knows every fact but this one.
    """

    asked: float
    triples: int
    share: float
    size: float  # mean number of candidates in a set


@dataclass(eq=False)
class Meter:
    r"""Sums over questions, by relation; probabilities are $\sigma(slope\, x + offset)$ of log-odds $x$."""

    slopes: Float[Tensor, " relations"]
    offsets: Float[Tensor, " relations"]
    sums: dict[str, Tensor] = field(default_factory=dict)

    def add(self, asked: ScoredBatch) -> None:
        """Measure the questions of a batch."""
        device, dtype = asked.odds.device, asked.odds.dtype
        slopes, offsets = (
            part.to(device, dtype)[asked.relations, None] for part in (self.slopes, self.offsets)
        )
        best = (
            asked.odds.masked_fill(~asked.candidate, -torch.inf).topk(min(SHOWN, asked.odds.shape[1])).indices
        )
        shown, true = asked.candidate.gather(1, best), asked.true.gather(1, best)
        self._sum("questions", asked.relations, torch.ones_like(asked.odds[:, 0]))
        for when, odds in (("before", asked.odds), ("after", slopes * asked.odds + offsets)):
            chance, truth = odds.sigmoid(), asked.true.to(dtype)
            loss = (softplus(odds) - truth * odds).where(asked.candidate, 0)
            wrong = (chance - truth).square().where(asked.candidate, 0)
            self._sum(f"{when} log_loss", asked.relations, loss.sum(1))
            self._sum(f"{when} brier", asked.relations, wrong.sum(1))
            chances = chance.gather(1, best)
            places = asked.relations[:, None] * BINS + (chances * BINS).long().clamp(max=BINS - 1)
            for name, values in (("count", shown), ("chance", chances * shown), ("true", true & shown)):
                self._sum(f"{when} {name}", places.flatten(), values.flatten(), BINS)

    def _sum(self, name: str, places: Tensor, values: Tensor, bins: int = 1) -> None:
        start = torch.zeros(len(self.slopes) * bins, dtype=torch.float64, device=places.device)
        self.sums.setdefault(name, start).index_add_(0, places, values.double())

    def reliability(self, relations: Iterable[int] | None = None) -> Reliability:
        """Return the figures over all questions, or over those of some relations."""
        some = slice(None) if relations is None else list(relations)
        questions = float(self.sums["questions"][some].sum())
        before, after = (self._accuracy(when, some, questions) for when in ("before", "after"))
        return Reliability(int(questions), before, after)

    def _accuracy(self, when: str, some: slice | list[int], questions: float) -> Accuracy:
        loss, brier = (
            float(self.sums[f"{when} {name}"][some].sum()) / max(1, questions)
            for name in ("log_loss", "brier")
        )
        counts, chances, true = (
            self.sums[f"{when} {name}"].view(-1, BINS)[some].sum(0) for name in ("count", "chance", "true")
        )
        error = float((chances - true).abs().sum() / counts.sum().clamp(min=1))
        bins = tuple(
            Bin(int(n), p / n, y / n)
            for n, p, y in zip(counts.tolist(), chances.tolist(), true.tolist(), strict=True)
            if n
        )
        return Accuracy(loss, brier, error, bins)
