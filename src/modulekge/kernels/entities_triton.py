r"""The passes of a step over the tables of entities, and over the rows of a batch, in Triton.

Elements of $\mathbb R \subset \mathbb C \subset \mathbb H$ are written out as quaternions ``x0 .. x3``, the
first ``D`` components in memory and the others 0; with ``D = 0``, where nothing is stored, they are $1$.
Entities as products need them, and the gradients by them, may be bfloat16; the tables are float32.
"""

import triton
import triton.language as tl
from torch import Tensor

from modulekge.kernels.distance_triton import store

_ROWS = 8  # entities to a program


def build(scalar: Tensor, vector: Tensor, exponential: bool, out: Tensor) -> None:
    r"""$s_e \odot v_e$ of every entity; rows of ``out`` after the last entity become 0.

    $v_e$ is $x / |x|$ of the numbers $x$ in the table, or $\exp x$.
    """
    k = out.shape[2]
    grid, block = _tiles(len(out), k)
    _build[grid](
        scalar, vector, out, len(scalar), len(out), k,
        scalar.shape[1], vector.shape[1], exponential, out.shape[1], _ROWS, block,
    )  # fmt: skip


def gather(ids: Tensor, relations: Tensor, tables: tuple[tuple[Tensor, Tensor], ...]) -> None:
    r"""$few[i] \leftarrow table[ids[i]]$ of two tables of entities, and so of two of relations."""
    (a, a_few), (b, b_few), (c, c_few), (d, d_few) = tables
    widths = [table[0].numel() for table, _ in tables]
    grid = len(ids), triton.cdiv(max(*widths, 1), 1024), 4
    _gather[grid](
        ids, relations, a, b, c, d, a_few, b_few, c_few, d_few, *widths, len(relations), 1024
    )  # fmt: skip


def place(ids: Tensor, slots: Tensor) -> None:
    r"""$slots[ids[i]] \leftarrow i$; of an entity's several places the last. Negative ids are passed over."""
    _place[(triton.cdiv(len(ids), 256),)](ids, slots, len(ids), False, 256)


def lift(ids: Tensor, slots: Tensor) -> None:
    r"""$slots[ids[i]] \leftarrow -1$, which undoes :func:`place`."""
    _place[(triton.cdiv(len(ids), 256),)](ids, slots, len(ids), True, 256)


def merge(ids: Tensor, slots: Tensor, tables: tuple[Tensor, Tensor]) -> None:
    """Add to the row of each entity's slot its other rows, in their order: the sum is the same each time."""
    widths = [rows[0].numel() for rows in tables]
    grid = len(ids), triton.cdiv(max(widths), 1024), 2
    _merge[grid](ids, slots, *tables, *widths, 1024, 1024)


def update(
    tables: tuple[Tensor, Tensor],
    exponential: bool,
    sums: list[Tensor],
    extra: tuple[Tensor, Tensor],
    gradients: Tensor,
    slots: Tensor,
    rate: Tensor,
    eps: float,
    out: Tensor | None,
) -> None:
    r"""Bring the gradients by $s_e \odot v_e$ back to the tables and take a step of Adagrad.

    ``extra`` gradients by the tables stand in the row ``slots[e]``, where that is not negative. ``out``, if
    there is one, becomes what :func:`build` makes of the tables after the step.
    """
    (scalar, vector), k = tables, gradients.shape[2]
    grid, block = _tiles(len(scalar), k)
    _update[grid](
        scalar, vector, *sums, *extra, gradients, slots, rate, gradients if out is None else out,
        len(scalar), k, eps, scalar.shape[1], vector.shape[1], exponential, out is not None,
        gradients.shape[1], _ROWS, block, num_warps=8,
    )  # fmt: skip


def settle(ids: Tensor, gradients: Tensor, table: Tensor, total: Tensor, rate: Tensor, eps: float) -> None:
    """Add up the gradients of each row of a small table, in the order of ``ids``; take a step of Adagrad."""
    width = table[0].numel()
    _settle[(len(table), triton.cdiv(width, 32))](
        ids, gradients.contiguous(), table, total, rate, len(ids), width, eps, 128, 32, num_warps=1
    )


def _tiles(rows: int, k: int) -> tuple[tuple[int, int], int]:
    block = min(128, triton.next_power_of_2(k))
    return (triton.cdiv(rows, _ROWS), triton.cdiv(k, block)), block


@triton.jit
def _load(x, step, mask, D: tl.constexpr):
    x0 = tl.load(x, mask, 0.0).to(tl.float32) if D > 0 else tl.where(mask, 1.0, 0.0)
    x1 = tl.load(x + step, mask, 0.0).to(tl.float32) if D > 1 else tl.zeros_like(x0)
    x2 = tl.load(x + 2 * step, mask, 0.0).to(tl.float32) if D > 2 else tl.zeros_like(x0)
    x3 = tl.load(x + 3 * step, mask, 0.0).to(tl.float32) if D > 3 else tl.zeros_like(x0)
    return x0, x1, x2, x3


