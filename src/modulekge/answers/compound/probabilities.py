"""Probabilities of links, a row for each question (head, relation, ?), and the rows that are kept."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from modulekge.data.filter_index import FilterIndex
from modulekge.errors import QuestionError
from modulekge.evaluation.calibration import Calibration
from modulekge.evaluation.odds import FARTHEST
from modulekge.models.scorer import Scorer
from modulekge.shapes import Ids, Scores

THRESHOLD = 1e-3  # links that are less probable count as impossible
_TINY = 1e-30  # what is not 0
_ROUNDING = 1e-4  # of scores, so that no link of just the threshold is lost
MOST_BYTES = 1 << 29  # of rows that are kept
MOST_SCORES = 1 << 36  # worked out for one question, so that nobody waits for hours


@torch.no_grad()
def link_probabilities(
    scorer: Scorer,
    heads: Ids,
    relations: Ids,
    facts: FilterIndex,
    calibration: Calibration | None = None,
    temperature: float = 1.0,
    irreflexive: Bool[Tensor, " r"] | None = None,
    threshold: float = 0.0,
) -> Scores:
    r"""$p_c = \sigma(a x_c + b)$ as calibrated, else $\min(1, n\, e^{s_c/\tau} / \sum_{c'} e^{s_{c'}/\tau})$.

    1 for known facts, 0 for loops of ``irreflexive`` relations and for what is below the threshold. With a
    calibration, $x_c$ are the log-odds among what is not known (:mod:`modulekge.evaluation.calibration`).
    Without one, a softmax over all entities times the number $n$ of known answers, at least 1: QTO's (Bai et
    al. 2023), which is fitted to nothing.
    """
    scores = scorer.scores(heads, relations)
    known = facts.of_questions(heads, relations)
    alone = heads.new_zeros(0) if irreflexive is None else irreflexive[relations].nonzero()[:, 0]
    loops = alone, heads[alone]
    if calibration is None:
        shares = (scores / temperature).softmax(1)
        chances = shares.mul_(facts.counts(heads, relations).clamp(min=1)[:, None]).clamp_(max=1)
        chances.masked_fill_(chances < threshold, 0)
    else:
        scores[known] = scores[loops] = -torch.inf
        chances = _calibrated(scores, relations, calibration, threshold)
    chances[loops] = 0
    chances[known] = 1
    return chances


def _calibrated(scores: Scores, relations: Ids, calibration: Calibration, threshold: float) -> Scores:
    r"""$\sigma(a x + b)$ where it is at least the threshold $\epsilon$, for which few are worked out.

    $x_c \ge l = (\operatorname{logit} \epsilon - b) / a$ means
    $s_c \ge \log \sum_{c'} e^{s_{c'}} + \log \sigma(l)$.
    """
    lines = [calibration.line(relation) for relation in relations.tolist()]
    slopes, offsets = (scores.new_tensor([getattr(x, name) for x in lines]) for name in ("slope", "offset"))
    total = scores.logsumexp(1).clamp(min=torch.finfo(scores.dtype).min)
    least = (torch.logit(torch.full_like(total, threshold)) - offsets) / slopes.clamp(min=1e-9)
    bar = total + torch.nn.functional.logsigmoid(least) - _ROUNDING
    rows, columns = (scores >= bar[:, None]).nonzero(as_tuple=True)
    own = scores[rows, columns]
    shares = (own - total[rows]).exp()
    odds = own - total[rows] - torch.log1p(-shares)
    first = (shares > 0.5).nonzero()[:, 0]  # one of a row at most, whose rivals are summed up without it
    rivals = scores[rows[first]].scatter_(1, columns[first][:, None], -torch.inf).logsumexp(1)
    odds[first] = (own[first] - rivals).clamp(max=FARTHEST)
    chances = (slopes[rows] * odds + offsets[rows]).sigmoid()
    chances[(odds >= FARTHEST) | (chances < threshold)] = 0  # without rivals, the score says nothing
    found = torch.zeros_like(scores)
    found[rows, columns] = chances
    return found


class Entries(NamedTuple):
    """What is not 0 of some rows: the place of its row among those asked for, its column, its value."""

    rows: Int[Tensor, " m"]
    columns: Int[Tensor, " m"]
    values: Float[Tensor, " m"]


class LinkRows(ABC):
    """Probabilities of links, row by row, without what is 0."""

    n_entities: int
    device: torch.device

    @abstractmethod
    def entries(self, relation: int, heads: Ids) -> Entries:
        """Return the rows of some heads."""


class FactRows(LinkRows):
    """1 for facts and 0 for all else: what the graph alone answers."""

    def __init__(self, facts: FilterIndex, n_entities: int, device: torch.device) -> None:
        self.facts, self.n_entities, self.device = facts, n_entities, device

    def entries(self, relation: int, heads: Ids) -> Entries:
        """Return the facts of some heads."""
        rows, tails = self.facts.of_questions(heads, torch.full_like(heads, relation))
        return Entries(rows, tails, torch.ones(len(rows), device=self.device))


class ScoredRows(LinkRows):
    """Rows that a function works out when they are first asked for, in batches, and that are kept.

    What is below the threshold is 0. Beyond ``most_bytes``, the relations that were asked for longest ago
    are forgotten. ``begin`` starts a question, of which at most ``most_scores`` may be worked out anew.
    """

    def __init__(
        self,
        probabilities: Callable[[Ids, Ids], Scores],
        n_entities: int,
        device: torch.device,
        at_once: int,
        threshold: float = THRESHOLD,
        cost: int | None = None,  # of a row, in scores
        most_bytes: int = MOST_BYTES,
        most_scores: int = MOST_SCORES,
    ) -> None:
        self._probabilities, self._at_once, self._cost = probabilities, at_once, cost or n_entities
        self.n_entities, self.device, self.threshold = n_entities, device, threshold
        self._most_bytes, self._most_scores, self._left = most_bytes, most_scores, most_scores
        self._kept: OrderedDict[int, _Kept] = OrderedDict()

    def begin(self) -> None:
        """Start a question."""
        self._left = self._most_scores

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return sum(kept.size for kept in self._kept.values())

    def entries(self, relation: int, heads: Ids) -> Entries:
        """Return the rows of some heads; those that are not kept are worked out."""
        if relation not in self._kept:
            self._kept[relation] = _Kept(self.n_entities, self.device)
        self._kept.move_to_end(relation)
        if (self._kept[relation].counts[heads] < 0).any():
            self._make_room(relation)
            self._work_out(relation, heads[self._kept[relation].counts[heads] < 0].unique())
        return self._kept[relation].entries(heads)

    def _work_out(self, relation: int, heads: Ids) -> None:
        self._left -= len(heads) * self._cost
        if self._left < 0:
            most = f"{self._most_scores // self._cost:,}"
            raise QuestionError(
                f"more than {most} rows of probabilities would have to be worked out; name an "
                "entity nearer to the variables, or leave a link out"
            )
        for some in heads.split(self._at_once):
            chances = self._probabilities(some, torch.full_like(some, relation))
            rows, columns = (chances >= max(self.threshold, _TINY)).nonzero(as_tuple=True)
            counts = rows.bincount(minlength=len(some))
            self._kept[relation].add(some, counts, columns, chances[rows, columns])

    def _make_room(self, relation: int) -> None:
        """Forget what was asked for longest ago; last of all, other rows of this relation."""
        while self.size > self._most_bytes and len(self._kept) > 1:
            self._kept.popitem(last=False)
        if self.size > self._most_bytes:
            self._kept[relation] = _Kept(self.n_entities, self.device)


class _Kept:
    """Rows of a relation: row h has ``counts[h]`` entries from ``starts[h]`` on; -1: it is not kept."""

    def __init__(self, n_entities: int, device: torch.device) -> None:
        self.starts = torch.zeros(n_entities, dtype=torch.long, device=device)
        self.counts = torch.full_like(self.starts, -1)
        self._columns = torch.zeros(0, dtype=torch.int32, device=device)
        self._values = torch.zeros(0, device=device)
        self._used = 0

    @property
    def size(self) -> int:
        return sum(x.nbytes for x in (self.starts, self.counts, self._columns, self._values))

    def add(self, heads: Ids, counts: Tensor, columns: Tensor, values: Tensor) -> None:
        """Keep rows; room for more is doubled when it runs out."""
        end = self._used + len(columns)
        if end > len(self._columns):
            room = max(end, 2 * len(self._columns))
            self._columns, self._values = (
                torch.cat([x[: self._used], x.new_empty(room - self._used)])
                for x in (self._columns, self._values)
            )
        self._columns[self._used : end] = columns
        self._values[self._used : end] = values
        self.starts[heads] = self._used + counts.cumsum(0) - counts
        self.counts[heads] = counts
        self._used = end

    def entries(self, heads: Ids) -> Entries:
        counts = self.counts[heads]
        rows = torch.repeat_interleave(torch.arange(len(heads), device=heads.device), counts)
        first = self.starts[heads] - (counts.cumsum(0) - counts)
        places = torch.arange(len(rows), device=heads.device) + first[rows]
        return Entries(rows, self._columns[places].long(), self._values[places])
