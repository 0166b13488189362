"""All pairs = pair by pair = in chunks, for every score; and the slopes of the block distance."""

import pytest
import torch

from modulekge.algebra import scores
from modulekge.algebra.scores import SCORES, block_distance

close = torch.testing.assert_close
EACH = pytest.mark.parametrize("score", SCORES.values(), ids=lambda s: s.name)


def some(score, dtype=torch.float64):
    extra = 1 if score.name in ("split", "weighted") else 0
    q = torch.randn(5, 3 + extra, 6, dtype=dtype)
    return q, torch.randn(9, 3, 6, dtype=dtype), torch.tensor(score.weights, dtype=dtype)


@EACH
def test_all_pairs_is_pair_by_pair_is_in_chunks(score):
    q, t, w = some(score)
    whole = score.all_pairs(q, t, w)
    pairs = [[score.all_pairs(q[i : i + 1], t[j : j + 1], w)[0, 0] for j in range(9)] for i in range(5)]
    close(whole, torch.stack([torch.stack(row) for row in pairs]))
    close(whole, score.each(q[:, None], t, w))
    close(whole, torch.cat([score.all_pairs(q, part, w) for part in t.split(4)], 1))
    close(whole, torch.cat([score.all_pairs(part, t, w) for part in q.split(2)], 0))


@EACH
def test_float32_agrees_with_float64(score):
    q, t, w = some(score)
    close(
        score.all_pairs(q.float(), t.float(), w.float()).double(),
        score.all_pairs(q, t, w),
        rtol=1e-5,
        atol=1e-5,
    )


@EACH
def test_slopes_are_right(score):
    q, t, w = (x.requires_grad_() for x in some(score))
    assert torch.autograd.gradcheck(lambda q, t: score.all_pairs(q, t, w), (q, t))


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("tile", [1, 7, 1 << 18])
def test_block_distance_is_a_sum_of_moduli_in_tiles_of_any_size(d, tile, monkeypatch):
    monkeypatch.setattr(scores, "_TILE", tile)
    q = torch.randn(5, d, 6, dtype=torch.float64, requires_grad=True)
    t = torch.randn(9, d, 6, dtype=torch.float64, requires_grad=True)
    w = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    close(block_distance(q, t), torch.linalg.vector_norm(q[:, None] - t, dim=2).sum(-1))
    naive = (w[:, None] * torch.linalg.vector_norm(q[:, None] - t, dim=2)).sum(-1)
    ours = block_distance(q, t, w)
    close(ours, naive)
    slope = torch.randn(5, 9, dtype=torch.float64)
    for mine, theirs in zip(
        torch.autograd.grad((ours * slope).sum(), (q, t, w)),
        torch.autograd.grad((naive * slope).sum(), (q, t, w)),
        strict=True,
    ):
        close(mine, theirs)


def test_block_distance_has_a_finite_slope_where_query_and_entity_meet():
    q = torch.randn(3, 2, 4, requires_grad=True)
    block_distance(q, q.detach().clone()).sum().backward()
    assert torch.isfinite(q.grad).all()
