r"""Mixtures: $f_r(h, e) = \sum_m w_{r,m}\, f_{m,r}(h, e)$, weighted scores of several scorers."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from modulekge.models.scorer import Scorer
from modulekge.shapes import Ids, Scores


@dataclass(frozen=True, eq=False)
class Mix:
    """How much members count: shares of each relation and inverse, and by what scores are divided first."""

    shares: Float[Tensor, "relations members"]  # of a relation 1 in all
    scales: Float[Tensor, " members"]

    @property
    def weights(self) -> Float[Tensor, "relations members"]:
        """What the scores of members are multiplied by."""
        return self.shares / self.scales

    @property
    def digest(self) -> str:
        """A short hash of the weights."""
        return hashlib.sha256(self.weights.contiguous().numpy().tobytes()).hexdigest()[:16]

    def enlarged(self, relations: int) -> "Mix":
        """Return the same for more relations, with inverses; in new ones members have their mean shares."""
        mean = self.shares.mean(0).expand((relations - len(self.shares)) // 2, -1)
        halves = [torch.cat([half, mean]) for half in self.shares.chunk(2)]
        return Mix(torch.cat(halves), self.scales)

    def ordered(self, order: Sequence[int]) -> "Mix":
        """Return the same for members in another order."""
        return Mix(self.shares[:, order], self.scales[order])


class Mixture(Scorer):
    """Scorers that answer together; each counts for a relation, and for its inverse, as the mix says.

    Who has no weight in any question of a batch is not asked.
    """

    def __init__(self, members: Sequence[Scorer], mix: Mix) -> None:
        """Mix members that have the same entities and relations; the first of them is the best alone."""
        first = members[0]
        self.members, self.device = tuple(members), first.device
        self.weights = mix.weights.to(first.device)
        self.n_entities, self.n_relations = first.n_entities, first.n_relations
        self.name = mixture_name([member.name for member in members])

    @property
    def plain(self) -> Scorer:
        """The first member's: weights of different relations do not compare."""
        return self.members[0].plain

    @property
    def cost(self) -> int:
        """What all members cost."""
        return sum(member.cost for member in self.members)

    @property
    def at_once(self) -> int:
        """As many as every member takes."""
        return min(member.at_once for member in self.members)

    @torch.no_grad()
    def scores(self, heads: Ids, relations: Ids) -> Scores:
        """The weighted score of every entity."""
        weights = self.weights[relations]
        total = torch.zeros(len(heads), self.n_entities, device=self.device)
        for member, weight in zip(self.members, weights.unbind(1), strict=True):
            if weight.any():
                total.addcmul_(weight[:, None], member.scores(heads, relations))
        return total

    @torch.no_grad()
    def scores_of(self, heads: Ids, relations: Ids, candidates: Int[Tensor, "b k"]) -> Float[Tensor, "b k"]:
        """The weighted score of candidates."""
        weights = self.weights[relations]
        total = torch.zeros(candidates.shape, device=self.device)
        for member, weight in zip(self.members, weights.unbind(1), strict=True):
            if weight.any():
                total.addcmul_(weight[:, None], member.scores_of(heads, relations, candidates))
        return total

    def order(self, relations: Ids) -> Ids:
        """By relation, as reranked members want it."""
        return relations.argsort(stable=True)


def mixture_name(members: Sequence[str]) -> str:
    """What reports call a mixture."""
    return "Mixture of " + ", ".join(members)
