"""All pairs = pair by pair = in chunks, for every score; and the gradients of the block distance."""

import pytest
import torch

from modulekge.algebra.scores import SCORES

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
    rows = torch.randint(9, (5, 4))
    close(whole.gather(1, rows), score.each(q, t, rows, w))
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
