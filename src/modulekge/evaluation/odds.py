"""Log-odds: how much a candidate stands out among those of its question, whatever the model's scores mean."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from modulekge.data.benchmarks import SPLITS, Split
from modulekge.data.dataset import Dataset
from modulekge.data.filter_index import FilterIndex
from modulekge.machine import frugal
from modulekge.models.scorer import Scorer, batch_size
from modulekge.shapes import Ids, Scores

FARTHEST = 1e6  # log-odds of the only candidate, which has no rivals
# Questions of a split that are asked at most, with so many scores, and at such a cost, but not fewer: they
# tell two numbers
_MOST_QUESTIONS, _MOST_SCORES, _MOST_COST, _LEAST_QUESTIONS = 1 << 16, 1 << 29, 3 << 28, 192
_MOST_PAIRS, _LEAST_PAIRS = 1 << 12, 20  # and not fewer: rather none
_BEST = 64  # whose odds are worked out one by one; the share of any other is below 1/64
_COPIES = 4  # of the scores, which odds and masks amount to
_SETS_AT_ONCE = 256  # prediction sets, each of which compares every entity
_MOST_QUERIES = 1 << 14  # at once, where each is for one score only


def log_odds(scores: Scores, known: Bool[Tensor, "b e"]) -> Scores:
    r"""$x_c = s_c - \log \sum_{c' \ne c} e^{s_{c'}}$ over the candidates $c'$: those that are not known.

    The log-odds of a softmax over the candidates. A known answer is scored as a filtered ranking does it:
    against the candidates, as if it were one.
    """
    asked = scores.masked_fill(known, -torch.inf)
    total = _total(asked)
    odds = asked - total
    best, places = odds.topk(min(_BEST, odds.shape[1]), 1)
    share = odds.exp()
    odds += share * (1 + share * (0.5 + share / 3))  # minus the log of 1 - share, where that is small
    best -= torch.log1p(-best.exp())
    rivals = _total(asked.scatter(1, places[:, :1], -torch.inf))  # of one whose share may be too near 1
    best[:, :1] = asked.gather(1, places[:, :1]) - rivals
    odds.scatter_(1, places, best)
    return torch.where(known, scores - total, odds).clamp_(-FARTHEST, FARTHEST)


def _total(scores: Scores) -> Float[Tensor, "b 1"]:
    """The log of the sum of exponentials; of none, the least number."""
    return scores.logsumexp(1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)


def marked(answers: FilterIndex, heads: Ids, relations: Ids, scores: Scores) -> Bool[Tensor, "b e"]:
    """Say which candidates are among the answers to the question of their row."""
    mask = torch.zeros_like(scores, dtype=torch.bool)
    mask[answers.of_questions(heads, relations)] = True
    return mask


def loops(irreflexive: Bool[Tensor, " r"], heads: Ids, relations: Ids, scores: Scores) -> Bool[Tensor, "b e"]:
    """Say which candidates are the head itself, where its relation has no loops: they are none."""
    mask = torch.zeros_like(scores, dtype=torch.bool)
    mask[torch.arange(len(heads), device=heads.device), heads] = irreflexive[relations]
    return mask


def questions_at_once(n_entities: int, device: torch.device) -> int:
    """Return how many questions for entities to ask at once."""
    return max(1, batch_size(n_entities, device) // _COPIES)


def pairs_at_once(n_relations: int) -> int:
    """Return how many questions for relations to ask at once: each takes a query per relation."""
    return max(1, _MOST_QUERIES // n_relations)


def most_questions(n_entities: int, cost: int) -> int:
    """Return how many questions of a split are asked at most, for the sake of time."""
    return min(_MOST_QUESTIONS, max(_LEAST_QUESTIONS, min(_MOST_SCORES // n_entities, _MOST_COST // cost)))


def most_pairs(n_relations: int, cost_of_one: int) -> int:
    """Return how many pairs of a split are asked for their relations at most; each takes them all."""
    affordable = _MOST_COST // (n_relations * cost_of_one)
    return min(_MOST_PAIRS, affordable) if affordable >= _LEAST_PAIRS else 0


def count_questions(scorer: Scorer, dataset: Dataset, split: Split) -> int:
    """Return how many questions of a split are asked."""
    keys = FilterIndex.of(dataset.questions(split), dataset.n_relations_with_inverses).keys
    return min(len(keys), most_questions(scorer.n_entities, scorer.cost))


@torch.no_grad()
def relation_scores(scorer: Scorer, heads: Ids, tails: Ids) -> Float[Tensor, "b r"]:
    """The score of (head, r, tail) for each relation r of the graph, not reranked; inverses are not asked."""
    count = scorer.n_relations // 2
    relations = torch.arange(count, device=heads.device).repeat(len(heads))
    candidates = tails.repeat_interleave(count)[:, None]
    scores = scorer.plain.scores_of(heads.repeat_interleave(count), relations, candidates)
    return scores.view(len(heads), count)


def relations_between(dataset: Dataset, splits: tuple[Split, ...] = SPLITS) -> FilterIndex:
    """The known relations of each pair: answers to the question (head, tail)."""
    triples = torch.cat([dataset[split] for split in splits])
    return FilterIndex.of(triples[:, [0, 2, 1]], len(dataset.entities))


@dataclass(frozen=True, eq=False)
class ScoredBatch:
    """Questions that a held-out split answers, with every candidate.

    The candidates are all entities that no other split knows as answers: the missing facts, and the rest,
    but not the head itself where its relation has no loops. One without rivals counts as none, for there is
    nothing to choose.
    """

    heads: Ids
    relations: Ids
    scores: Scores
    taken: Bool[Tensor, "b e"]  # answers that some split knows, and what can be none
    odds: Scores
    candidate: Bool[Tensor, "b e"]
    true: Bool[Tensor, "b e"]
    rows: Int[Tensor, " answers"]  # the question of each missing fact
    places: Int[Tensor, " answers"]  # and its answer
    margins: Float[Tensor, " answers"]  # its log-odds if all other facts, also of this split, are known

    def sets(
        self, least: Float[Tensor, " answers"]
    ) -> tuple[Bool[Tensor, " answers"], Int[Tensor, " answers"]]:
        r"""Return, for each missing fact, whether its prediction set holds it, and how large the set is.

        The set is what a user gets who knows all facts but this one: the candidates $c$ with log-odds
        $x_c \ge least$ among those that no split knows and the fact itself; never empty, the best is in it.
        $x_c \ge l$ means $s_c \ge \log \sum_{c'} e^{s_{c'}} + \log \sigma(l)$.
        """
        held, sizes = [], []
        scores = self.scores.double().masked_fill(self.taken, -torch.inf)
        for rows, places, bar in zip(
            *(x.split(_SETS_AT_ONCE) for x in (self.rows, self.places, least.double())), strict=True
        ):
            others, own = scores[rows], self.scores[rows, places].double()
            total = torch.logaddexp(others.logsumexp(1), own)
            threshold = total + torch.nn.functional.logsigmoid(bar)
            inside, count = own >= threshold, (others >= threshold[:, None]).sum(1)
            alone = ~inside & (count == 0)  # nothing reaches the bar: the best candidate is the set
            held.append(inside | (alone & (own > others.amax(1))))
            sizes.append(torch.where(alone, 1, count + inside.long()))
        return torch.cat(held), torch.cat(sizes)


@frugal
def scored_batches(
    scorer: Scorer, dataset: Dataset, split: Split, most: int | None = None
) -> Iterator[ScoredBatch]:
    """Ask the questions (head, relation) that a split answers, heads as tails of reciprocal relations.

    Of more than ``most``, by default :func:`most_questions`, some are asked, evenly spaced.
    """
    count = dataset.n_relations_with_inverses
    answers = FilterIndex.of(dataset.questions(split), count)
    keys = evenly_drawn(answers.keys, most or most_questions(scorer.n_entities, scorer.cost))
    yield from scored_questions(scorer, dataset, keys // count, keys % count, answers)


def scored_questions(
    scorer: Scorer, dataset: Dataset, heads: Ids, relations: Ids, answers: FilterIndex | None = None
) -> Iterator[ScoredBatch]:
    """Ask questions in the scorer's order; without ``answers`` no candidate is a missing fact."""
    device, count = scorer.device, dataset.n_relations_with_inverses
    answers = (answers or FilterIndex.of(dataset.train[:0], count)).to(device)
    known, irreflexive = dataset.known.to(device), dataset.irreflexive.to(device)
    order = scorer.order(relations)
    if not len(order):
        return
    at_once = questions_at_once(scorer.n_entities, device)
    for some, asks in zip(heads[order].split(at_once), relations[order].split(at_once), strict=True):
        some, asks = some.to(device), asks.to(device)
        scores = scorer.scores(some, asks)
        taken = marked(known, some, asks, scores) | loops(irreflexive, some, asks, scores)
        yield _asked(some, asks, scores, taken, answers, asks)


