"""The ranking against a brute-force loop, on any scores: ties, NaN, infinities, repeated facts."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from modulekge.data.filter_index import FilterIndex
from modulekge.evaluation.evaluate import rank, rank_in_batches
from modulekge.evaluation.ranks import TIES, Ranks
from modulekge.models import scorer
from modulekge.models.embedding import Embedding, EmbeddingScorer
from modulekge.models.spec import MODELS

VALUES = st.sampled_from([0.0, 1.0, 1.0, 2.0, -1.0, math.inf, -math.inf, math.nan])


@st.composite
def problems(draw):
    b, e = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    scores = [[draw(VALUES) for _ in range(e)] for _ in range(b)]
    answers = [draw(st.integers(0, e - 1)) for _ in range(b)]
    known = [draw(st.sets(st.integers(0, e - 1))) for _ in range(b)]
    return scores, answers, known


def by_hand(scores, answer, known, ties):
    """1 + the rivals that stand before the answer; what cannot be compared stands before it."""
    own = scores[answer]
    rivals = [s for i, s in enumerate(scores) if i != answer and i not in known]
    above = sum(not s <= own for s in rivals)
    tied = sum(s == own for s in rivals)
    return 1 + above + {"bottom": tied, "top": 0, "mean": tied / 2}[ties]


@given(problems())
def test_ranks_are_those_of_a_loop(problem):
    scores, answers, known = problem
    pairs = [(row, tail) for row, tails in enumerate(known) for tail in tails]
    rows, tails = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).unbind(1)
    ranks = Ranks.of(torch.tensor(scores), torch.tensor(answers), (rows, tails))
    for ties in TIES:
        expected = [by_hand(s, a, k, ties) for s, a, k in zip(scores, answers, known, strict=True)]
        assert ranks.rank(ties).tolist() == expected


def none():
    return torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)


def test_a_constant_scorer_gets_the_worst_rank_at_the_bottom_and_the_best_at_the_top():
    ranks = Ranks.of(torch.zeros(1, 100), torch.tensor([7]), none())
    assert [ranks.rank(ties).item() for ties in TIES] == [100, 1, 50.5]


def test_nan_never_ranks_first_under_any_rule():
    scores = torch.zeros(2, 100)
    scores[0, 7] = torch.nan
    scores[1] = torch.nan
    for ties in TIES:
        assert Ranks.of(scores, torch.tensor([7, 7]), none()).rank(ties).tolist() == [100, 100]


def model(n=30, relations=4):
    made = Embedding(MODELS["ModulE-HH"], n, relations, 3)
    return made.draw(torch.Generator().manual_seed(0), 1.0, 1.0)


def questions(m=50):
    return torch.stack([torch.randint(30, (m,)), torch.randint(4, (m,)), torch.randint(30, (m,))], 1)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_batches_of_any_size_give_the_same_ranks(size):
    made, asked = model().scorer(), questions()
    known = FilterIndex.of(asked, 4)
    assert torch.equal(rank(made, asked, known, size).not_below, rank(made, asked, known).not_below)


class Tight(EmbeddingScorer):
    """A scorer with room for six questions at once."""

    def scores(self, heads, relations):
        if len(heads) > 6:
            raise RuntimeError("not enough memory: you tried to allocate")
        return super().scores(heads, relations)


def test_where_memory_is_short_the_batches_get_smaller():
    asked = questions()
    known = FilterIndex.of(asked, 4)
    parts = list(rank_in_batches(Tight(model()), asked, known, 50))
    assert torch.equal(Ranks.join(parts).not_below, rank(model().scorer(), asked, known).not_below)
    assert [len(part.above) for part in parts] == [6] * 8 + [2]


def test_the_batch_follows_free_memory_and_is_never_empty(monkeypatch):
    cpu = torch.device("cpu")
    monkeypatch.setattr(scorer, "free_memory", lambda device: 64 * 10**6)
    assert scorer.batch_size(1000, cpu) == 10**6 // 1000
    assert scorer.batch_size(10**9, cpu) == 1
