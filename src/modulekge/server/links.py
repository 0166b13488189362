"""Triples with all that is said of them: score, probabilities from both ends, ranks, labels."""

from modulekge.answers.predictor import Predictor
from modulekge.server.views import LinkView
from modulekge.shapes import Triples


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
