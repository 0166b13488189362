"""The filtered ranking of questions against every entity, in bounded memory."""

from collections.abc import Iterator

import torch

from modulekge.data.filter_index import KnownAnswers
from modulekge.evaluation.ranks import Ranks, scores_of
from modulekge.evaluation.scoring import batch_size, entity_scores
from modulekge.machine import is_short
from modulekge.models.embedding import Model
from modulekge.shapes import Entities, Triples


@torch.no_grad()
def rank(model: Model, questions: Triples, known: KnownAnswers) -> Ranks:
    """Rank the tail of each (head, relation, tail) among all entities that are not known answers."""
    return Ranks.join(list(rank_in_batches(model, questions, known)))


@torch.no_grad()
def rank_in_batches(model: Model, questions: Triples, known: KnownAnswers) -> Iterator[Ranks]:
    """Yield the ranks of consecutive batches; where memory is short, the batches get smaller.

    Where processes hold the entities between them, all rank together and have the ranks of all questions.
    """
    table = model.entities()
    device, workers = table.device, model.workers
    questions, known = questions.to(device), known.to(device)
    size, start = workers.least(batch_size(len(table), device)) * workers.copies, 0
    while start < len(questions):
        try:
            ranks = _rank_batch(model, table, questions[start : start + size], known)
        except RuntimeError as error:
            if size == 1 or not is_short(error) or workers.size > 1:  # the others would not know
                raise
            size = max(1, size // 2)
            continue
        yield ranks
        start += size


def _rank_batch(model: Model, table: Entities, questions: Triples, known: KnownAnswers) -> Ranks:
    workers, first = model.workers, model.held.start
    own = workers.questions(len(questions))
    heads, relations, tails = questions[own].unbind(1)
    scores = entity_scores(model, heads, relations, table)
    (true,) = workers.sum(scores_of(scores, tails - first))
    rows, others = known.of_questions(heads, relations)
    ranks = Ranks.of(scores, tails - first, (rows, others - first), true)
    if workers.size > 1:
        counts = questions.new_zeros(2, len(questions))
        counts[:, own] = torch.stack([ranks.above, ranks.not_below])
        ranks = Ranks(*workers.total(counts).unbind())
    return Ranks(ranks.above.cpu(), ranks.not_below.cpu())
