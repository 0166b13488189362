r"""The passes of ``entity_kernels``, which says what each is for, on a CPU.

Those over whole tables are one compiled loop each. It runs over entities and blocks, and is given the
components of elements apart: where these are an axis of a tensor, the compiler makes several loops, each of
which goes through all memory again. Elements of $\mathbb R \subset \mathbb C \subset \mathbb H$ are
multiplied as quaternions.
"""

import torch
from torch import Tensor

from modulekge.algebra.algebra import H
from modulekge.machine import compiled, repeatable

Components = list[Tensor]  # of shape (entities, blocks)


@repeatable()
@torch.no_grad()
def build(scalar: Tensor, vector: Tensor, exponential: bool, out: Tensor) -> None:
    r"""$s_e \odot v_e$."""
    count = len(scalar)
    out[count:] = 0
    compiled(_build, dynamic=False)(*_parts(scalar, vector, out[:count]), exponential)


def gather(ids: Tensor, relations: Tensor, tables: tuple[tuple[Tensor, Tensor], ...]) -> None:
    r"""$few[i] \leftarrow table[ids[i]]$."""
    for (table, few), rows in zip(tables, (ids, ids, relations, relations), strict=True):
        torch.index_select(table.detach(), 0, rows, out=few.detach())


def place(ids: Tensor, slots: Tensor) -> None:
    r"""$slots[ids[i]] \leftarrow i$."""
    each = torch.arange(len(ids), dtype=slots.dtype).masked_fill_(ids < 0, -1)
    slots.scatter_reduce_(0, ids.clamp(min=0), each, "amax")


def lift(ids: Tensor, slots: Tensor) -> None:
    r"""$slots[ids[i]] \leftarrow -1$."""
    slots.index_fill_(0, ids.clamp(min=0), -1)


def merge(ids: Tensor, slots: Tensor, tables: tuple[Tensor, Tensor]) -> None:
    """Add to the row of each entity's slot its other rows."""
    own = slots[ids.clamp(min=0)]
    others = ((own != torch.arange(len(ids))) & (ids >= 0)).nonzero()[:, 0]
    for rows in tables:
        rows.index_add_(0, own[others], rows[others])


@torch.no_grad()
def update(
    tables: tuple[Tensor, Tensor],
    exponential: bool,
    sums: list[Tensor],
    extra: tuple[Tensor, Tensor],
    gradients: Tensor,
    slots: Tensor,
    rate: Tensor | float,
    eps: float,
    out: Tensor | None,
) -> None:
    r"""$G \mathrel{+}= g^2$, $x \mathrel{-}= \eta\, g / (\sqrt G + \epsilon)$, and what is built of that."""
    count, rows = len(slots), _parts(*extra)
    for row in (row for part in rows for row in part):
        torch._dynamo.mark_dynamic(row, 0)  # a smaller batch is no reason to compile anew
    made = [gradients[:count], *(() if out is None else (out[:count],))]
    compiled(_update, dynamic=False)(
        _parts(*tables), _parts(*sums), rows, _parts(*made), slots[:, None], exponential,
        torch.as_tensor(rate), eps,
    )  # fmt: skip


def settle(ids: Tensor, gradients: Tensor, table: Tensor, total: Tensor, rate: float, eps: float) -> None:
    """Add up the gradients of each row of a small table, in the order of ``ids``; the optimiser steps."""
    table.grad = torch.zeros_like(table).index_add_(0, ids, gradients)


def _parts(*tables: Tensor) -> list[Components]:
    return [list(table.detach().unbind(1)) for table in tables]


def _build(scalar: Components, vector: Components, out: Components, exponential: bool) -> None:
    for part, made in zip(out, _entity(scalar, vector, exponential), strict=True):
        part.copy_(made)


def _update(
    tables: list[Components],
    sums: list[Components],
    extra: list[Components],
    made: list[Components],
    slots: Tensor,
    exponential: bool,
    rate: Tensor,
    eps: float,
) -> None:
    scalar, vector = tables
    gradients, *out = made
    pull = torch.func.vjp(lambda s, v: _entity(s, v, exponential), scalar, vector)[1]
    grads = pull([gradient.to(rate.dtype) for gradient in gradients])
    for table, memory, more, grad in zip(tables, sums, extra, grads, strict=True):
        for x, total, rows, g in zip(table, memory, more, grad, strict=True):
            g = g + torch.where(slots >= 0, rows[slots[:, 0]], 0)
            total.addcmul_(g, g)
            x.sub_(rate * g / (total.sqrt() + eps))
    for entities in out:
        _build(scalar, vector, entities, exponential)


def _entity(scalar: Components, vector: Components, exponential: bool) -> Components:
    r"""$s \odot v$, $v$ as its parametrization has it; without numbers it is $1$."""
    if not vector:
        return scalar
    unit = _exponential(vector) if exponential else _normalised(vector)
    return H.products(scalar, unit) if scalar else unit


def _square(x: Components) -> Tensor:
    first, *rest = (part.square() for part in x)
    return sum(rest, first)


def _normalised(x: Components) -> Components:
    """As the parametrization of this name."""
    norm = _square(x)
    zero = norm < 2 * torch.finfo(norm.dtype).max ** (-2 / 3)
    inverse = norm.masked_fill(zero, 1).rsqrt()
    first, *rest = (part * inverse for part in x)
    return [first + zero, *rest]


def _exponential(u: Components) -> Components:
    """As the parametrization of this name."""
    angle = (_square(u) + torch.finfo(u[0].dtype).tiny).sqrt()
    sinc = torch.sinc(angle / torch.pi)
    return [angle.cos(), *(part * sinc for part in u)]
