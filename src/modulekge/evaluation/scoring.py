r"""Answers: the score of every candidate, and what the candidates say when they are asked back.

$f_r(h, e) + \lambda\, (f_{r^{-1}}(e, h) - \max_c f_{r^{-1}}(e, c))$: a candidate counts for less, the better
another entity than the head answers its own question. With $\lambda = 0$, the default, it is not asked.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from modulekge.errors import ConfigError
from modulekge.machine import free_memory
from modulekge.models.model import Model
from modulekge.shapes import Entities, Ids, Queries, Scores

_BYTES_PER_SCORE = 16  # a score, the comparisons made of it, and room to spare
_MOST_SCORES = {"cpu": 1 << 23, "cuda": 1 << 28}  # larger batches are no faster
_NUMBERS = 1 << 24  # of candidates' queries at once


def batch_size(n_entities: int, device: torch.device) -> int:
    """Return how many questions to ask at once: a quarter of the free memory at most."""
    most = _MOST_SCORES.get(device.type, 1 << 23)
    return max(1, min(most, free_memory(device) // 4 // _BYTES_PER_SCORE) // max(1, n_entities))


def asking_order(model: Model, relations: Ids) -> Ids:
    """Return the order in which to ask many questions: by relation where candidates are asked back.

    Each relation of a batch asks all of them once.
    """
    if model.back.weight == 0:
        return torch.arange(len(relations), device=relations.device)
    return relations.argsort(stable=True)


@torch.no_grad()
def entity_scores(model: Model, heads: Ids, relations: Ids, table: Entities) -> Scores:
    """The score of each entity of the table as the answer to (head, relation, ?)."""
    scores = model.scores(model.queries(heads, relations), table)
    if model.back.weight == 0:
        return scores
    if model.workers.size > 1:
        raise ConfigError(
            f"model.back = {model.back.weight:g}: candidates are asked back by one process; "
            "evaluate and ask without torchrun"
        )
    for relation in relations.unique().tolist():
        rows = (relations == relation).nonzero()[:, 0]
        theirs, best = heads[rows], _best(model, relation)
        for ids, queries in _asking_back(model, relation, _NUMBERS // table[0].numel()):
            said = model.scores(queries, table[theirs], theirs).T
            scores[rows, ids] += model.back.weight * (said - best[ids])
    return scores


@torch.no_grad()
def entity_scores_each(
    model: Model, heads: Ids, relations: Ids, rows: Int[Tensor, "b k"]
) -> Float[Tensor, "b k"]:
    """The score of the entities of its own row as answers to each (head, relation, ?)."""
    scores = model.scores_each(model.queries(heads, relations), rows)
    if model.back.weight == 0:
        return scores
    backward, theirs = (x.repeat_interleave(rows.shape[1]) for x in (model.inverse(relations), heads))
    said = model.scores_each(model.queries(rows.flatten(), backward), theirs[:, None]).view_as(rows)
    best = [_best(model, relation)[row] for relation, row in zip(relations.tolist(), rows, strict=True)]
    return scores + model.back.weight * (said - torch.stack(best))


def _best(model: Model, relation: int) -> Float[Tensor, " e"]:
    r"""$\max_c f_{r^{-1}}(e, c)$ of every entity $e$: reckoned when first asked for, and kept."""
    known, device = model.back.best, model.entity_scalar.device
    if relation not in known:
        table = model.entities()
        size = min(batch_size(len(table), device), _NUMBERS // table[0].numel())
        found = [model.scores(queries, table).amax(1) for _, queries in _asking_back(model, relation, size)]
        known[relation] = torch.cat(found)
    return known[relation].to(device)


def _asking_back(model: Model, relation: int, size: int) -> Iterator[tuple[slice, Queries]]:
    """Yield the entities, some at a time, and their queries with the inverse of a relation."""
    inverse = model.inverse(torch.tensor([relation], device=model.entity_scalar.device))
    for start in range(0, model.n_entities, max(1, size)):
        some = slice(start, min(start + max(1, size), model.n_entities))
        yield some, model.queries(some, inverse.expand(some.stop - some.start))
