"""The filtered ranking of questions against every entity, in bounded memory, and reports on it."""

import time
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor

from modulekge.data.benchmarks import Split
from modulekge.data.dataset import Dataset
from modulekge.data.filter_index import FilterIndex
from modulekge.data.splits import sample
from modulekge.data.statistics import CATEGORIES, categories
from modulekge.evaluation.metrics import bootstrap, metrics
from modulekge.evaluation.ranks import TIES, Ranks, scores_of
from modulekge.evaluation.report import Protocol, RelationReport, Report
from modulekge.machine import frugal, is_short
from modulekge.models.scorer import Scorer
from modulekge.shapes import Triples

MOST_SCORES = 10_000_000_000  # of a report: questions times entities; beyond, a sample of the split is ranked


def ranked_triples(
    scorer: Scorer,
    dataset: Dataset,
    split: Split,
    most_scores: int = MOST_SCORES,
    most_questions: int | None = None,
) -> Triples:
    """Return the triples of a split, or a sample whose questions cost at most so many scores in all."""
    most = most_scores // scorer.cost
    return sample(dataset[split], max(1, min(most, most_questions or most) // 2))


@torch.no_grad()
def rank(scorer: Scorer, questions: Triples, known: FilterIndex, at_once: int | None = None) -> Ranks:
    """Rank the tail of each (head, relation, tail) among all entities that are not known answers."""
    return Ranks.join(list(rank_in_batches(scorer, questions, known, at_once)))


@frugal
@torch.no_grad()
def rank_in_batches(
    scorer: Scorer, questions: Triples, known: FilterIndex, at_once: int | None = None
) -> Iterator[Ranks]:
    """Yield the ranks of batches of ``at_once``; where memory is short, the batches get smaller.

    Where processes hold the entities between them, all rank together and have the ranks of all questions.
    """
    device, workers = scorer.device, scorer.workers
    questions, known = questions.to(device), known.to(device)
    size = at_once or workers.all_min(scorer.at_once) * workers.copies
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


def evaluate(
    scorer: Scorer,
    dataset: Dataset,
    split: Split = "test",
    watch: Callable[[Iterator[Ranks]], Iterable[Ranks]] = iter,
    triples: Triples | None = None,
) -> Report:
    """Rank the questions of a split and report on it; ``watch`` may show the batches as they pass.

    ``triples`` are those of :func:`ranked_triples` unless given, such as ``dataset[split]``: all of them.
    """
    started = time.perf_counter()
    dataset.check_split(split, "to evaluate on; name another")
    triples = ranked_triples(scorer, dataset, split) if triples is None else triples
    questions = dataset.with_inverses(triples)
    order = scorer.order(questions[:, 1])
    ranks = Ranks.join(list(watch(rank_in_batches(scorer, questions[order], dataset.known))))
    ranks = ranks.at(order.argsort())
    return _report(scorer.name, dataset, split, triples, ranks, time.perf_counter() - started)


def _report(
    name: str, dataset: Dataset, split: Split, triples: Triples, ranks: Ranks, seconds: float
) -> Report:
    count, whole = len(triples), len(dataset[split])
    drawn = {} if count == whole else {"triples": f"a sample: {count:,} of {whole:,}, drawn with seed 0"}
    sides = ranks.rank("bottom").reshape(2, -1)  # tails asked for, then heads
    seen = dataset.seen[triples[:, [0, 2]]].all(1)
    relation_of = triples[:, 1]
    kinds = categories(dataset)
    kind_of = torch.tensor([CATEGORIES.index(kind) for kind in kinds])[relation_of]
    present = relation_of.unique().tolist()
    return Report(
        model=name,
        dataset=dataset.name,
        fingerprint=dataset.fingerprint,
        split=split,
        triples=len(triples),
        candidates=len(dataset.entities),
        both=metrics(sides.flatten()),
        intervals=bootstrap(sides),
        head=metrics(sides[1]),
        tail=metrics(sides[0]),
        ties={ties: metrics(ranks.rank(ties)) for ties in TIES},
        without_unseen=metrics(sides[:, seen].flatten()) if seen.any() else None,
        unseen_triples=int((~seen).sum()),
        relations=tuple(_part(dataset.relations.label(r), sides[:, relation_of == r]) for r in present),
        categories=tuple(_part(CATEGORIES[i], sides[:, kind_of == i]) for i in kind_of.unique().tolist()),
        seconds=seconds,
        protocol=Protocol(**drawn),
    )


def _part(name: str, sides: Tensor) -> RelationReport:
    return RelationReport(
        name, sides.shape[1], metrics(sides.flatten()), head=metrics(sides[1]), tail=metrics(sides[0])
    )
