r"""Messages along edges and their sums, in Triton: $\sum_e T_g(x_u)$ and $\sum_e T_g(x_u)^2$ at every target.

Elements of $\mathbb R \subset \mathbb C \subset \mathbb H$ are multiplied component by component; one part of
a state, scalar or vector, at a time. States are rows of (questions, components, blocks). Long lists are cut
into pieces, and pieces are added up in their order, so that the same bits come out each time.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from modulekge.kernels.distance_triton import store
from modulekge.kernels.message_plan import Pieces, Sending

_BLOCK = 256  # pairs of a question and a block at a time, in one warp: 16 bytes to a thread
_WIDE = 1024  # numbers of a row at a time
Parts = tuple[
    tuple[int, int, bool], ...
]  # components of each part, of its element, and whether from the left


def sums_of(
    x: Tensor, g: Tensor, query: Tensor, heads: Tensor, sending: Sending, parts: Parts, squares: bool
) -> list[Tensor]:
    """Return the sums of messages, and of their squares, at every target that is reached.

    The query of each head counts as a message to it. What stands at other entities means nothing.
    """
    plan, (_, b, m, n) = sending.plan, x.shape
    pieces = plan.by_target
    sums = [torch.empty(pieces.size, b, m, n, device=x.device) for _ in range(1 + squares)]
    first = of = 0
    for d, e, left in parts:
        _forward[(len(pieces.row), triton.cdiv(b * n, _BLOCK))](
            x, g, sums[0], sums[-1], sending.source, plan.relation, sending.arrived,
            pieces.start, pieces.end, pieces.row, pieces.place,
            b, n, m, g.shape[2], first, of, d, e, left, squares, _BLOCK, num_warps=1,
        )  # fmt: skip
        first, of = first + d, of + e
    each = torch.arange(b, device=x.device)
    for power, total in enumerate(sums, 1):
        _add_pieces(total, total, pieces)
        total[heads, each] += query.float() ** power
    return [total[: pieces.rows] for total in sums]


def add_gradients_(
    dx: Tensor, x: Tensor, g: Tensor, ds: Tensor, dq: Tensor, sending: Sending, parts: Parts, squares: bool
) -> Tensor:
    """Add the gradients of states to others, of those of the sums; return the gradients of elements."""
    plan, (_, b, m, n) = sending.plan, x.shape
    pieces = plan.by_sender
    more = torch.empty(pieces.size - pieces.rows, b, m, n, device=x.device)
    dg = torch.empty(len(plan.start), *g.shape[1:], dtype=x.dtype, device=x.device)
    first = of = 0
    for d, e, left in parts:
        _backward[(len(pieces.row), triton.cdiv(b * n, _BLOCK))](
            x, g, ds, dq, dx, more, dg, plan.moved_by, sending.target, sending.active, plan.start, plan.end,
            pieces.start, pieces.end, pieces.row, pieces.place, pieces.rows,
            b, n, m, g.shape[2], first, of, d, e, left, squares, _BLOCK, num_warps=1,
        )  # fmt: skip
        first, of = first + d, of + e
    _add_pieces(more, dx, pieces, before=True)
    sent = sending.active[plan.sender.long()][plan.of_relation.long()]
    return _sum_rows(dg, plan.of_relation, sent, plan.by_relation).view_as(g)


class Arriving(torch.autograd.Function):
    """The sum, at every target, of what a table has of the relations by which edges arrive."""

    @staticmethod
    def forward(ctx, table, plan, kept):  # noqa: D102
        ctx.plan, ctx.kept = plan, kept
        return _sum_rows(table, plan.relation, kept[plan.edge], plan.by_target)

    @staticmethod
    def backward(ctx, dsums):  # noqa: D102
        plan, order = ctx.plan, ctx.plan.edge_of_relation
        return (
            _sum_rows(dsums.contiguous(), plan.target[order], ctx.kept[order], plan.edges_by_relation),
            None,
            None,
        )


def _sum_rows(table: Tensor, items: Tensor, kept: Tensor, pieces: Pieces) -> Tensor:
    """Sums of rows of a table by lists, in float32; rows that are not kept count as 0 and are not read."""
    width = table[0].numel()
    out = torch.empty(pieces.size, width, device=table.device)
    _rows[(len(pieces.row), triton.cdiv(width, _BLOCK))](
        table, out, items, kept, pieces.start, pieces.end, pieces.place, width, _BLOCK, num_warps=1
    )
    _add_pieces(out, out, pieces)
    return out[: pieces.rows]


def _add_pieces(sums: Tensor, out: Tensor, pieces: Pieces, before: bool = False) -> None:
    """Give rows of several pieces the sum of them, in their order, and of what was there before."""
    if len(pieces.several):
        width = out[0].numel()
        skipped = pieces.rows if before else 0  # where sums have no place for rows of one piece
        grid = len(pieces.several), triton.cdiv(width, _WIDE)
        _add[grid](sums, out, pieces.several, pieces.first, pieces.last, skipped, width, before, _WIDE)


@triton.jit
def _load(x, step, mask, D: tl.constexpr):
    x0 = tl.load(x, mask, 0.0).to(tl.float32)
    x1 = tl.load(x + step, mask, 0.0).to(tl.float32) if D > 1 else tl.zeros_like(x0)
    x2 = tl.load(x + 2 * step, mask, 0.0).to(tl.float32) if D > 2 else tl.zeros_like(x0)
    x3 = tl.load(x + 3 * step, mask, 0.0).to(tl.float32) if D > 2 else tl.zeros_like(x0)
    return x0, x1, x2, x3


@triton.jit
def _product(x0, x1, x2, x3, y0, y1, y2, y3, D: tl.constexpr):
    if D == 1:
        z0, z1, z2, z3 = x0 * y0, x1, x2, x3
    elif D == 2:
        z0, z1, z2, z3 = x0 * y0 - x1 * y1, x0 * y1 + x1 * y0, x2, x3
    else:
        z0 = x0 * y0 - x1 * y1 - x2 * y2 - x3 * y3
        z1 = x0 * y1 + x1 * y0 + x2 * y3 - x3 * y2
        z2 = x0 * y2 - x1 * y3 + x2 * y0 + x3 * y1
        z3 = x0 * y3 + x1 * y2 - x2 * y1 + x3 * y0
    return z0, z1, z2, z3


@triton.jit
def _moved(x0, x1, x2, x3, g0, g1, g2, g3, D: tl.constexpr, E: tl.constexpr, LEFT: tl.constexpr):
    if E == 0:
        y0, y1, y2, y3 = x0, x1, x2, x3
    elif LEFT:
        y0, y1, y2, y3 = _product(g0, g1, g2, g3, x0, x1, x2, x3, D)
    else:
        y0, y1, y2, y3 = _product(x0, x1, x2, x3, g0, g1, g2, g3, D)
    return y0, y1, y2, y3


@triton.jit
def _forward(
    x, g, s, q, source, relation, arrived, starts, ends, rows, places,
    B, N, M, J, FIRST, OF, D: tl.constexpr, E: tl.constexpr, LEFT: tl.constexpr, SQUARES: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    piece = tl.program_id(0)
    if tl.load(arrived + tl.load(rows + piece)) != 0:
        c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        ok = c < B * N
        at = (c // N) * (M * N) + FIRST * N + c % N
        of = (c // N) * (J * N) + OF * N + c % N
        s0 = tl.zeros([BLOCK], tl.float32)
        s1, s2, s3 = tl.zeros_like(s0), tl.zeros_like(s0), tl.zeros_like(s0)
        q0, q1, q2, q3 = tl.zeros_like(s0), tl.zeros_like(s0), tl.zeros_like(s0), tl.zeros_like(s0)
        for i in range(tl.load(starts + piece), tl.load(ends + piece)):
            u, p = tl.load(source + i).to(tl.int64), tl.load(relation + i).to(tl.int64)
            sent = c < tl.where(u >= 0, B * N, 0)
            x0, x1, x2, x3 = _load(x + u * B * M * N + at, N, sent, D)
            if E > 0:
                g0, g1, g2, g3 = _load(g + p * B * J * N + of, N, sent, E)
            else:
                g0, g1, g2, g3 = x0, x0, x0, x0
            y0, y1, y2, y3 = _moved(x0, x1, x2, x3, g0, g1, g2, g3, D, E, LEFT)
            s0 += y0
            s1 += y1
            s2 += y2
            s3 += y3
            if SQUARES:
                q0 += y0 * y0
                q1 += y1 * y1
                q2 += y2 * y2
                q3 += y3 * y3
        place = tl.load(places + piece).to(tl.int64) * B * M * N
        store(s + place + at, N, ok, s0, s1, s2, s3, D)
        if SQUARES:
            store(q + place + at, N, ok, q0, q1, q2, q3, D)


@triton.jit
def _backward(
    x, g, ds, dq, dx, more, dg, moved_by, target, active, run_starts, run_ends,
    starts, ends, rows, places, SENDERS,
    B, N, M, J, FIRST, OF, D: tl.constexpr, E: tl.constexpr, LEFT: tl.constexpr, SQUARES: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    r"""With $y = x g$: $dy = \sum ds + 2 y \sum dq$, $dx = dy\, \bar g$, $dg = \bar x\, dy$."""
    piece = tl.program_id(0)
    u, place = tl.load(rows + piece).to(tl.int64), tl.load(places + piece).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ok = c < B * N
    at = (c // N) * (M * N) + FIRST * N + c % N
    of = (c // N) * (J * N) + OF * N + c % N
    sends = tl.load(active + u) != 0
    live = c < tl.where(sends, B * N, 0)
    first, last = tl.load(starts + piece), tl.load(ends + piece)
    last = tl.where(sends, last, first)
    x0, x1, x2, x3 = _load(x + u * B * M * N + at, N, live, D)
    t0 = tl.zeros([BLOCK], tl.float32)
    t1, t2, t3 = tl.zeros_like(t0), tl.zeros_like(t0), tl.zeros_like(t0)
    for run in range(first, last):
        y0 = tl.zeros([BLOCK], tl.float32)
        y1, y2, y3 = tl.zeros_like(y0), tl.zeros_like(y0), tl.zeros_like(y0)
        q0, q1, q2, q3 = tl.zeros_like(y0), tl.zeros_like(y0), tl.zeros_like(y0), tl.zeros_like(y0)
        for i in range(tl.load(run_starts + run), tl.load(run_ends + run)):
            v = tl.load(target + i).to(tl.int64)
            there, to = c < tl.where(v >= 0, B * N, 0), v * B * M * N + at
            a0, a1, a2, a3 = _load(ds + to, N, there, D)
            y0 += a0
            y1 += a1
            y2 += a2
            y3 += a3
            if SQUARES:
                a0, a1, a2, a3 = _load(dq + to, N, there, D)
                q0 += a0
                q1 += a1
                q2 += a2
                q3 += a3
        if E > 0:
            g0, g1, g2, g3 = _load(g + tl.load(moved_by + run).to(tl.int64) * B * J * N + of, N, ok, E)
        else:
            g0, g1, g2, g3 = x0, x0, x0, x0
        if SQUARES:
            z0, z1, z2, z3 = _moved(x0, x1, x2, x3, g0, g1, g2, g3, D, E, LEFT)
            y0 += 2 * z0 * q0
            y1 += 2 * z1 * q1
            y2 += 2 * z2 * q2
            y3 += 2 * z3 * q3
        d0, d1, d2, d3 = _moved(y0, y1, y2, y3, g0, -g1, -g2, -g3, D, E, LEFT)
        t0 += d0
        t1 += d1
        t2 += d2
        t3 += d3
        if E > 0:
            if LEFT:
                d0, d1, d2, d3 = _product(y0, y1, y2, y3, x0, -x1, -x2, -x3, D)
            else:
                d0, d1, d2, d3 = _product(x0, -x1, -x2, -x3, y0, y1, y2, y3, D)
            store(dg + tl.cast(run, tl.int64) * B * J * N + of, N, ok, d0, d1, d2, d3, E)
    if place < SENDERS:
        to = dx + place * B * M * N + at
        d0, d1, d2, d3 = _load(to, N, live, D)
        store(to, N, live, d0 + t0, d1 + t1, d2 + t2, d3 + t3, D)
    else:
        store(more + (place - SENDERS) * B * M * N + at, N, ok, t0, t1, t2, t3, D)


@triton.jit
def _rows(table, out, items, kept, starts, ends, places, WIDTH, BLOCK: tl.constexpr):
    piece = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for i in range(tl.load(starts + piece), tl.load(ends + piece)):
        read = c < tl.where(tl.load(kept + i) != 0, WIDTH, 0)
        row = tl.load(items + i).to(tl.int64)
        total += tl.load(table + row * WIDTH + c, read, 0.0).to(tl.float32)
    tl.store(out + tl.load(places + piece).to(tl.int64) * WIDTH + c, total, c < WIDTH)


@triton.jit
def _add(sums, out, rows, firsts, lasts, SKIPPED, WIDTH, BEFORE: tl.constexpr, BLOCK: tl.constexpr):
    which = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ok = c < WIDTH
    to = out + tl.load(rows + which).to(tl.int64) * WIDTH + c
    total = tl.zeros([BLOCK], tl.float32)
    if BEFORE:
        total += tl.load(to, ok, 0.0).to(tl.float32)
    for i in range(tl.load(firsts + which) - SKIPPED, tl.load(lasts + which) - SKIPPED):
        total += tl.load(sums + tl.cast(i, tl.int64) * WIDTH + c, ok, 0.0)
    tl.store(to, total, ok)
