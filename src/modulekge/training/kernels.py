"""One pass over the scores and one over a table, in Triton."""

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 4096


def softmax_(scores: Tensor, sums: Tensor | None, share: Tensor, smooth: float) -> Tensor:
    r"""$f \leftarrow w (\exp(f - \log\sum\exp f) - \epsilon / |E|)$ in place; return the $\log\sum\exp f$."""
    given = sums is not None
    sums = torch.empty_like(share) if sums is None else sums
    _softmax[(len(scores),)](
        scores, sums, share, scores.shape[1], scores.stride(0), smooth, given, _BLOCK, num_warps=16
    )
    return sums


def adagrad_(table: Tensor, grad: Tensor, total: Tensor, rate: Tensor, eps: float) -> None:
    r"""$G \mathrel{+}= g^2$, $x \mathrel{-}= \eta\, g / (\sqrt G + \epsilon)$, of contiguous tensors."""
    count = table.numel()
    _adagrad[(triton.cdiv(count, _BLOCK),)](table, grad, total, rate, count, eps, _BLOCK, num_warps=8)


@triton.jit
def _softmax(scores, sums, share, n, stride, smooth, GIVEN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    scores += row * stride
    block = tl.arange(0, BLOCK)
    if GIVEN:
        log = tl.load(sums + row)
    else:
        top = tl.full((BLOCK,), float("-inf"), tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, n, BLOCK):
            x = tl.load(scores + start + block, start + block < n, float("-inf"))
            peak = tl.maximum(top, x)
            finite = tl.where(peak == float("-inf"), 0.0, peak)  # -inf - -inf is not a number
            total = total * tl.exp(top - finite) + tl.exp(x - finite)
            top = peak
        peak = tl.max(top, 0)
        total = tl.sum(total * tl.exp(top - peak), 0)
        log = peak + tl.log(total)
        tl.store(sums + row, log)
    weight = tl.load(share + row)
    for start in range(0, n, BLOCK):
        x = tl.load(scores + start + block, start + block < n, 0.0)
        tl.store(scores + start + block, weight * (tl.exp(x - log) - smooth), start + block < n)


@triton.jit
def _adagrad(table, grad, total, rate, count, eps, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    g = tl.load(grad + place, inside, 0.0)
    square = tl.load(total + place, inside, 0.0) + g * g
    x = tl.load(table + place, inside, 0.0)
    tl.store(total + place, square, inside)
    tl.store(table + place, x - tl.load(rate) * g / (tl.sqrt(square) + eps), inside)
