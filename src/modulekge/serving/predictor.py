"""Questions by name, answers by name: no HTTP here."""

from dataclasses import dataclass
from functools import cached_property

import torch

from modulekge.errors import UnknownNameError
from modulekge.run.train import Run
from modulekge.shapes import Entities


@dataclass(frozen=True)
class Answer:
    """An entity that may complete a triple."""

    rank: int
    name: str
    label: str
    score: float
    known: bool  # the triple stands in train, valid or test


@dataclass(frozen=True, eq=False)
class Predictor:
    """A run that can be asked; the entity table is built once."""

    run: Run

    @cached_property
    def table(self) -> Entities:
        r"""$s_e \odot v_e$ of every entity."""
        with torch.no_grad():
            return self.run.model.entities()

    @torch.no_grad()
    def predict(
        self, *, head: str | None = None, relation: str, tail: str | None = None, k: int = 10
    ) -> list[Answer]:
        """Return the ``k`` best tails of (head, relation, ?), or heads of (?, relation, tail)."""
        if (head is None) == (tail is None):
            raise UnknownNameError("give either a head or a tail; the other one is predicted")
        if k < 1:
            raise UnknownNameError(f"k = {k}: ask for at least one answer")
        dataset, model = self.run.dataset, self.run.model
        given = torch.tensor([dataset.entities.find(head or tail or "")])
        asked = torch.tensor([dataset.relations.find(relation)])
        if tail is not None:
            asked = asked + len(dataset.relations)  # the reciprocal asks for heads
        scores = model.scores(model.queries(given, asked), self.table)[0]
        best = scores.topk(min(k, len(dataset.entities)))
        known = set(dataset.known.of_questions(given, asked)[1].tolist())
        return [
            Answer(rank, dataset.entities.names[i], dataset.entities.label(i), score, i in known)
            for rank, (i, score) in enumerate(
                zip(best.indices.tolist(), best.values.tolist(), strict=True), start=1
            )
        ]


def predict(
    run: Run, *, head: str | None = None, relation: str, tail: str | None = None, k: int = 10
) -> list[Answer]:
    """Return the ``k`` best answers to one question; for many questions keep a :class:`Predictor`."""
    return Predictor(run).predict(head=head, relation=relation, tail=tail, k=k)