@frugal
def scored_pair_batches(scorer: Scorer, dataset: Dataset, split: Split) -> Iterator[ScoredBatch]:
    """Ask which relations hold between the pairs (head, tail) that a split joins, or some of them."""
    device = scorer.device
    answers = relations_between(dataset, (split,)).to(device)
    known = relations_between(dataset).to(device)
    count = len(dataset.relations)
    most = most_pairs(count, scorer.plain.cost_of_one)
    for some in evenly_drawn(answers.keys, most).split(pairs_at_once(count)):
        heads, tails = some // len(dataset.entities), some % len(dataset.entities)
        scores = relation_scores(scorer, heads, tails)
        taken = marked(known, heads, tails, scores)
        yield _asked(heads, tails, scores, taken, answers, torch.zeros_like(heads))


def _asked(
    heads: Ids,
    others: Ids,
    scores: Scores,
    taken: Bool[Tensor, "b e"],
    answers: FilterIndex,
    relations: Ids,
) -> ScoredBatch:
    true = marked(answers, heads, others, scores)
    rows, places = answers.of_questions(heads, others)
    margins = (scores - _total(scores.masked_fill(taken, -torch.inf)))[rows, places]
    odds = log_odds(scores, taken & ~true)
    candidate = (true | ~taken) & (odds < FARTHEST)
    margins = margins.clamp(-FARTHEST, FARTHEST)
    return ScoredBatch(heads, relations, scores, taken, odds, candidate, true, rows, places, margins)


def evenly_drawn(keys: Int[Tensor, " _all"], most: int) -> Int[Tensor, " _some"]:
    """Return at most so many of the questions, evenly spaced."""
    if len(keys) <= most:
        return keys
    return keys[torch.arange(most, device=keys.device) * len(keys) // most]