@triton.jit
def _product(x0, x1, x2, x3, y0, y1, y2, y3):
    return (
        x0 * y0 - x1 * y1 - x2 * y2 - x3 * y3,
        x0 * y1 + x1 * y0 + x2 * y3 - x3 * y2,
        x0 * y2 - x1 * y3 + x2 * y0 + x3 * y1,
        x0 * y3 + x1 * y2 - x2 * y1 + x3 * y0,
    )


@triton.jit
def _normalised(v0, v1, v2, v3):
    """As in the parametrization of this name; returned with 1 / |v|, which is 1 where v counts as 1 + v."""
    norm = v0 * v0 + v1 * v1 + v2 * v2 + v3 * v3
    zero = norm < 4.1e-26
    inverse = tl.rsqrt(tl.where(zero, 1.0, norm))
    return v0 * inverse + tl.where(zero, 1.0, 0.0), v1 * inverse, v2 * inverse, v3 * inverse, inverse, zero


@triton.jit
def _exponential(x1, x2, x3):
    r"""$\exp x$ of an imaginary $x$; with $\sin\theta / \theta$ and its derivative by $\theta^2 / 2$."""
    square = x1 * x1 + x2 * x2 + x3 * x3
    small = square < 1e-4
    safe = tl.where(small, 1.0, square)
    theta = tl.sqrt(square)
    cosine = tl.cos(theta)
    sinc = tl.where(small, 1 - square / 6, tl.sin(theta) / tl.sqrt(safe))
    bend = tl.where(small, square / 30 - 1 / 3, (cosine - sinc) / safe)
    return cosine, sinc * x1, sinc * x2, sinc * x3, sinc, bend


@triton.jit
def _entity(s0, s1, s2, s3, v0, v1, v2, v3, V: tl.constexpr, EXPONENTIAL: tl.constexpr):
    r"""$s \odot v$, $v$ as its parametrization has it."""
    if V > 0:
        if EXPONENTIAL:
            v0, v1, v2, v3, _, _ = _exponential(v0, v1, v2)
        else:
            v0, v1, v2, v3, _, _ = _normalised(v0, v1, v2, v3)
    return _product(s0, s1, s2, s3, v0, v1, v2, v3)


@triton.jit
def _gather(
    ids, relations, a, b, c, d, a_few, b_few, c_few, d_few, a_width, b_width, c_width, d_width, moves,
    BLOCK: tl.constexpr,
):  # fmt: skip
    table = tl.program_id(2)
    if table == 0:
        _copy(ids, a, a_few, a_width, BLOCK)
    elif table == 1:
        _copy(ids, b, b_few, b_width, BLOCK)
    elif tl.program_id(0) < moves:
        if table == 2:
            _copy(relations, c, c_few, c_width, BLOCK)
        else:
            _copy(relations, d, d_few, d_width, BLOCK)


