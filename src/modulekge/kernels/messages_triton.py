r"""Messages along edges and their sums, in Triton: $\sum_e T_g(x_u)$ and $\sum_e T_g(x_u)^2$ at every target.

Elements of $\mathbb R \subset \mathbb C \subset \mathbb H$ are multiplied component by component; one part of
a state, scalar or vector, at a time. States are rows of (questions, components, blocks). Long lists are cut
into pieces, and pieces are added up in their order, so that the same bits come out each time.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from modulekge.kernels.distance_triton import store
from modulekge.kernels.gather_sum import Lists, starts_of

_PIECE = 64  # items of a list at a time
_BLOCK = 256  # pairs of a question and a block at a time


@dataclass(frozen=True, eq=False)
class Pieces:
    """Lists cut into pieces: where each starts and ends, its row, and where its sum goes.

    The only piece of a row writes the row itself; others write behind all rows and are added up after.
    """

    start: Tensor
    end: Tensor
    row: Tensor
    place: Tensor
    rows: int
    several: Tensor  # rows of more than one piece
    first: Tensor  # and where their sums start and end
    last: Tensor

    @classmethod
    def of(cls, starts: Tensor, most: int = _PIECE) -> "Pieces":
        """Cut lists that start so; one without items has one piece of none."""
        counts, device = starts.diff(), starts.device
        pieces = ((counts + most - 1) // most).clamp(min=1)
        before = pieces.cumsum(0) - pieces
        row = torch.repeat_interleave(torch.arange(len(counts), device=device), pieces)
        nth = torch.arange(len(row), device=device) - before[row]
        start = starts[row] + nth * most
        end = torch.minimum(start + most, starts[row + 1])
        several = (pieces > 1).nonzero()[:, 0]
        extra = (pieces[row] > 1).cumsum(0) - 1
        place = torch.where(pieces[row] > 1, len(counts) + extra, row)
        first = len(counts) + pieces[several].cumsum(0) - pieces[several]
        rest = several.int(), first.int(), (first + pieces[several]).int()
        return cls(start.int(), end.int(), row.int(), place.int(), len(counts), *rest)

    @property
    def size(self) -> int:
        """Rows, and sums of pieces behind them."""
        return len(self.row) + len(self.several)


@dataclass(frozen=True, eq=False)
class Plan:
    """The edges of a graph in the orders in which the kernels follow them, made once for a graph."""

    by_target: Pieces
    source: Tensor  # of each edge, by target
    relation: Tensor
    by_message: Pieces
    target: Tensor  # of each edge, by message
    sender: Tensor  # source of each piece of a message
    moved_by: Tensor  # and its relation
    by_sender: Pieces  # of pieces of messages
    by_relation: Pieces
    of_relation: Tensor  # pieces of messages in the order of their relations

    @classmethod
    def of(
        cls, source: Tensor, relation: Tensor, target: Lists, message: Lists, counts: tuple[int, int]
    ) -> "Plan":
        """Order messages by source and relation, edges by where they end and by which message they carry."""
        assert target.starts is not None and message.starts is not None
        by_message = Pieces.of(message.starts)
        pieces = by_message.row.long()
        listed = Lists.of(relation[pieces], counts[1])
        assert listed.starts is not None
        return cls(
            Pieces.of(target.starts),
            source[target.items].int(),
            relation[target.items].int(),
            by_message,
            message.items.int(),
            source[pieces].int(),
            relation[pieces].int(),
            Pieces.of(starts_of(source[pieces], counts[0])),
            Pieces.of(listed.starts),
            listed.items.int(),
        )


class Sums(torch.autograd.Function):
    """Sums of messages, and of their squares, at every target, with the query of each head among them.

    ``parts`` are (D, E, left) of each part: components of a state and of an element, and its side. Edges that
    are not ``kept``, and those from entities that are not ``active``, send nothing.
    """

    @staticmethod
    def forward(ctx, x, g, query, heads, plan, parts, kept, kept_by_message, active, squares):  # noqa: D102
        ctx.save_for_backward(x, g, query, heads, kept_by_message, active)
        ctx.plan, ctx.parts, ctx.squares = plan, parts, squares
        pieces, (count, b, m, n) = plan.by_target, x.shape
        sums = [torch.empty(pieces.size, b, m, n, device=x.device) for _ in range(1 + squares)]
        first = of = 0
        for d, e, left in parts:
            _forward[(len(pieces.row), triton.cdiv(b * n, _BLOCK))](
                x, g, sums[0], sums[-1], plan.source, plan.relation, kept,
                pieces.start, pieces.end, pieces.place,
                b, n, m, g.shape[2], first, of, d, e, left, squares, _BLOCK,
            )  # fmt: skip
            first, of = first + d, of + e
        each = torch.arange(b, device=x.device)
        for power, total in enumerate(sums, 1):
            _add_pieces(total, pieces)
            total[heads, each] += query.float() ** power
        return tuple(total[:count] for total in sums)

    @staticmethod
    def backward(ctx, *gradients):  # noqa: D102
        x, g, query, heads, kept, active = ctx.saved_tensors
        plan, pieces, (_, b, m, n) = ctx.plan, ctx.plan.by_message, x.shape
        ds, dq = (gradient.to(x.dtype).contiguous() for gradient in (gradients[0], gradients[-1]))
        size = len(pieces.row)
        dx, dg = (torch.empty(size, *like.shape[1:], dtype=x.dtype, device=x.device) for like in (x, g))
        first = of = 0
        for d, e, left in ctx.parts:
            _backward[(size, triton.cdiv(b * n, _BLOCK))](
                x, g, ds, dq, dx, dg, plan.sender, plan.moved_by, plan.target, kept, active,
                pieces.start, pieces.end, b, n, m, g.shape[2], first, of, d, e, left, ctx.squares, _BLOCK,
            )  # fmt: skip
            first, of = first + d, of + e
        sent = active[plan.sender.long()]
        every = torch.arange(size, dtype=torch.int32, device=x.device)
        by_source = _sum_rows(dx, every, sent, plan.by_sender)
        by_relation = _sum_rows(dg, plan.of_relation, sent[plan.of_relation.long()], plan.by_relation)
        by_source, by_relation = by_source.view(-1, b, m, n), by_relation.view(-1, *g.shape[1:])
        each = torch.arange(b, device=x.device)
        by_query = gradients[0][heads, each]
        if ctx.squares:
            by_query = by_query + 2 * query * gradients[1][heads, each]
        found = by_source.to(x.dtype), by_relation.to(g.dtype), by_query.to(query.dtype)
        return *found, None, None, None, None, None, None, None


def _sum_rows(table: Tensor, items: Tensor, kept: Tensor, pieces: Pieces) -> Tensor:
    """Sums of rows of a table by lists, in float32; rows that are not kept count as 0 and are not read."""
    width = table[0].numel()
    out = torch.empty(pieces.size, width, device=table.device)
    _rows[(len(pieces.row), triton.cdiv(width, 1024))](
        table, out, items, kept, pieces.start, pieces.end, pieces.place, width, 1024
    )
    _add_pieces(out, pieces)
    return out[: pieces.rows]


def _add_pieces(out: Tensor, pieces: Pieces) -> None:
    """Give rows of several pieces the sum of them, in their order."""
    if len(pieces.several):
        width = out[0].numel()
        grid = len(pieces.several), triton.cdiv(width, 1024)
        _add[grid](out, pieces.several, pieces.first, pieces.last, width, 1024)


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
    x, g, s, q, source, relation, kept, starts, ends, places,
    B, N, M, J, FIRST, OF, D: tl.constexpr, E: tl.constexpr, LEFT: tl.constexpr, SQUARES: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    piece = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ok = c < B * N
    at = (c // N) * (M * N) + FIRST * N + c % N
    of = (c // N) * (J * N) + OF * N + c % N
    s0 = tl.zeros([BLOCK], tl.float32)
    s1, s2, s3 = tl.zeros_like(s0), tl.zeros_like(s0), tl.zeros_like(s0)
    q0, q1, q2, q3 = tl.zeros_like(s0), tl.zeros_like(s0), tl.zeros_like(s0), tl.zeros_like(s0)
    for i in range(tl.load(starts + piece), tl.load(ends + piece)):
        if tl.load(kept + i) != 0:
            u = tl.load(source + i).to(tl.int64) * B * M * N
            x0, x1, x2, x3 = _load(x + u + at, N, ok, D)
            if E > 0:
                p = tl.load(relation + i).to(tl.int64) * B * J * N
                g0, g1, g2, g3 = _load(g + p + of, N, ok, E)
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
    x, g, ds, dq, dx, dg, sender, moved_by, target, kept, active, starts, ends,
    B, N, M, J, FIRST, OF, D: tl.constexpr, E: tl.constexpr, LEFT: tl.constexpr, SQUARES: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    r"""With $y = x g$: $dy = \sum ds + 2 y \sum dq$, $dx = dy\, \bar g$, $dg = \bar x\, dy$."""
    piece = tl.program_id(0)
    u = tl.load(sender + piece).to(tl.int64)
    if tl.load(active + u) != 0:
        c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        ok = c < B * N
        at = (c // N) * (M * N) + FIRST * N + c % N
        of = (c // N) * (J * N) + OF * N + c % N
        y0 = tl.zeros([BLOCK], tl.float32)
        y1, y2, y3 = tl.zeros_like(y0), tl.zeros_like(y0), tl.zeros_like(y0)
        q0, q1, q2, q3 = tl.zeros_like(y0), tl.zeros_like(y0), tl.zeros_like(y0), tl.zeros_like(y0)
        for i in range(tl.load(starts + piece), tl.load(ends + piece)):
            if tl.load(kept + i) != 0:
                v = tl.load(target + i).to(tl.int64) * B * M * N
                a0, a1, a2, a3 = _load(ds + v + at, N, ok, D)
                y0 += a0
                y1 += a1
                y2 += a2
                y3 += a3
                if SQUARES:
                    b0, b1, b2, b3 = _load(dq + v + at, N, ok, D)
                    q0 += b0
                    q1 += b1
                    q2 += b2
                    q3 += b3
        x0, x1, x2, x3 = _load(x + u * B * M * N + at, N, ok, D)
        if E > 0:
            p = tl.load(moved_by + piece).to(tl.int64) * B * J * N
            g0, g1, g2, g3 = _load(g + p + of, N, ok, E)
        else:
            g0, g1, g2, g3 = x0, x0, x0, x0
        if SQUARES:
            z0, z1, z2, z3 = _moved(x0, x1, x2, x3, g0, g1, g2, g3, D, E, LEFT)
            y0 += 2 * z0 * q0
            y1 += 2 * z1 * q1
            y2 += 2 * z2 * q2
            y3 += 2 * z3 * q3
        d0, d1, d2, d3 = _moved(y0, y1, y2, y3, g0, -g1, -g2, -g3, D, E, LEFT)
        row = piece.to(tl.int64)
        store(dx + row * B * M * N + at, N, ok, d0, d1, d2, d3, D)
        if E > 0:
            if LEFT:
                d0, d1, d2, d3 = _product(y0, y1, y2, y3, x0, -x1, -x2, -x3, D)
            else:
                d0, d1, d2, d3 = _product(x0, -x1, -x2, -x3, y0, y1, y2, y3, D)
            store(dg + row * B * J * N + of, N, ok, d0, d1, d2, d3, E)


@triton.jit
def _rows(table, out, items, kept, starts, ends, places, WIDTH, BLOCK: tl.constexpr):
    piece = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ok = c < WIDTH
    total = tl.zeros([BLOCK], tl.float32)
    for i in range(tl.load(starts + piece), tl.load(ends + piece)):
        if tl.load(kept + i) != 0:
            row = tl.load(items + i).to(tl.int64)
            total += tl.load(table + row * WIDTH + c, ok, 0.0).to(tl.float32)
    tl.store(out + tl.load(places + piece).to(tl.int64) * WIDTH + c, total, ok)


@triton.jit
def _add(out, rows, firsts, lasts, WIDTH, BLOCK: tl.constexpr):
    which = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ok = c < WIDTH
    total = tl.zeros([BLOCK], tl.float32)
    for i in range(tl.load(firsts + which), tl.load(lasts + which)):
        total += tl.load(out + tl.cast(i, tl.int64) * WIDTH + c, ok, 0.0)
    tl.store(out + tl.load(rows + which).to(tl.int64) * WIDTH + c, total, ok)
