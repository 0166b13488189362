"""The most probable new links of a whole graph, in bounded memory."""

from collections.abc import Callable, Iterable, Iterator
from math import ceil
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from modulekge.data.dataset import Dataset
from modulekge.data.type_constraints import TypeConstraints
from modulekge.evaluation.calibration import Calibration
from modulekge.evaluation.link_calibration import degree_classes
from modulekge.evaluation.odds import log_odds, loops, marked, questions_at_once
from modulekge.models.scorer import Scorer
from modulekge.shapes import Ids, Scores, Triples


class Chunk(NamedTuple):
    """The best new links of some heads, and their probabilities."""

    heads: int
    triples: Triples
    chances: Float[Tensor, " _m"]


Watch = Callable[[Iterator[Chunk]], Iterable[Chunk]]
_MOST_COST = {"cpu": 1 << 34, "cuda": 1 << 42}  # of a search that nobody waits for longer: minutes


def affordable(scorer: Scorer, questions: int) -> float:
    """Return the share of so many questions that is asked in minutes; each of an embedding, as a rule."""
    return min(1.0, _MOST_COST.get(scorer.device.type, _MOST_COST["cpu"]) / max(1, questions * scorer.cost))


def best_links(
    chunks: Iterable[Chunk], k: int, symmetric: Bool[Tensor, " r"], per_relation: int | None = None
) -> Triples:
    """Return the ``k`` most probable of all chunks, best first; of each relation at most so many.

    Of two that say the same, a link of a symmetric relation and its reverse, the more probable one is kept.
    """
    best, sure = torch.zeros(0, 3, dtype=torch.long), torch.zeros(0)
    for chunk in chunks:
        sure, order = torch.cat([sure, chunk.chances]).sort(descending=True, stable=True)
        best = torch.cat([best, chunk.triples])[order]
        fresh = _said_first(best, symmetric)
        best, sure = best[fresh], sure[fresh]
        if per_relation is not None:
            few = _places(best[:, 1]) < per_relation
            best, sure = best[few], sure[few]
        best, sure = best[:k], sure[:k]
    return best


def _said_first(triples: Triples, symmetric: Bool[Tensor, " r"]) -> Bool[Tensor, " m"]:
    """Say which triples, in their order, are the first to say what they say."""
    heads, relations, tails = triples.unbind(1)
    turned = symmetric[relations] & (heads > tails)
    _, same = torch.where(turned[:, None], triples.flip(1), triples).unique(dim=0, return_inverse=True)
    order = torch.arange(len(same))
    return torch.full_like(order, len(order)).scatter_reduce(0, same, order, "amin")[same] == order


def _places(relations: Ids) -> Ids:
    """Count, for each, how often it stands before."""
    order = relations.argsort(stable=True)
    counts = relations[order].unique_consecutive(return_counts=True)[1]
    starts = (counts.cumsum(0) - counts).repeat_interleave(counts)
    return torch.empty_like(order).index_put_((order,), torch.arange(len(order)) - starts)


def links_in_chunks(
    scorer: Scorer,
    dataset: Dataset,
    calibration: Calibration,
    relations: Iterable[int],
    k: int,
    types: TypeConstraints,
    constrained: bool = True,
    least: float = 0.0,
    only: Ids | None = None,
    share: float = 1.0,
) -> Iterator[Chunk]:
    """Score chunks of heads against all entities; yield the ``k`` best new triples of each, or pairs of them.

    If constrained, only heads and tails that the relation can hold; rivals stay all entities.
    Those that are less probable than ``least`` are left out, and with ``only`` all other heads. Of the heads
    of each relation a ``share`` is asked, evenly spaced.
    """
    device, count = scorer.device, scorer.n_entities
    known, irreflexive = dataset.known.to(device), dataset.irreflexive.to(device)
    for relation in relations:
        full = answered(dataset, relation, device)[:, None]
        inverse = relation + len(dataset.relations)
        taken = answered(dataset, inverse, device)[None]
        asking = torch.arange(count, device=device) if only is None else only.to(device)
        fitting = types.allowed(inverse).to(device)
        if constrained:
            taken = taken | ~types.allowed(relation).to(device)
            asking = asking[fitting[asking]]
        some = ceil(share * len(asking))
        asking = asking[torch.arange(some, device=device) * len(asking) // max(1, some)]
        for heads in asking.split(questions_at_once(count, device)):
            asked = torch.full_like(heads, relation)
            scores = scorer.scores(heads, asked)
            old = marked(known, heads, asked, scores) | loops(irreflexive, heads, asked, scores)
            classes = degree_classes(known.counts(heads, asked), fitting[heads])
            chances = calibration.link_probability(log_odds(scores, old), asked, classes).nan_to_num(-1)
            chances[old | full[heads] | taken] = -1
            yield _chunk(chances, heads, relation, 2 * k if dataset.symmetric[relation] else k, least)


def _chunk(chances: Scores, heads: Ids, relation: int, k: int, least: float) -> Chunk:
    """Keep the best of what is not closed, which has a probability below 0."""
    top = chances.flatten().topk(min(k, chances.numel()))
    places = top.indices[top.values >= least]
    rows, tails = places // chances.shape[1], places % chances.shape[1]
    triples = torch.stack([heads[rows], torch.full_like(rows, relation), tails], 1)
    return Chunk(len(heads), triples.cpu(), chances[rows, tails].cpu())


def answered(dataset: Dataset, relation: int, device: torch.device) -> Bool[Tensor, " e"]:
    """Say of which entities a relation asks no more: it never has two answers, and these have one."""
    heads = torch.arange(len(dataset.entities))
    if not dataset.functional[relation]:
        return torch.zeros_like(heads, dtype=torch.bool, device=device)
    return (dataset.known.counts(heads, torch.full_like(heads, relation)) > 0).to(device)
