r"""Sums of moduli, and products of chosen pairs, on a GPU, in Triton: intermediates stay in registers.

A point is up to four reals per block, written out as ``x0 .. x3``; those past its dimension ``D`` are
never read. ``x_step`` is how far the next real of the same block lies in memory.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

_PAIRS, _BLOCKS, _ROWS = 64, 64, 16  # sides of a tile: pairs of points; blocks of them; points of a sum
_PROGRAMS = 1024  # a sum is split in parts until so many programs share the work
_WIDE = 256  # blocks at a time where a program has one point: few warps with much to load wait the least


def pairs(q: Tensor, t: Tensor, weights: Tensor) -> Tensor:
    r"""$\sum_i w_i |q_i - t_i|$ of every pair: (b, e)."""
    (b, d, n), e = q.shape, len(t)
    out = q.new_empty(b, e)
    q, t = q.permute(2, 1, 0).contiguous(), t.permute(2, 1, 0).contiguous()  # a block of all points together
    grid = triton.cdiv(e, _PAIRS), triton.cdiv(b, _PAIRS)
    _pairs[grid](q, t, weights.T.contiguous(), out, b, e, n, d, _PAIRS)
    return out


def pairs_backward(q: Tensor, t: Tensor, weights: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of :func:`pairs` by q, t and the weights."""
    q, t, weights = q.contiguous(), t.contiguous(), weights.contiguous()
    grad_q, grad_w = _pulled(q, t, torch.ones_like(weights[:1]).expand(len(t), -1), grad)
    return grad_q * weights[:, None], _pulled(t, q, weights, grad.T)[0], grad_w


