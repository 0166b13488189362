"""Why a triple scores as it does: what of the training facts speaks for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from modulekge.data.benchmarks import Split
from modulekge.data.dataset import Dataset
from modulekge.errors import QuestionError
from modulekge.evaluation.evaluate import rank
from modulekge.explanations.paths import Evidence, Pattern, Walk, Walks, sample
from modulekge.models.embedding import Embedding
from modulekge.models.scorer import Scorer
from modulekge.run.run import Run, load
from modulekge.shapes import Entities, Triples

Way = Literal["forward", "backward"]

_MOST_FACTS = 1000  # of an entity, looked at as supports
_MOST_PATTERNS = 60  # of paths, counted in the graph


@dataclass(frozen=True)
class Fact:
    """A triple by its names, and as people call it."""

    head: str
    relation: str
    tail: str
    labels: tuple[str, str, str]


@dataclass(frozen=True)
class Standing:
    """How an answer stands among all entities that are not known answers; ties count against it."""

    rank: int
    score: float


@dataclass(frozen=True)
class Support:
    r"""A training fact and its influence $\langle \nabla f(fact), \nabla f(triple) \rangle$.

    The gradients are those of the scores in both directions by the numbers of the triple's head and tail:
    how much the triple's score rises with a step that raises the fact's. ``share`` is of the influence of
    all facts that raise it.
    """

    fact: Fact
    influence: float
    share: float


@dataclass(frozen=True)
class Route:
    """A path of training facts from head to tail, each with the side it is entered from.

    ``evidence``: of other pairs that the same relations join, the share that the asked relation joins;
    ``paths`` counts the paths of this pattern between head and tail.
    """

    facts: tuple[Fact, ...]
    ways: tuple[Way, ...]
    evidence: Evidence
    paths: int


@dataclass(frozen=True)
class Neighbour:
    """An entity whose embedding is near: by cosine (1 is nearest) or by the row's distance (0 is)."""

    name: str
    label: str
    likeness: float


@dataclass(frozen=True)
class Explanation:
    """What speaks for a triple: its ranks, supporting facts, paths, and entities like its ends."""

    triple: Fact
    split: Split | None  # where the triple stands; None where it is new
    as_tail: Standing  # of the tail among answers to (head, relation, ?)
    as_head: Standing  # of the head among answers to (?, relation, tail)
    supports: tuple[Support, ...]
    candidates: int  # facts that were looked at as supports
    facts_around: int  # facts there are around head and tail
    routes: tuple[Route, ...]
    near_head: tuple[Neighbour, ...]
    near_tail: tuple[Neighbour, ...]


def explain(run: Run | str | Path, head: str, relation: str, tail: str, k: int = 5) -> Explanation:
    """Return what speaks for a triple, at most ``k`` of each kind.

    >>> why = explain("runs/demo", "France", "borders", "Spain")  # doctest: +SKIP
    >>> why.as_tail.rank, why.supports[0].fact.labels  # doctest: +SKIP
    (1, ('Spain', 'borders', 'France'))
    """
    if k < 1:
        raise QuestionError(f"k = {k}: ask for at least one of each kind")
    run = run if isinstance(run, Run) else load(run)
    dataset, model, walks = run.dataset, run.embedding, Walks(run.dataset)
    entities, relations = dataset.entities, dataset.relations
    h, r, t = entities.find(head), relations.find(relation), entities.find(tail)
    there, back = _standings(run.scorer, dataset, (h, r, t))
    facts, around = facts_around(dataset, (h, r, t))
    influence = influences(model, facts, (h, r, t), len(relations))
    with torch.no_grad():
        table = model.entities()
    return Explanation(
        _fact(dataset, (h, r, t)),
        dataset.split_of((h, r, t)),
        there,
        back,
        _supports(dataset, facts, influence, k),
        len(facts),
        around,
        _routes(walks, (h, r, t), k),
        _neighbours(run, table, h, k),
        _neighbours(run, table, t, k),
    )


def _standings(scorer: Scorer, dataset: Dataset, triple: tuple[int, int, int]) -> list[Standing]:
    """Return how the tail stands among tails, and the head among heads."""
    h, r, t = triple
    questions = torch.tensor([(h, r, t), (t, r + len(dataset.relations), h)])
    ranks = rank(scorer, questions, dataset.known).rank("bottom").tolist()
    heads, relations, tails = questions.unbind(1)
    scores = scorer.scores_of(heads, relations, tails[:, None])[:, 0].tolist()
    return [Standing(int(place), score) for place, score in zip(ranks, scores, strict=True)]


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
        Support(_fact(dataset, facts[i].tolist()), value, value / total)
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
    n = len(dataset.relations)
    facts: list[Fact] = []
    ways: list[Way] = []
    for start, relation, end in walks[0]:
        forward = relation < n
        facts.append(_fact(dataset, (start, relation, end) if forward else (end, relation - n, start)))
        ways.append("forward" if forward else "backward")
    return Route(tuple(facts), tuple(ways), evidence, len(walks))


def _neighbours(run: Run, table: Entities, entity: int, k: int) -> tuple[Neighbour, ...]:
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


def _fact(dataset: Dataset, triple: Sequence[int]) -> Fact:
    h, r, t = triple
    entities, relations = dataset.entities, dataset.relations
    names = entities.names[h], relations.names[r], entities.names[t]
    return Fact(*names, (entities.label(h), relations.label(r), entities.label(t)))
