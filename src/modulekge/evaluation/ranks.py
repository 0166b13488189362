"""Ranks as counts of rivals, for every tie rule at once."""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from modulekge.shapes import Ids, Scores

Ties = Literal["bottom", "top", "mean"]
TIES: tuple[Ties, ...] = get_args(Ties)


@dataclass(frozen=True, eq=False)
class Ranks:
    """How many rivals stand above each answer. What cannot be compared (NaN) stands above."""

    above: Int[Tensor, " b"]  # rivals with a greater score
    not_below: Int[Tensor, " b"]  # rivals with no smaller score: ties count

    @classmethod
    def of(
        cls,
        scores: Scores,
        answers: Ids,
        known: tuple[Int[Tensor, " answers"], Int[Tensor, " answers"]],
        own: Float[Tensor, " b"] | None = None,
    ) -> "Ranks":
        """Count the rivals of each answer among the candidates that are not known answers.

        The answer's own score is read from the scores it is compared with, so that rounding can make
        no tie and no win. Where the scores are those of some candidates only, ``own`` gives it for all,
        answers and known ones may lie outside, and the counts of all parts add up.
        """
        count = scores.shape[1]
        own = (scores_of(scores, answers) if own is None else own)[:, None]
        rows, tails = known
        rival = (tails != answers[rows]) & (tails >= 0) & (tails < count)  # the answer itself may be known
        rows, tails = rows[rival], tails[rival]
        filtered, against = scores[rows, tails], own[rows, 0]
        here = (answers >= 0) & (answers < count)

        def rivals(lower: Tensor, lower_known: Tensor, lower_self: Tensor) -> Int[Tensor, " b"]:
            outside = torch.bincount(rows[~lower_known], minlength=len(answers))
            return count - lower.sum(1) - outside - (~lower_self[:, 0] & here).long()

        return cls(
            rivals(scores <= own, filtered <= against, own <= own),
            rivals(scores < own, filtered < against, own < own),
        )

    def rank(self, ties: Ties) -> Float[Tensor, " b"]:
        """Return 1 + the rivals before the answer: it is placed last, first, or midway among its ties."""
        counts = {
            "bottom": self.not_below,
            "top": self.above,
            "mean": (self.above + self.not_below) / 2,
        }
        return 1 + counts[ties].double()

    def at(self, places: Int[Tensor, " b"]) -> "Ranks":
        """Return the ranks of the questions in these places."""
        return Ranks(self.above[places], self.not_below[places])

    @staticmethod
    def join(parts: "list[Ranks]") -> "Ranks":
        """Lay ranks of different questions end to end."""
        return Ranks(torch.cat([p.above for p in parts]), torch.cat([p.not_below for p in parts]))


def scores_of(scores: Scores, answers: Ids) -> Float[Tensor, " b"]:
    """Return the score of each answer; 0 where it is not among the candidates."""
    inside = answers.clamp(0, scores.shape[1] - 1)
    return scores.gather(1, inside[:, None])[:, 0].masked_fill(inside != answers, 0)
