"""Scorers: whatever answers (head, relation, ?). Nothing above looks further into a model than this."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from modulekge.machine import free_memory
from modulekge.shapes import Ids, Scores
from modulekge.workers import ALONE, Workers

_BYTES_PER_SCORE = 16  # a score, the comparisons made of it, and room to spare
_MOST_SCORES = {"cpu": 1 << 23, "cuda": 1 << 28}  # larger batches are no faster


class Scorer(ABC):
    r"""$f_r(h, e)$ for every entity $e$ as the answer to (head, relation, ?).

    Heads are asked for through the inverse relations $r + |R|$. A scorer owns what it needs and does not
    change: the same questions get the same scores, whoever asked before. Where several processes hold the
    entities between them, :meth:`scores` has the columns ``held`` here.
    """

    name: str  # what reports call it
    n_entities: int  # candidates of a question
    n_relations: int  # that can be asked for, inverses included
    device: torch.device  # where questions are to lie
    workers: Workers = ALONE

    @property
    def held(self) -> slice:
        """The entities whose scores this process has."""
        return slice(0, self.n_entities)

    @property
    def plain(self) -> "Scorer":
        """The scorer below any reranking, by which pairs of entities are asked for relations."""
        return self

    @property
    def cost(self) -> int:
        """What a question costs, in scores of an embedding; of what costs much, samples are taken."""
        return self.n_entities

    @property
    def cost_of_one(self) -> int:
        """What the score of one candidate alone costs, likewise."""
        return 1

    @property
    def at_once(self) -> int:
        """How many questions to ask at once."""
        return batch_size(self.held.stop - self.held.start, self.device)

    @abstractmethod
    def scores(self, heads: Ids, relations: Ids) -> Scores:
        """The score of every entity as the answer to each question."""

    @abstractmethod
    def scores_of(self, heads: Ids, relations: Ids, candidates: Int[Tensor, "b k"]) -> Float[Tensor, "b k"]:
        """The score of the candidates of its own row as answers to each question."""

    def inverse(self, relations: Ids) -> Ids:
        """Return the relations that ask the other way round."""
        return (relations + self.n_relations // 2) % self.n_relations

    def inverse_scores(self, heads: Ids, relation: int) -> Scores:
        r"""$f_{r^{-1}}(e, h)$: how well each head answers the inverse question of every entity $e$."""
        every = torch.arange(self.n_entities, device=self.device)
        found = torch.empty(len(heads), self.n_entities, device=self.device)
        for some in every.split(batch_size(len(heads), self.device)):
            asked = self.inverse(torch.full_like(some, relation))
            found[:, some] = self.scores_of(some, asked, heads.expand(len(some), -1)).T
        return found

    def best_scores(self, relation: int) -> Float[Tensor, " e"]:
        r"""$\max_c f_r(e, c)$ of every entity $e$."""
        every = torch.arange(self.n_entities, device=self.device)
        parts = every.split(batch_size(self.n_entities, self.device))
        return torch.cat([self.scores(some, torch.full_like(some, relation)).amax(1) for some in parts])

    def order(self, relations: Ids) -> Ids:
        """Return the order in which many questions are asked fastest."""
        return torch.arange(len(relations), device=relations.device)


def batch_size(n_entities: int, device: torch.device) -> int:
    """Return how many questions to ask at once: a quarter of the free memory at most."""
    most = _MOST_SCORES.get(device.type, 1 << 23)
    return max(1, min(most, free_memory(device) // 4 // _BYTES_PER_SCORE) // max(1, n_entities))


def by_relation(relations: Ids) -> Iterator[tuple[int, Int[Tensor, " _rows"]]]:
    """Yield each relation of some questions, and which of them ask for it."""
    for relation in relations.unique().tolist():
        yield relation, (relations == relation).nonzero()[:, 0]
