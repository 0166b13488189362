r"""Sums of rows of a table by lists: the product of a matrix of zeros and ones with the table.

Each sum is taken in the order of its list, so that it has the same bits each time; the gradients are the
product with the transpose, whose lists lie beside. ``gather_sum_triton`` has the same for GPUs.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

Table = Float[Tensor, "_rows _width"]


@dataclass(frozen=True, eq=False)
class Lists:
    """Row $i$ has the columns ``items[starts[i] : starts[i + 1]]``; without starts, the one of its number.

    Items whose weight is 0 count as left out; without weights all count.
    """

    items: Int[Tensor, " _items"]
    starts: Int[Tensor, " _rows_plus_1"] | None = None
    weights: Float[Tensor, " _items"] | None = None

    def to(self, device: torch.device) -> "Lists":
        """Return the same lists on a device."""
        starts, weights = (None if x is None else x.to(device) for x in (self.starts, self.weights))
        return Lists(self.items.to(device), starts, weights)

    @classmethod
    def of(cls, rows: Int[Tensor, " _items"], count: int) -> "Lists":
        """Return, for each of so many rows, the places at which its number stands, ascending."""
        return cls(rows.argsort(stable=True), starts_of(rows, count))


@dataclass(frozen=True, eq=False)
class Incidence:
    """A matrix of zeros and ones: the columns of each row, and the rows of each column."""

    rows: Lists
    columns: Lists

    def __matmul__(self, table: Table) -> Table:
        """Return, for each row of the matrix, the sum of the rows of the table that it names."""
        found: Table = _Product.apply(table, self)  # type: ignore[no-untyped-call]
        return found

    def to(self, device: torch.device) -> "Incidence":
        """Return the same matrix on a device."""
        return Incidence(self.rows.to(device), self.columns.to(device))


class _Product(torch.autograd.Function):
    """The product with a table, and of gradients with the transpose."""

    @staticmethod
    def forward(ctx: Any, table: Table, matrix: Incidence) -> Table:
        ctx.matrix = matrix
        return gather_sum(table, matrix.rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Table, None]:
        return gather_sum(gradients[0].contiguous(), ctx.matrix.columns), None


def gather_sum(table: Table, lists: Lists) -> Table:
    r"""$y_i = \sum_{j \in L_i} x_j$."""
    if lists.starts is None:
        return table.index_select(0, lists.items)
    if len(lists.items) == 0:
        return table.new_zeros(len(lists.starts) - 1, table.shape[1])
    return F.embedding_bag(
        lists.items,
        table,
        lists.starts,
        mode="sum",
        include_last_offset=True,
        per_sample_weights=lists.weights,
    )


def starts_of(rows: Int[Tensor, " _items"], count: int) -> Int[Tensor, " _rows_plus_1"]:
    """Return where each of so many rows starts in a list that is sorted by them."""
    counts = torch.bincount(rows, minlength=count)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def ranges(
    starts: Int[Tensor, " _rows_plus_1"], rows: Int[Tensor, " _some"]
) -> tuple[Int[Tensor, " _items"], Int[Tensor, " _items"]]:
    """Return the places of the items of some rows, one row after another, and which of them each is of."""
    first = starts[rows]
    counts = starts[rows + 1] - first
    owner = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), counts)
    before = counts.cumsum(0) - counts
    return torch.arange(len(owner), device=rows.device) + (first - before)[owner], owner
