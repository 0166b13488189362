"""Questions by name, answers by name: no HTTP here."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from modulekge.data.dataset import Split
from modulekge.errors import QuestionError
from modulekge.run.train import Run, load
from modulekge.shapes import Entities


@dataclass(frozen=True)
class Answer:
    """An entity that may complete a triple."""

    rank: int
    name: str
    label: str
    score: float
    split: Split | None  # where the triple stands; None where it is new

    @property
    def known(self) -> bool:
        """The triple is a fact of the graph, though perhaps one held out from training."""
        return self.split is not None


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
            raise QuestionError("give either a head or a tail; the other one is predicted")
        if k < 1:
            raise QuestionError(f"k = {k}: ask for at least one answer")
        dataset, model = self.run.dataset, self.run.model
        given = dataset.entities.find(head or tail or "")
        asked = dataset.relations.find(relation)
        # The reciprocal relation asks for heads.
        question = (given, asked if tail is None else asked + len(dataset.relations))
        scores = model.scores(model.queries(*(torch.tensor([i]) for i in question)), self.table)[0]
        best = scores.topk(min(k, len(dataset.entities)))
        return [
            Answer(
                rank,
                dataset.entities.names[i],
                dataset.entities.label(i),
                score,
                dataset.split_of((given, asked, i) if tail is None else (i, asked, given)),
            )
            for rank, (i, score) in enumerate(
                zip(best.indices.tolist(), best.values.tolist(), strict=True), start=1
            )
        ]


def predict(
    run: Run | str | Path, *, head: str | None = None, relation: str, tail: str | None = None, k: int = 10
) -> list[Answer]:
    """Return the ``k`` best answers to one question; for many questions keep a :class:`Predictor`."""
    return Predictor(run if isinstance(run, Run) else load(run)).predict(
        head=head, relation=relation, tail=tail, k=k
    )
