"""A mixture adds up the weighted scores of its members, of all entities and of some."""

import torch

from modulekge.models.embedding import Embedding
from modulekge.models.mixture import Mix, Mixture
from modulekge.models.spec import MODELS

ENTITIES, RELATIONS = 7, 3


def members():
    """Two embeddings of the same entities."""
    return [
        Embedding(MODELS[name], ENTITIES, 2 * RELATIONS, 4)
        .draw(torch.Generator().manual_seed(seed), 1.0, 1.0)
        .scorer()
        for seed, name in enumerate(("ModulE-RC", "DistMult"))
    ]


def test_scores_are_weighted_sums():
    first, second = members()
    shares = torch.rand(2 * RELATIONS, 2, generator=torch.Generator().manual_seed(2))
    mixture = Mixture([first, second], Mix(shares, torch.tensor([2.0, 0.5])))
    heads, relations = torch.arange(6), torch.tensor([0, 1, 2, 3, 4, 5])
    found = mixture.scores(heads, relations)
    for i, (h, r) in enumerate(zip(heads, relations, strict=True)):
        one, other = (m.scores(h[None], r[None])[0] for m in (first, second))
        expected = shares[r, 0] / 2 * one + shares[r, 1] / 0.5 * other
        torch.testing.assert_close(found[i], expected)
    candidates = torch.tensor([[6, 0, 3]] * 6)
    torch.testing.assert_close(mixture.scores_of(heads, relations, candidates), found.gather(1, candidates))


def test_a_member_without_weight_is_not_asked():
    first, second = members()
    second.scores = None  # would fail
    shares = torch.tensor([[1.0, 0.0]] * 2 * RELATIONS)
    heads, relations = torch.arange(3), torch.arange(3)
    found = Mixture([first, second], Mix(shares, torch.ones(2))).scores(heads, relations)
    torch.testing.assert_close(found, first.scores(heads, relations))


def test_new_relations_take_mean_shares():
    mix = Mix(torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.5, 0.5]]), torch.ones(2))
    larger = mix.enlarged(6)
    mean = [0.5, 0.5]
    assert larger.shares.tolist() == [[1.0, 0.0], [0.5, 0.5], mean, [0.0, 1.0], [0.5, 0.5], mean]
