"""Why a triple scores as it does: what of the training facts speaks for it."""

from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from modulekge.data.dataset import Dataset
from modulekge.errors import QuestionError
from modulekge.explanations.path_explanation import explain_by_paths
from modulekge.explanations.paths import Evidence, Pattern, Walk, Walks, sample
from modulekge.explanations.standing import standings
from modulekge.explanations.values import (
    Explanation,
    Neighbour,
    PathExplanation,
    Route,
    Support,
    fact_of,
    facts_of,
)
from modulekge.models.embedding import Embedding
from modulekge.models.paths import Paths
from modulekge.run.run import Run, load
from modulekge.shapes import Entities, Triples

_MOST_FACTS = 1000  # of an entity, looked at as supports
_MOST_PATTERNS = 60  # of paths, counted in the graph


def explain(
    run: Run | str | Path, head: str, relation: str, tail: str, k: int = 5
) -> Explanation | PathExplanation:
    """Return what speaks for a triple, at most ``k`` of each kind; of a model of paths, what it followed.

    >>> why = explain("runs/demo", "France", "borders", "Spain")  # doctest: +SKIP
    >>> why.as_tail.rank, why.supports[0].fact.labels  # doctest: +SKIP
    (1, ('Spain', 'borders', 'France'))
    """
    run = run if isinstance(run, Run) else load(run)
    entities, relations = run.dataset.entities, run.dataset.relations
    return explain_ids(run, (entities.find(head), relations.find(relation), entities.find(tail)), k)


def explain_ids(run: Run, triple: tuple[int, int, int], k: int = 5) -> Explanation | PathExplanation:
    """Return what speaks for a triple by ids; of a mixture, to the member that counts most."""
    if k < 1:
        raise QuestionError(f"k = {k}: ask for at least one of each kind")
    run = run.member(triple[1])
    if isinstance(run.model, Paths):
        return explain_by_paths(run.model, run.dataset, triple, k)
    return _explain_by_vectors(run, triple, k)


def _explain_by_vectors(run: Run, triple: tuple[int, int, int], k: int) -> Explanation:
    dataset, model, walks = run.dataset, run.embedding, Walks(run.dataset)
    h, _, t = triple
    there, back = standings(run.scorer, dataset, triple)
    facts, around = facts_around(dataset, triple)
    influence = influences(model, facts, triple, len(dataset.relations))
    with torch.no_grad():
        table = model.entities()
    return Explanation(
        fact_of(dataset, triple),
        dataset.split_of(triple),
        run.name,
        there,
        back,
        _supports(dataset, facts, influence, k),
        len(facts),
        around,
        _routes(walks, triple, k),
        alike(run, table, h, k),
        alike(run, table, t, k),
    )


def facts_around(dataset: Dataset, triple: tuple[int, int, int]) -> tuple[Triples, int]:
    """Return the training facts that touch head or tail, of each entity at most 1000, and how many there are.

    The triple itself is left out.
    """
    train = dataset.train[(dataset.train != torch.tensor(triple)).any(1)]
    touching = [train[(train[:, [0, 2]] == end).any(1)] for end in (triple[0], triple[2])]
    facts = torch.cat([sample(side, _MOST_FACTS) for side in touching]).unique(dim=0)
    return facts, len(torch.cat(touching).unique(dim=0))


def influences(
    model: Embedding, facts: Triples, triple: tuple[int, int, int], n_relations: int
) -> Float[Tensor, " facts"]:
    r"""$\langle \nabla f(fact), \nabla f(triple) \rangle$ by the numbers of the triple's head and tail.

    Each fact is scored with rows of its own for its two ends, so that one backward pass gives the gradients
    of every fact apart.
    """
    gradients = _gradients(model, torch.cat([torch.tensor([triple]), facts]), n_relations)
    own, others = gradients[0], gradients[1:]
    total = torch.zeros(len(facts))
    for i, end in enumerate((triple[0], triple[2])):
        for j, column in enumerate((0, 2)):
            same = facts[:, column] == end
            total[same] += others[same, j] @ own[i]
    return total


def _gradients(model: Embedding, triples: Triples, n_relations: int) -> Float[Tensor, "m 2 numbers"]:
    """Return the gradient of each triple's score, both directions added, by the numbers of its two ends."""
    m = len(triples)
    ends, relations = triples[:, [0, 2]].T.flatten(), triples[:, 1]
    part = model.part(2 * m)
    part.entity_scalar = nn.Parameter(model.entity_scalar.detach()[ends])
    part.entity_vector = nn.Parameter(model.entity_vector.detach()[ends])
    part.score_weights = model.score_weights
    heads, tails = torch.arange(m), torch.arange(m, 2 * m)
    scores = [
        part.scores_each(part.queries(a, asked), b[:, None]).sum()
        for a, asked, b in ((heads, relations, tails), (tails, relations + n_relations, heads))
    ]
    tables = [table for table in (part.entity_scalar, part.entity_vector) if table.numel()]
    gradients = torch.autograd.grad(scores[0] + scores[1], tables)
    return torch.cat([gradient.flatten(1) for gradient in gradients], 1).view(2, m, -1).transpose(0, 1)


def _supports(
    dataset: Dataset, facts: Triples, influence: Float[Tensor, " facts"], k: int
) -> tuple[Support, ...]:
    """Return the facts that raise the score most."""
    total = float(influence.clamp(min=0).sum())
    best = influence.topk(min(k, len(facts)))
    return tuple(
        Support(fact_of(dataset, facts[i].tolist()), value, value / total)
        for i, value in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        if value > 0
    )


def _routes(walks: Walks, triple: tuple[int, int, int], k: int) -> tuple[Route, ...]:
    """Return a path of each of the most reliable patterns between head and tail."""
    h, r, t = triple
    found = walks.paths(h, r, t)
    # Short patterns first, then those with many paths, before the graph is asked about them
    likely = sorted(found, key=lambda pattern: (len(pattern), -len(found[pattern])))[:_MOST_PATTERNS]
    counted = [(walks.evidence(pattern, r, without=(h, t)), pattern) for pattern in likely]
    counted = [(evidence, pattern) for evidence, pattern in counted if evidence.share > 0]
    counted.sort(key=lambda item: (-item[0].cautious, len(item[1])))
    best: dict[Pattern, Route] = {}  # whichever way its facts point: a symmetric relation points both ways
    for evidence, pattern in counted:
        plain = tuple(step % len(walks.dataset.relations) for step in pattern)
        best.setdefault(plain, _route(walks.dataset, found[pattern], evidence))
    return tuple(best.values())[:k]


def _route(dataset: Dataset, walks: list[Walk], evidence: Evidence) -> Route:
    return Route(*facts_of(dataset, walks[0]), evidence, len(walks))


def alike(run: Run, table: Entities, entity: int, k: int) -> tuple[Neighbour, ...]:
    """Return the entities most like one, itself left out."""
    with torch.no_grad():
        likeness = run.embedding.likeness(torch.tensor([entity]), table)[0]
    likeness[entity] = -torch.inf
    best = likeness.topk(min(k, len(table) - 1))
    names = run.dataset.entities
    return tuple(
        Neighbour(names.names[i], names.label(i), value)
        for i, value in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    )
