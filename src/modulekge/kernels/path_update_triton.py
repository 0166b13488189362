r"""A layer's update of states, $x + \mathrm{relu}(\mathrm{norm}(C M + D x + b))$ and its gradients.

One pass over the states each way; the questions of an entity are worked out together. A fixed
number of programs add up the gradients of weights, so that the same bits come out each time.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

_ROWS = 64  # questions at a time
_PROGRAMS = 1056
_WARPS = 4


@dataclass(frozen=True, eq=False)
class Update:
    """The weights of an update; ``counts`` divides sums, and ``scale`` weighs what arrives, by entity."""

    weights: tuple[Tensor, ...]  # aggregate (3 d, parts d), own (d, d), bias, and those of the norm
    counts: Tensor
    scale: Tensor

    def states(self, x: Tensor, sums: list[Tensor], arrived: Tensor) -> Tensor:
        """Return the states after a layer, of the states before it (entities, questions, d) and the sums."""
        out = torch.empty_like(x)
        _states[(_PROGRAMS,)](x, sums[0], sums[-1], out, *self._read(x, arrived), *self._sizes(x, sums))
        return out

    def gradients(
        self, dout: Tensor, x: Tensor, sums: list[Tensor], arrived: Tensor
    ) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[Tensor, ...]]:
        """Return the gradients of the states, of both sums, and of the five weights."""
        dx, ds, dq = (torch.empty_like(x) for _ in range(3))
        sizes = self._sizes(x, sums)
        d, width, parts = x.shape[-1], sizes[-3], len(sums)
        matrices = torch.empty(_PROGRAMS, 1 + 3 * parts, width, width, device=x.device)
        vectors = torch.empty(_PROGRAMS, 3, width, device=x.device)
        _gradients[(_PROGRAMS,)](
            x, sums[0], sums[-1], dout, dx, ds, dq, matrices, vectors, *self._read(x, arrived), *sizes,
            num_warps=_WARPS,
        )  # fmt: skip
        own, *blocks = matrices.sum(0)[:, :d, :d].unbind(0)
        aggregate = torch.cat([torch.cat(blocks[i::3], 1) for i in range(3)])
        return (dx, ds, dq), (aggregate, own, *vectors.sum(0)[:, :d].unbind(0))

    def _read(self, x: Tensor, arrived: Tensor) -> tuple[Tensor, ...]:
        aggregate, own, *vectors = self.weights
        return arrived, self.counts, self.scale, aggregate.to(x.dtype), own.to(x.dtype), *vectors

    def _sizes(self, x: Tensor, sums: list[Tensor]) -> tuple[int, ...]:
        entities, b, d = x.shape
        width = max(16, triton.next_power_of_2(d))
        return entities, b, d, len(sums) > 1, width, _ROWS, _PROGRAMS


@triton.jit
def _matrix(w, OUT, IN, STRIDE, d, i):
    """A block of a matrix of weights, transposed: (in, out)."""
    inside = (i[:, None] < d) & (i[None, :] < d)
    return tl.load(w + (OUT * d + i[None, :]) * STRIDE + IN * d + i[:, None], inside, 0.0)


@triton.jit
def _mixed(aggregate, IN, STRIDE, d, i, c):
    """What an entity of this scale makes of a part of what arrives: C1 + c C2 + C3 / c, transposed."""
    first = _matrix(aggregate, 0, IN, STRIDE, d, i).to(tl.float32)
    more = _matrix(aggregate, 1, IN, STRIDE, d, i).to(tl.float32)
    less = _matrix(aggregate, 2, IN, STRIDE, d, i).to(tl.float32)
    return (first + c * more + less / c).to(aggregate.dtype.element_ty)


@triton.jit
def _states(
    x, s, q, out, arrived, counts, scale, aggregate, own, bias, norm_weight, norm_bias,
    ENTITIES, B, d, SQUARES: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    i = tl.arange(0, WIDTH)
    columns = (i < d)[None, :]
    stride = 2 * d if SQUARES else d
    tiles = tl.cdiv(B, ROWS)
    for tile in range(tl.program_id(0), ENTITIES * tiles, PROGRAMS):
        entity = tile // tiles
        rows = tile % tiles * ROWS + tl.arange(0, ROWS)
        at = (entity.to(tl.int64) * B + rows)[:, None] * d + i[None, :]
        ok = (rows < B)[:, None] & columns
        if tl.load(arrived + entity) != 0:
            n, c = tl.load(counts + entity), tl.load(scale + entity)
            xs, total = tl.load(x + at, ok, 0.0), tl.load(s + at, ok, 0.0)
            mean = total / n
            y = tl.dot(xs, _matrix(own, 0, 0, d, d, i)) + tl.load(bias + i, i < d, 0.0)[None, :]
            y = tl.dot(mean.to(xs.dtype), _mixed(aggregate, 0, stride, d, i, c), y)
            if SQUARES:
                variance = tl.load(q + at, ok, 0.0) / n - mean * mean
                std = tl.sqrt(tl.maximum(variance, 1e-6)).to(xs.dtype)
                y = tl.dot(std, _mixed(aggregate, 1, stride, d, i, c), y)
            y = tl.where(columns, y - (tl.sum(y, 1) / d)[:, None], 0.0)
            y = y * tl.rsqrt(tl.sum(y * y, 1) / d + 1e-5)[:, None]
            y = (
                y * tl.load(norm_weight + i, i < d, 0.0)[None, :]
                + tl.load(norm_bias + i, i < d, 0.0)[None, :]
            )
            old = xs.to(tl.float32)
            here = (tl.max(tl.maximum(tl.abs(old), tl.abs(total)), 1) != 0)[:, None]
            tl.store(out + at, tl.where(here, old + tl.maximum(y, 0.0), 0.0).to(xs.dtype), ok)
        else:
            tl.store(out + at, tl.zeros([ROWS, WIDTH], x.dtype.element_ty), ok)


@triton.jit
def _gradients(
    x, s, q, dout, dx, ds, dq, matrices, vectors,
    arrived, counts, scale, aggregate, own, bias, norm_weight, norm_bias,
    ENTITIES, B, d, SQUARES: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    i = tl.arange(0, WIDTH)
    columns = (i < d)[None, :]
    stride = 2 * d if SQUARES else d
    tiles = tl.cdiv(B, ROWS)
    dw = tl.zeros([WIDTH, WIDTH], tl.float32)
    dm0, dm1, dm2 = tl.zeros_like(dw), tl.zeros_like(dw), tl.zeros_like(dw)
    dv0, dv1, dv2 = tl.zeros_like(dw), tl.zeros_like(dw), tl.zeros_like(dw)
    db = tl.zeros([WIDTH], tl.float32)
    dnw, dnb = tl.zeros_like(db), tl.zeros_like(db)
    for tile in range(tl.program_id(0), ENTITIES * tiles, PROGRAMS):
        entity = tile // tiles
        rows = tile % tiles * ROWS + tl.arange(0, ROWS)
        at = (entity.to(tl.int64) * B + rows)[:, None] * d + i[None, :]
        ok = (rows < B)[:, None] & columns
        if tl.load(arrived + entity) != 0:
            n, c = tl.load(counts + entity), tl.load(scale + entity)
            xs, total = tl.load(x + at, ok, 0.0), tl.load(s + at, ok, 0.0)
            mean = total / n
            low = mean.to(xs.dtype)
            w = _matrix(own, 0, 0, d, d, i)
            m = _mixed(aggregate, 0, stride, d, i, c)
            y = tl.dot(xs, w) + tl.load(bias + i, i < d, 0.0)[None, :]
            y = tl.dot(low, m, y)
            if SQUARES:
                variance = tl.load(q + at, ok, 0.0) / n - mean * mean
                std = tl.sqrt(tl.maximum(variance, 1e-6))
                v = _mixed(aggregate, 1, stride, d, i, c)
                y = tl.dot(std.to(xs.dtype), v, y)
            y = tl.where(columns, y - (tl.sum(y, 1) / d)[:, None], 0.0)
            by = tl.rsqrt(tl.sum(y * y, 1) / d + 1e-5)[:, None]
            z = y * by
            nw = tl.load(norm_weight + i, i < d, 0.0)[None, :]
            nb = tl.load(norm_bias + i, i < d, 0.0)[None, :]
            here = (tl.max(tl.maximum(tl.abs(xs.to(tl.float32)), tl.abs(total)), 1) != 0)[:, None]
            go = tl.where(here, tl.load(dout + at, ok, 0.0).to(tl.float32), 0.0)
            do = tl.where(z * nw + nb > 0, go, 0.0)
            dnw += tl.sum(do * z, 0)
            dnb += tl.sum(do, 0)
            dz = do * nw
            dz = by * (dz - (tl.sum(dz, 1) / d)[:, None] - z * (tl.sum(dz * z, 1) / d)[:, None])
            dz = tl.where(columns, dz, 0.0)
            db += tl.sum(dz, 0)
            dy = dz.to(xs.dtype)
            back = tl.trans(dy)
            dw = tl.dot(back, xs, dw)
            part = tl.dot(back, low)
            dm0 += part
            dm1 += c * part
            dm2 += part / c
            dmean = tl.dot(dy, tl.trans(m))
            if SQUARES:
                part = tl.dot(back, std.to(xs.dtype))
                dv0 += part
                dv1 += c * part
                dv2 += part / c
                dvariance = tl.where(variance >= 1e-6, 0.5 * tl.dot(dy, tl.trans(v)) / std, 0.0)
                dmean -= 2 * mean * dvariance
                tl.store(dq + at, (dvariance / n).to(xs.dtype), ok)
            tl.store(ds + at, (dmean / n).to(xs.dtype), ok)
            tl.store(dx + at, tl.dot(dy, tl.trans(w), go).to(xs.dtype), ok)
        else:
            tl.store(dx + at, tl.zeros([ROWS, WIDTH], x.dtype.element_ty), ok)
    block = i[:, None] * WIDTH + i[None, :]
    to = matrices + tl.program_id(0) * (7 if SQUARES else 4) * WIDTH * WIDTH + block
    tl.store(to, dw)
    tl.store(to + WIDTH * WIDTH, dm0)
    tl.store(to + 2 * WIDTH * WIDTH, dm1)
    tl.store(to + 3 * WIDTH * WIDTH, dm2)
    if SQUARES:
        tl.store(to + 4 * WIDTH * WIDTH, dv0)
        tl.store(to + 5 * WIDTH * WIDTH, dv1)
        tl.store(to + 6 * WIDTH * WIDTH, dv2)
    to = vectors + tl.program_id(0) * 3 * WIDTH + i
    tl.store(to, db)
    tl.store(to + WIDTH, dnw)
    tl.store(to + 2 * WIDTH, dnb)
