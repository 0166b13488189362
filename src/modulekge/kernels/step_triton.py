"""The passes of a step over scores, and over tables that have their gradients, in Triton."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 2048


def softmax_(scores: Tensor, target: Any, first: int, sums: Tensor | None) -> Tensor:
    r"""$f \leftarrow w (\exp(f - \rho) - y)$ in place; return $w (\rho - \sum_e y_e f_e)$.

    $\rho = \log\sum\exp f$. With many warps to a row, few rows are at work at a time, and what is read again
    is still in the cache. Scores may be bfloat16 where each question has one answer: the gradient by a second
    would be the difference of two rounded numbers.
    """
    losses = torch.empty_like(target.share)
    _softmax[(len(scores),)](
        scores, losses if sums is None else sums, losses,
        target.columns.contiguous(), target.starts, target.amount, target.share,
        first, scores.shape[1], scores.stride(0), target.everywhere,
        sums is not None, target.everywhere > 0, _BLOCK, num_warps=32,
    )  # fmt: skip
    return losses


def adagrad_(table: Tensor, grad: Tensor, total: Tensor, rate: Tensor, eps: float) -> None:
    r"""$G \mathrel{+}= g^2$, $x \mathrel{-}= \eta\, g / (\sqrt G + \epsilon)$, of contiguous tensors."""
    count = table.numel()
    _adagrad[(triton.cdiv(count, _BLOCK),)](table, grad, total, rate, count, eps, _BLOCK, num_warps=8)


@triton.jit
def _softmax(
    scores, sums, losses, columns, starts, amount, share, first, n, stride, everywhere,
    GIVEN: tl.constexpr, SMOOTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    scores += row * stride
    block = tl.arange(0, BLOCK)
    each = tl.load(amount + row)
    low, high = tl.load(starts + row), tl.load(starts + row + 1)
    loss = 0.0
    answer = 0.0  # the score of the first
    for j in range(low, high):
        column = tl.load(columns + j) - first
        x = tl.load(scores + column, (column >= 0) & (column < n), 0.0).to(tl.float32)
        answer = tl.where(j == low, x, answer)
        loss -= each * x
    if GIVEN:
        log = tl.load(sums + row)
    else:
        top = tl.full((BLOCK,), float("-inf"), tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, n, BLOCK):
            x = tl.load(scores + start + block, start + block < n, float("-inf")).to(tl.float32)
            peak = tl.maximum(top, x)
            finite = tl.where(peak == float("-inf"), 0.0, peak)  # -inf - -inf is not a number
            total = total * tl.exp(top - finite) + tl.exp(x - finite)
            top = peak
        peak = tl.max(top, 0)
        log = peak + tl.log(tl.sum(total * tl.exp(top - peak), 0))
        loss += log
    weight = tl.load(share + row)
    linear = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        x = tl.load(scores + start + block, start + block < n, 0.0).to(tl.float32)
        if SMOOTH:
            linear += x
        tl.store(scores + start + block, weight * (tl.exp(x - log) - everywhere), start + block < n)
    if SMOOTH:
        loss -= everywhere * tl.sum(linear, 0)
    tl.store(losses + row, weight * loss)
    tl.debug_barrier()  # every thread has written its gradients before those of the answers are changed
    for j in range(low, high):
        column = tl.load(columns + j) - first
        inside = (column >= 0) & (column < n)
        gradient = tl.load(scores + column, inside, 0.0).to(tl.float32)
        gradient = tl.where(j == low, weight * (tl.exp(answer - log) - everywhere), gradient)
        tl.debug_barrier()
        tl.store(scores + column, gradient - weight * each, inside)


@triton.jit
def _adagrad(table, grad, total, rate, count, eps, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    g = tl.load(grad + place, inside, 0.0)
    square = tl.load(total + place, inside, 0.0) + g * g
    x = tl.load(table + place, inside, 0.0)
    tl.store(total + place, square, inside)
    tl.store(table + place, x - tl.load(rate) * g / (tl.sqrt(square) + eps), inside)
