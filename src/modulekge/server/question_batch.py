"""Questions of several requests, answered in as few calls as there are kinds of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from modulekge.answers.predictor import Known, Predictor
from modulekge.answers.questions import Answer, QuestionIds
from modulekge.data.type_constraints import Types


@dataclass(frozen=True)
class QuestionBatch:
    """Questions of one request, how many answers each, and which may be among them."""

    questions: tuple[QuestionIds, ...]
    k: int
    known: Known
    types: Types


def answer_together(predictor: Predictor, batch: Sequence[QuestionBatch]) -> list[list[list[Answer]]]:
    """Answer requests together: one call for all questions of a kind."""
    dataset = predictor.run.dataset
    found: list[list[list[Answer]]] = [[[] for _ in asked.questions] for asked in batch]
    kinds: dict[tuple[Known, Types, bool], list[tuple[int, int]]] = {}
    for i, asked in enumerate(batch):
        for j, question in enumerate(asked.questions):
            kinds.setdefault((asked.known, asked.types, question.for_relations), []).append((i, j))
    for (known, types, for_relations), places in kinds.items():
        k = min(
            len(dataset.relations if for_relations else dataset.entities), max(batch[i].k for i, _ in places)
        )
        rows = predictor.predict_ids([batch[i].questions[j] for i, j in places], k, known, types)
        for (i, j), row in zip(places, rows, strict=True):
            found[i][j] = row[: batch[i].k]
    return found
