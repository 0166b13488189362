"""The filtered ranking of questions against every entity, in bounded memory."""

from collections.abc import Iterator

import torch

from modulekge.data.filter_index import FilterIndex
from modulekge.evaluation.ranks import Ranks, scores_of
from modulekge.machine import is_short
from modulekge.models.scorer import Scorer, batch_size
from modulekge.shapes import Triples


@torch.no_grad()
def rank(scorer: Scorer, questions: Triples, known: FilterIndex, at_once: int | None = None) -> Ranks:
    """Rank the tail of each (head, relation, tail) among all entities that are not known answers."""
    return Ranks.join(list(rank_in_batches(scorer, questions, known, at_once)))


@torch.no_grad()
def rank_in_batches(
    scorer: Scorer, questions: Triples, known: FilterIndex, at_once: int | None = None
) -> Iterator[Ranks]:
    """Yield the ranks of batches of ``at_once``; where memory is short, the batches get smaller.

    Where processes hold the entities between them, all rank together and have the ranks of all questions.
    """
    device, workers, held = scorer.device, scorer.workers, scorer.held
    questions, known = questions.to(device), known.to(device)
    size = at_once or workers.all_min(batch_size(held.stop - held.start, device)) * workers.copies
    start = 0
    while start < len(questions):
        try:
            ranks = _rank_batch(scorer, questions[start : start + size], known)
        except RuntimeError as error:
            if size == 1 or not is_short(error) or workers.size > 1:  # the others would not know
                raise
            size = max(1, size // 2)
            continue
        yield ranks
        start += size


def _rank_batch(scorer: Scorer, questions: Triples, known: FilterIndex) -> Ranks:
    workers, first = scorer.workers, scorer.held.start
    own = workers.questions(len(questions))
    heads, relations, tails = questions[own].unbind(1)
    scores = scorer.scores(heads, relations)
    (true,) = workers.sum(scores_of(scores, tails - first))
    rows, others = known.of_questions(heads, relations)
    ranks = Ranks.of(scores, tails - first, (rows, others - first), true)
    if workers.size > 1:
        counts = questions.new_zeros(2, len(questions))
        counts[:, own] = torch.stack([ranks.above, ranks.not_below])
        ranks = Ranks(*workers.total(counts).unbind())
    return Ranks(ranks.above.cpu(), ranks.not_below.cpu())
