"""Triples with all that is said of them, the most probable new ones, and held-out ones that were found."""

from collections.abc import Sequence

import torch

from modulekge.answers.links import best_links, links_in_chunks
from modulekge.answers.predictor import Predictor
from modulekge.data.type_constraints import Types
from modulekge.errors import QuestionError
from modulekge.server.views import LinkView
from modulekge.shapes import Triples

MOST_LINKS = 200  # that are kept of a relation
_MOST_SCORES = 1 << 27  # worked out for them: half a minute where they are messages along paths, on one core
_TRIED = 256  # held-out facts that are asked for
_TRIED_ALONG_PATHS = 32  # which take longer


def link_views(asked: Predictor, triples: Triples) -> list[LinkView]:
    """Return triples by ids as they are shown, in their order."""
    dataset, kind = asked.run.dataset, asked.entities
    entities, relations = dataset.entities, dataset.relations
    views = []
    for part in triples.split(kind.at_once):
        heads, asks, tails = part.to(asked.run.scorer.device).unbind(1)
        back = asks + len(relations)
        splits = kind.splits(tails, back, heads[:, None])
        odds = kind.rate(tails, back).odds.gather(1, heads[:, None])
        chances = kind.chances(odds, back, splits)
        for link, (chance,), (h, r, t) in zip(asked.score_ids(part), chances, part.tolist(), strict=True):
            labels = entities.label(h), relations.label(r), entities.label(t)
            views.append(LinkView(**vars(link), head_probability=chance, labels=labels))
    return views


def new_links(asked: Predictor, relations: Sequence[int], types: Types) -> list[LinkView]:
    """Return the most probable new triples of some relations; what takes too long is refused."""
    scorer, dataset, calibration = asked.run.scorer, asked.run.dataset, asked.calibrated()
    questions = sum(heads for heads, _ in asked.sides_of_ids(relations, types))
    if questions * scorer.cost > _MOST_SCORES:
        most = _MOST_SCORES // scorer.cost
        raise QuestionError(
            f"{questions:,} questions would have to be asked, and {most:,} may be; name fewer relations, or "
            "let 'modulekge links' ask them"
        )
    constrained = types == "constrained"
    chunks = links_in_chunks(
        scorer, dataset, calibration, relations, MOST_LINKS, asked.type_constraints, constrained
    )
    return link_views(asked, best_links(chunks, MOST_LINKS, dataset.symmetric))


def found_links(asked: Predictor) -> list[LinkView]:
    """Return held-out facts whose tail the run gives first: the surest of each relation, then the next."""
    dataset = asked.run.dataset
    facts = next((part for part in (dataset.test, dataset.valid) if len(part)), dataset.test)
    most = _TRIED_ALONG_PATHS if asked.run.model.spec.along_paths else _TRIED
    tried = facts[torch.arange(min(most, len(facts))) * len(facts) // max(1, min(most, len(facts)))]
    right = [link for link in link_views(asked, tried) if link.tail_rank == 1]
    right.sort(key=lambda link: -(link.probability or 0.0))
    turns: dict[str, int] = {}
    place = {}
    for link in right:
        place[link] = turns[link.relation] = turns.get(link.relation, 0) + 1
    return sorted(right, key=lambda link: place[link])
