r"""Reranking: a candidate's score beside its inverse question, its hubness and its prior.

$f_r(h, e) + \lambda f_{r^{-1}}(e, h) - \nu \max_c f_{r^{-1}}(e, c) + \mu \log(1 + n_r(e))$: how well the head
answers the candidate's inverse question, beside the entity that answers it best, and how often the candidate
answers $r$ in train.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor

from modulekge.config import RerankConfig
from modulekge.models.scorer import Scorer, by_relation
from modulekge.shapes import Ids, Scores, Triples

NOT_RERANKED = RerankConfig()
_MOST_OFFSETS = 1 << 28  # numbers kept of entities and relations


class Reranked(Scorer):
    r"""Another scorer's candidates, reranked.

    What is added to a candidate in any case, $\mu \log(1 + n_r(e)) - \nu \max_c f_{r^{-1}}(e, c)$, takes the
    scores of all entities with all. It is worked out once for a relation, when that is asked for, and can
    be given as ``offsets`` where it was kept.
    """

    def __init__(
        self,
        base: Scorer,
        weights: RerankConfig,
        train: Triples,
        offsets: Mapping[int, Float[Tensor, " e"]] | None = None,
        most_offsets: int = _MOST_OFFSETS,
    ) -> None:
        """Rerank ``base``; ``train`` are the questions of train with their answers, which are counted."""
        self.base, self.weights, self._train, self._most = base, weights, train, most_offsets
        self.name, self.device = weights.named(base.name), base.device
        self.n_entities, self.n_relations = base.n_entities, base.n_relations
        self.offsets = {relation: offset.to(base.device) for relation, offset in (offsets or {}).items()}

    @property
    def plain(self) -> Scorer:
        """What is reranked."""
        return self.base.plain

    @torch.no_grad()
    def scores(self, heads: Ids, relations: Ids) -> Scores:
        """The reranked score of every entity."""
        scores = self.base.scores(heads, relations)
        for relation, rows in by_relation(relations):
            if self._adds:
                scores[rows] += self.offset(relation)
            if self.weights.inverse:
                scores[rows] += self.weights.inverse * self.base.inverse_scores(heads[rows], relation)
        return scores

    @torch.no_grad()
    def scores_of(self, heads: Ids, relations: Ids, candidates: Int[Tensor, "b k"]) -> Float[Tensor, "b k"]:
        """The reranked score of candidates."""
        scores = self.base.scores_of(heads, relations, candidates)
        if self.weights.inverse:
            count = candidates.shape[1]
            asked, theirs = (x.repeat_interleave(count) for x in (self.inverse(relations), heads))
            answered = self.base.scores_of(candidates.flatten(), asked, theirs[:, None])
            scores = scores + self.weights.inverse * answered.view_as(candidates)
        if self._adds:
            pairs = zip(relations.tolist(), candidates, strict=True)
            scores = scores + torch.stack([self.offset(relation)[row] for relation, row in pairs])
        return scores

    @property
    def _adds(self) -> bool:
        return max(self.weights.hubness, self.weights.prior) > 0

    def offset(self, relation: int) -> Float[Tensor, " e"]:
        """What is added to the scores of every entity as answers to a relation."""
        if (known := self.offsets.get(relation)) is not None:
            return known
        found = torch.zeros(self.n_entities, device=self.device)
        if self.weights.hubness:
            found -= self.weights.hubness * self.hubness(relation)
        if self.weights.prior:
            found += self.weights.prior * self.prior(relation)
        while self.offsets and (len(self.offsets) + 1) * self.n_entities > self._most:
            self.offsets.pop(next(iter(self.offsets)), None)
        self.offsets[relation] = found
        return found

    def hubness(self, relation: int) -> Float[Tensor, " e"]:
        r"""$\max_c f_{r^{-1}}(e, c)$ of every entity $e$."""
        inverse = int(self.inverse(torch.tensor([relation])))
        return self.base.best_scores(inverse)

    def prior(self, relation: int) -> Float[Tensor, " e"]:
        r"""$\log(1 + n_r(e))$ of every entity $e$, which answers $r$ so often in train."""
        tails = self._train[self._train[:, 1] == relation, 2]
        return torch.bincount(tails, minlength=self.n_entities).to(self.device).float().log1p()

    def order(self, relations: Ids) -> Ids:
        """By relation: each of them asks all candidates once."""
        return relations.argsort(stable=True)