def _pulled(x: Tensor, y: Tensor, weights: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    r"""$\sum_y g_{xy} w_y \frac{x - y}{|x - y|}$ and $\sum_y g_{xy} |x - y|$ for every x, block by block."""
    rows, d, n = x.shape
    tiles = triton.cdiv(rows, _ROWS) * triton.cdiv(n, _BLOCKS)
    parts = max(1, min(_PROGRAMS // tiles, triton.cdiv(len(y), 64)))
    pull, lengths = x.new_empty(parts, rows, d, n), x.new_empty(parts, rows, n)
    grid = triton.cdiv(rows, _ROWS), triton.cdiv(n, _BLOCKS), parts
    _pull[grid](
        x, y, weights, grad, pull, lengths,
        rows, len(y), n, weights.stride(0), *grad.stride(), triton.cdiv(len(y), parts), d, _ROWS, _BLOCKS,
    )  # fmt: skip
    return pull.sum(0), lengths.sum(0)


def rows(q: Tensor, t: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
    r"""$\sum_i w_i |q_i - t_i|$ of each point with those of ``t`` that its row of ``ids`` names: (b, k)."""
    q, t, ids, weights = (x.contiguous() for x in (q, t, ids, weights))
    (b, d, n), k = q.shape, ids.shape[1]
    out = q.new_empty(b, k)
    _rows[b, triton.cdiv(k, _ROWS)](q, t, ids, weights, out, k, n, d, False, _ROWS, _BLOCKS)
    return out


def products(q: Tensor, t: Tensor, ids: Tensor) -> Tensor:
    r"""$\langle q, t \rangle$ of each vector with those of ``t`` that its row of ``ids`` names: (b, k)."""
    q, t, ids = (x.contiguous() for x in (q, t, ids))
    (b, n), k = q.shape, ids.shape[1]
    out = q.new_empty(b, k)
    _rows[b, triton.cdiv(k, _ROWS)](q, t, ids, q, out, k, n, 1, True, _ROWS, _BLOCKS)
    return out


def rows_backward(
    q: Tensor, t: Tensor, ids: Tensor, weights: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of :func:`rows` by q, t and the weights."""
    return _rows_gradients(q, t, ids, weights, grad, dot=False)


def products_backward(q: Tensor, t: Tensor, ids: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of :func:`products` by q and t."""
    grad_q, grad_t, _ = _rows_gradients(q[:, None], t[:, None], ids, q[:0], grad, dot=True)
    return grad_q[:, 0], grad_t[:, 0]


def _rows_gradients(
    q: Tensor, t: Tensor, ids: Tensor, weights: Tensor, grad: Tensor, dot: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """An entity gathers what its namings send it, in their order: no atomic additions, one result."""
    q, t, ids, weights, grad = (x.contiguous() for x in (q, t, ids, weights, grad))
    (b, d, n), k = q.shape, ids.shape[1]
    grad_q, grad_t, grad_w = torch.empty_like(q), torch.empty_like(t), torch.empty_like(weights)
    _rows_pull[b, triton.cdiv(n, _BLOCKS)](
        q, t, ids, weights, grad, grad_q, grad_w, k, n, d, dot, _ROWS, _BLOCKS
    )  # fmt: skip
    named, order = ids.flatten().sort(stable=True)
    starts = torch.searchsorted(named, torch.arange(len(t) + 1, device=t.device))
    wide = min(_WIDE, max(32, triton.next_power_of_2(n)))
    _named_pull[len(t), triton.cdiv(n, wide)](
        q, t, order, starts, weights, grad, grad_t, k, n, d, dot, wide, num_warps=max(1, wide // 128)
    )  # fmt: skip
    return grad_q, grad_t, grad_w


@triton.jit
def _load(x, step, mask, D: tl.constexpr):
    x0 = tl.load(x, mask, 0.0)
    x1, x2, x3 = x0, x0, x0
    if D > 1:
        x1 = tl.load(x + step, mask, 0.0)
    if D > 2:
        x2 = tl.load(x + 2 * step, mask, 0.0)
    if D > 3:
        x3 = tl.load(x + 3 * step, mask, 0.0)
    return x0, x1, x2, x3


@triton.jit
def store(x, step, mask, x0, x1, x2, x3, D: tl.constexpr):
    """Write the first of four components, each a step after the one before."""
    tl.store(x, x0, mask)
    if D > 1:
        tl.store(x + step, x1, mask)
    if D > 2:
        tl.store(x + 2 * step, x2, mask)
    if D > 3:
        tl.store(x + 3 * step, x3, mask)


@triton.jit
def _squares(d0, d1, d2, d3, D: tl.constexpr):
    total = d0 * d0
    if D > 1:
        total += d1 * d1
    if D > 2:
        total += d2 * d2
    if D > 3:
        total += d3 * d3
    return total


@triton.jit
def _add(p0, p1, p2, p3, gradient, d0, d1, d2, d3, D: tl.constexpr):
    p0 += gradient * d0
    if D > 1:
        p1 += gradient * d1
    if D > 2:
        p2 += gradient * d2
    if D > 3:
        p3 += gradient * d3
    return p0, p1, p2, p3


@triton.jit
def _inverse(squares):
    return tl.where(squares > 0, tl.rsqrt(tl.maximum(squares, 1e-37)), 0.0)


@triton.jit
def _pairs(q, t, w, out, b, e, n, D: tl.constexpr, SIDE: tl.constexpr):
    bs = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    es = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for _ in range(n):
        q0, q1, q2, q3 = _load(q + bs[:, None], b, bs[:, None] < b, D)
        t0, t1, t2, t3 = _load(t + es[None, :], e, es[None, :] < e, D)
        weight = tl.load(w + bs[:, None], bs[:, None] < b, 0.0)
        total += weight * tl.sqrt(_squares(q0 - t0, q1 - t1, q2 - t2, q3 - t3, D))
        q += D * b
        t += D * e
        w += b
    inside = (bs[:, None] < b) & (es[None, :] < e)
    tl.store(out + bs[:, None].to(tl.int64) * e + es[None, :], total, inside)


@triton.jit
def _pull(
    x, y, w, grad, pull, lengths, rows, others, n, w_step, grad_x, grad_y, part,
    D: tl.constexpr, ROWS: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    xs = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    ns = tl.program_id(1) * BLOCKS + tl.arange(0, BLOCKS)
    slot = tl.program_id(2).to(tl.int64)
    inside = (xs[:, None] < rows) & (ns[None, :] < n)
    x0, x1, x2, x3 = _load(x + xs[:, None] * D * n + ns[None, :], n, inside, D)
    p0 = tl.zeros((ROWS, BLOCKS), tl.float32)
    p1, p2, p3, far = p0, p0, p0, p0
    for j in range(slot * part, tl.minimum(others, (slot + 1) * part)):
        y0, y1, y2, y3 = _load(y + j * D * n + ns, n, ns < n, D)
        g = tl.load(grad + xs * grad_x + j * grad_y, xs < rows, 0.0)
        weight = tl.load(w + j * w_step + ns, ns < n, 0.0)
        d0, d1, d2, d3 = x0 - y0[None, :], x1 - y1[None, :], x2 - y2[None, :], x3 - y3[None, :]
        squares = _squares(d0, d1, d2, d3, D)
        inverse = g[:, None] * _inverse(squares)
        far += squares * inverse
        gradient = inverse * weight[None, :]
        p0, p1, p2, p3 = _add(p0, p1, p2, p3, gradient, d0, d1, d2, d3, D)
    row = slot * rows + xs[:, None]
    store(pull + row * D * n + ns[None, :], n, inside, p0, p1, p2, p3, D)
    tl.store(lengths + row * n + ns[None, :], far, inside)


@triton.jit
def _rows(
    q, t, ids, w, out, k, n, D: tl.constexpr, DOT: tl.constexpr, ROWS: tl.constexpr, BLOCKS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    ks = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    named = tl.load(ids + row * k + ks, ks < k, 0)
    total = tl.zeros((ROWS, BLOCKS), tl.float32)
    for start in range(0, n, BLOCKS):
        ns = start + tl.arange(0, BLOCKS)
        q0, q1, q2, q3 = _load(q + row * D * n + ns[None, :], n, ns[None, :] < n, D)
        inside = (ks[:, None] < k) & (ns[None, :] < n)
        t0, t1, t2, t3 = _load(t + named[:, None] * D * n + ns[None, :], n, inside, D)
        if DOT:
            total += q0 * t0
        else:
            weight = tl.load(w + row * n + ns[None, :], ns[None, :] < n, 0.0)
            total += weight * tl.sqrt(_squares(q0 - t0, q1 - t1, q2 - t2, q3 - t3, D))
    tl.store(out + row * k + ks, tl.sum(total, 1), ks < k)


@triton.jit
def _rows_pull(
    q, t, ids, w, grad, grad_q, grad_w, k, n,
    D: tl.constexpr, DOT: tl.constexpr, ROWS: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    ns = tl.program_id(1) * BLOCKS + tl.arange(0, BLOCKS)
    q0, q1, q2, q3 = _load(q + row * D * n + ns[None, :], n, ns[None, :] < n, D)
    p0 = tl.zeros((ROWS, BLOCKS), tl.float32)
    p1, p2, p3, far = p0, p0, p0, p0
    for start in range(0, k, ROWS):
        ks = start + tl.arange(0, ROWS)
        named = tl.load(ids + row * k + ks, ks < k, 0)
        g = tl.load(grad + row * k + ks, ks < k, 0.0)
        inside = (ks[:, None] < k) & (ns[None, :] < n)
        t0, t1, t2, t3 = _load(t + named[:, None] * D * n + ns[None, :], n, inside, D)
        if DOT:
            p0 += g[:, None] * t0
        else:
            d0, d1, d2, d3 = q0 - t0, q1 - t1, q2 - t2, q3 - t3
            squares = _squares(d0, d1, d2, d3, D)
            inverse = g[:, None] * _inverse(squares)
            far += squares * inverse
            p0, p1, p2, p3 = _add(p0, p1, p2, p3, inverse, d0, d1, d2, d3, D)
    s0, s1, s2, s3 = tl.sum(p0, 0), tl.sum(p1, 0), tl.sum(p2, 0), tl.sum(p3, 0)
    place = grad_q + row * D * n + ns
    if DOT:
        tl.store(place, s0, ns < n)
    else:
        weight = tl.load(w + row * n + ns, ns < n, 0.0)
        store(place, n, ns < n, s0 * weight, s1 * weight, s2 * weight, s3 * weight, D)
        tl.store(grad_w + row * n + ns, tl.sum(far, 0), ns < n)


@triton.jit
def _named_pull(
    q, t, order, starts, w, grad, grad_t, k, n,
    D: tl.constexpr, DOT: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    entity = tl.program_id(0).to(tl.int64)
    ns = tl.program_id(1) * BLOCKS + tl.arange(0, BLOCKS)
    t0, t1, t2, t3 = _load(t + entity * D * n + ns, n, ns < n, D)
    p0 = tl.zeros((BLOCKS,), tl.float32)
    p1, p2, p3 = p0, p0, p0
    for j in range(tl.load(starts + entity), tl.load(starts + entity + 1)):
        naming = tl.load(order + j)
        row = naming // k
        q0, q1, q2, q3 = _load(q + row * D * n + ns, n, ns < n, D)
        if DOT:
            p0 += tl.load(grad + naming) * q0
        else:
            d0, d1, d2, d3 = t0 - q0, t1 - q1, t2 - q2, t3 - q3
            weight = tl.load(w + row * n + ns, ns < n, 0.0)
            gradient = tl.load(grad + naming) * weight * _inverse(_squares(d0, d1, d2, d3, D))
            p0, p1, p2, p3 = _add(p0, p1, p2, p3, gradient, d0, d1, d2, d3, D)
    store(grad_t + entity * D * n + ns, n, ns < n, p0, p1, p2, p3, D)
