r"""The score of every candidate, and what the candidates say when they are asked back.

$f_r(h, e) + \lambda f_{r^{-1}}(e, h) - \nu \max_c f_{r^{-1}}(e, c) + \mu \log(1 + n_r(e))$: how well the head
answers the candidate's own question, beside the entity that answers it best, and how often the candidate
answers $r$ in train. All three weights are 0 unless a run has others, and then nobody is asked.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from modulekge.machine import free_memory
from modulekge.models.embedding import Model
from modulekge.shapes import Entities, Ids, Queries, Scores

_BYTES_PER_SCORE = 16  # a score, the comparisons made of it, and room to spare
_MOST_SCORES = {"cpu": 1 << 23, "cuda": 1 << 28}  # larger batches are no faster
_NUMBERS = 1 << 24  # of candidates' queries at once
_KEPT = 1 << 26  # of them from one batch to the next
_MOST_OFFSETS = 1 << 28  # numbers that are kept of entities and relations


def batch_size(n_entities: int, device: torch.device) -> int:
    """Return how many questions to ask at once: a quarter of the free memory at most."""
    most = _MOST_SCORES.get(device.type, 1 << 23)
    return max(1, min(most, free_memory(device) // 4 // _BYTES_PER_SCORE) // max(1, n_entities))


def asking_order(model: Model, relations: Ids) -> Ids:
    """Return the order in which to ask many questions: by relation where candidates are asked back.

    Each relation of a batch asks all of them once.
    """
    if not model.back:
        return torch.arange(len(relations), device=relations.device)
    return relations.argsort(stable=True)


def by_relation(relations: Ids) -> Iterator[tuple[int, Int[Tensor, " _rows"]]]:
    """Yield each relation of some questions, and which of them ask for it."""
    for relation in relations.unique().tolist():
        yield relation, (relations == relation).nonzero()[:, 0]


@torch.no_grad()
def entity_scores(model: Model, heads: Ids, relations: Ids, table: Entities) -> Scores:
    """The score of each entity of the table as the answer to (head, relation, ?)."""
    scores = model.scores(model.queries(heads, relations), table)
    if not model.back:
        return scores
    for relation, rows in by_relation(relations):
        if model.back.adds:
            scores[rows] += offset(model, relation)
        if model.back.weights.back:
            for ids, said in said_back(model, heads[rows], relation, table):
                scores[rows, ids] += model.back.weights.back * said
    return scores


@torch.no_grad()
def entity_scores_each(
    model: Model, heads: Ids, relations: Ids, rows: Int[Tensor, "b k"]
) -> Float[Tensor, "b k"]:
    """The score of the entities of its own row as answers to each (head, relation, ?)."""
    scores = model.scores_each(model.queries(heads, relations), rows)
    if not model.back:
        return scores
    if model.back.weights.back:
        inverse, theirs = (x.repeat_interleave(rows.shape[1]) for x in (model.inverse(relations), heads))
        said = model.scores_each(model.queries(rows.flatten(), inverse), theirs[:, None])
        scores = scores + model.back.weights.back * said.view_as(rows)
    if model.back.adds:
        pairs = zip(relations.tolist(), rows, strict=True)
        scores = scores + torch.stack([offset(model, relation)[row] for relation, row in pairs])
    return scores


def said_back(
    model: Model, heads: Ids, relation: int, table: Entities
) -> Iterator[tuple[slice, Float[Tensor, "b _some"]]]:
    r"""Yield $f_{r^{-1}}(e, h)$ of each head for the entities $e$, some at a time.

    Queries of all of them are kept for the relation that was asked for last, where they are not too many.
    """
    parts, last = _questions(model, relation, _NUMBERS // table[0].numel()), model.back.last
    if table.numel() <= _KEPT:
        whole = last.get(relation)
        if whole is None:
            whole = torch.cat([queries for _, queries in parts])
            last.clear()
            last[relation] = whole
        parts = iter([(slice(None), whole.to(table.device))])
    for ids, queries in parts:
        yield ids, model.scores(queries, table[heads], heads).T


def offset(model: Model, relation: int) -> Float[Tensor, " e"]:
    r"""$\mu \log(1 + n_r(e)) - \nu \max_c f_{r^{-1}}(e, c)$ of every entity: reckoned once, and kept."""
    weights, known, device = model.back.weights, model.back.offsets, model.entity_scalar.device
    if relation not in known:
        found = torch.zeros(model.n_entities, dtype=model.entity_scalar.dtype, device=device)
        if weights.rivals:
            found -= weights.rivals * best_back(model, relation)
        if weights.counts:
            found += weights.counts * counted(model, relation)
        while known and (len(known) + 1) * model.n_entities > _MOST_OFFSETS:
            known.pop(next(iter(known)), None)
        known[relation] = found
        return found
    return known[relation].to(device)


@torch.no_grad()
def best_back(model: Model, relation: int) -> Float[Tensor, " e"]:
    r"""$\max_c f_{r^{-1}}(e, c)$ of every entity $e$."""
    table = model.entities()
    size = min(batch_size(len(table), table.device), _NUMBERS // table[0].numel())
    return torch.cat(
        [model.scores(queries, table).amax(1) for _, queries in _questions(model, relation, size)]
    )


def counted(model: Model, relation: int) -> Float[Tensor, " e"]:
    r"""$\log(1 + n_r(e))$ of every entity $e$, which answers $r$ so often in train."""
    train = torch.zeros(0, 3, dtype=torch.long) if model.back.train is None else model.back.train
    tails = train[train[:, 1] == relation, 2]
    counts = torch.bincount(tails, minlength=model.n_entities).to(model.entity_scalar)
    return counts.log1p()


def _questions(model: Model, relation: int, size: int) -> Iterator[tuple[slice, Queries]]:
    """Yield the entities, some at a time, and their queries with the inverse of a relation."""
    inverse = model.inverse(torch.tensor([relation], device=model.entity_scalar.device))
    for start in range(0, model.n_entities, max(1, size)):
        some = slice(start, min(start + max(1, size), model.n_entities))
        yield some, model.queries(some, inverse.expand(some.stop - some.start))