@triton.jit
def _copy(ids, table, few, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = place < width
    tl.store(few + row * width + place, tl.load(table + tl.load(ids + row) * width + place, inside), inside)


@triton.jit
def _place(ids, slots, count, LIFT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    e = tl.load(ids + i, i < count, -1)
    if LIFT:
        tl.store(slots + e, tl.full((BLOCK,), -1, tl.int32), e >= 0)
    else:
        tl.atomic_max(slots + e, i, e >= 0)


@triton.jit
def _merge(ids, slots, first, second, width, second_width, IDS: tl.constexpr, BLOCK: tl.constexpr):
    if tl.program_id(2) == 0:
        _merge_rows(ids, slots, first, width, IDS, BLOCK)
    else:
        _merge_rows(ids, slots, second, second_width, IDS, BLOCK)


@triton.jit
def _merge_rows(ids, slots, rows, width, IDS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    e = tl.load(ids + row)
    slot = tl.load(slots + e, e >= 0, -1)
    if (e >= 0) & (slot == row):
        place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = place < width
        total = tl.load(rows + slot.to(tl.int64) * width + place, inside, 0.0)
        for start in range(0, row, IDS):
            before = start + tl.arange(0, IDS)
            same = (before < row) & (tl.load(ids + before, before < row, -1) == e)
            for _ in range(tl.sum(same.to(tl.int32), 0)):
                first = tl.min(tl.where(same, before, row), 0)
                total += tl.load(rows + first.to(tl.int64) * width + place, inside, 0.0)
                same = same & (before != first)
        tl.store(rows + slot.to(tl.int64) * width + place, total, inside)


@triton.jit
def _settle(
    ids, gradients, table, total, rate, count, width, eps, IDS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0)
    ks = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    g = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, IDS):
        i = start + tl.arange(0, IDS)
        same = tl.load(ids + i, i < count, -1) == row
        if tl.sum(same.to(tl.int32), 0) > 0:
            mask = same[:, None] & (ks < width)[None, :]
            g += tl.sum(tl.load(gradients + i.to(tl.int64)[:, None] * width + ks[None, :], mask, 0.0), 0)
    place = row.to(tl.int64) * width + ks
    x = tl.load(table + place, ks < width, 0.0)
    _step(table, x, g, total, place, ks < width, tl.load(rate), eps)


@triton.jit
def _tile(count, k, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The entities and blocks of a program, and which of them there are."""
    es = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    ks = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    return es, ks, (es < count) & (ks < k)


@triton.jit
def _build(
    s, v, out, count, rows, k, S: tl.constexpr, V: tl.constexpr, EXPONENTIAL: tl.constexpr,
    D: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    es, ks, inside = _tile(count, k, ROWS, BLOCK)
    s0, s1, s2, s3 = _load(s + es * S * k + ks, k, inside, S)
    v0, v1, v2, v3 = _load(v + es * V * k + ks, k, inside, V)
    x0, x1, x2, x3 = _entity(s0, s1, s2, s3, v0, v1, v2, v3, V, EXPONENTIAL)
    x0, x1 = tl.where(inside, x0, 0.0), tl.where(inside, x1, 0.0)
    x2, x3 = tl.where(inside, x2, 0.0), tl.where(inside, x3, 0.0)
    store(out + es * D * k + ks, k, (es < rows) & (ks < k), x0, x1, x2, x3, D)


@triton.jit
def _step(x, old, g, total, place, mask, rate, eps):
    square = tl.load(total + place, mask, 0.0) + g * g
    new = old - rate * g / (tl.sqrt(square) + eps)
    tl.store(total + place, square, mask)
    tl.store(x + place, new, mask)
    return new


@triton.jit
def _steps(
    x, x0, x1, x2, x3, g0, g1, g2, g3, total, extra, slot, es, ks, k, mask, rate, eps, D: tl.constexpr
):  # fmt: skip
    more = mask & (slot >= 0)
    e0, e1, e2, e3 = _load(extra + slot * D * k + ks, k, more, D)
    place = es * D * k + ks
    if D > 0:
        x0 = _step(x, x0, g0 + e0, total, place, mask, rate, eps)
    if D > 1:
        x1 = _step(x, x1, g1 + e1, total, place + k, mask, rate, eps)
    if D > 2:
        x2 = _step(x, x2, g2 + e2, total, place + 2 * k, mask, rate, eps)
    if D > 3:
        x3 = _step(x, x3, g3 + e3, total, place + 3 * k, mask, rate, eps)
    return x0, x1, x2, x3


@triton.jit
def _update(
    s, v, s_total, v_total, s_extra, v_extra, gradients, slots, rate, out, count, k, eps,
    S: tl.constexpr, V: tl.constexpr, EXPONENTIAL: tl.constexpr, BUILD: tl.constexpr,
    D: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    es, ks, inside = _tile(count, k, ROWS, BLOCK)
    s0, s1, s2, s3 = _load(s + es * S * k + ks, k, inside, S)
    v0, v1, v2, v3 = _load(v + es * V * k + ks, k, inside, V)
    g0, g1, g2, g3 = _load(gradients + es * D * k + ks, k, inside, D)
    slot = tl.load(slots + es, es < count, -1).to(tl.int64)
    eta = tl.load(rate)
    u0, u1, u2, u3 = v0, v1, v2, v3
    if V > 0:
        if EXPONENTIAL:
            u0, u1, u2, u3, sinc, bend = _exponential(v0, v1, v2)
        else:
            u0, u1, u2, u3, inverse, zero = _normalised(v0, v1, v2, v3)
    n0, n1, n2, n3 = s0, s1, s2, s3
    if S > 0:
        p0, p1, p2, p3 = _product(g0, g1, g2, g3, u0, -u1, -u2, -u3)  # g times the conjugate of v
        n0, n1, n2, n3 = _steps(
            s, s0, s1, s2, s3, p0, p1, p2, p3, s_total, s_extra, slot, es, ks, k, inside, eta, eps, S
        )  # fmt: skip
    if V > 0:
        p0, p1, p2, p3 = _product(s0, -s1, -s2, -s3, g0, g1, g2, g3)
        if EXPONENTIAL:
            along = bend * (p1 * v0 + p2 * v1 + p3 * v2) - sinc * p0
            p0, p1, p2 = sinc * p1 + along * v0, sinc * p2 + along * v1, sinc * p3 + along * v2
        else:
            along = tl.where(zero, 0.0, u0 * p0 + u1 * p1 + u2 * p2 + u3 * p3)
            p0, p1 = (p0 - along * u0) * inverse, (p1 - along * u1) * inverse
            p2, p3 = (p2 - along * u2) * inverse, (p3 - along * u3) * inverse
        v0, v1, v2, v3 = _steps(
            v, v0, v1, v2, v3, p0, p1, p2, p3, v_total, v_extra, slot, es, ks, k, inside, eta, eps, V
        )  # fmt: skip
    if BUILD:
        n0, n1, n2, n3 = _entity(n0, n1, n2, n3, v0, v1, v2, v3, V, EXPONENTIAL)
        store(out + es * D * k + ks, k, inside, n0, n1, n2, n3, D)
