"""The entities in training: built of their tables, and the gradients by them brought back to the tables."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adagrad, Optimizer

from modulekge.algebra.algebra import ALGEBRAS
from modulekge.algebra.parametrizations import EXPONENTIAL, FREE, NORMALISED, ONE
from modulekge.algebra.scores import product
from modulekge.kernels import entities_compiled
from modulekge.machine import kernels
from modulekge.models.embedding import Embedding, Some
from modulekge.models.spec import Build, ModelSpec
from modulekge.shapes import Entities

EVEN = 64  # rows of a table for which products of matrices have fast kernels
_MANY = 4096  # gradients of rows, from which on PyTorch sorts those of embeddings


def _even(rows: int) -> int:
    return -(-rows // EVEN) * EVEN


class Tables(ABC):
    r"""Scalars and vectors of a model's entities, as $s_e \odot v_e$ span by span, there and back."""

    def __init__(self, model: Embedding) -> None:
        self._model, self._scalar, self._vector = model, model.entity_scalar, model.entity_vector

    def begin(self) -> None:  # noqa: B027
        """Begin an epoch as a process would that has only now read the tables."""

    @abstractmethod
    def build(self, span: slice) -> Entities:
        """Return the entities of a span; rows after them, if any, are zero and mean nothing."""

    @abstractmethod
    def pull(self, span: slice, gradients: Entities) -> None:
        """Take the gradients of the loss by the entities last built."""

    @abstractmethod
    def add(self, ids: Tensor, relations: Tensor, rows: Embedding) -> None:
        """Take further gradients, by a model of these entities and relations, after all spans are pulled."""

    def gather(self, ids: Tensor, relations: Tensor, rows: Embedding) -> Some:
        """Make a model of as many one of these; return by which rows it is asked for the relations."""
        for part in rows.parameters():
            part.grad = None
        self._look_up(ids, relations, rows)
        return self._model.part_rows(relations, rows)

    def _look_up(self, ids: Tensor, relations: Tensor, rows: Embedding) -> None:
        self._model.gather(ids, rows)
        self._model.gather_relations(relations, rows)

    def _relation_gradients(self, rows: Embedding) -> Iterator[tuple[Tensor, Tensor]]:
        """The tables of relations with gradients by rows of theirs; if those are the tables, none."""
        for whole, part in zip(self._model.relation_tables, rows.relation_tables, strict=True):
            if part is not whole and part.grad is not None and part.numel():
                yield whole, part.grad


class PlainTables(Tables):
    """Any row with any optimiser: autograd brings gradients to the ``grad`` of the tables."""

    def __init__(self, model: Embedding, build: Build | None = None) -> None:
        super().__init__(model)
        self._build = build or model.spec.entity

    def build(self, span: slice) -> Entities:
        """See :meth:`Tables.build`."""
        tables = (self._scalar, self._vector)
        self._leaves = [table[span].detach().requires_grad_() for table in tables]
        self._entities = self._build(*self._leaves)
        return self._entities.detach()

    def pull(self, span: slice, gradients: Entities) -> None:
        """See :meth:`Tables.pull`."""
        grads = torch.autograd.grad(self._entities, self._leaves, gradients, allow_unused=True)
        for table, grad in zip((self._scalar, self._vector), grads, strict=True):
            if grad is None or table.numel() == 0:
                continue
            if len(grad) == len(table):
                table.grad = grad.contiguous()  # fused optimisers take this for granted
            else:
                table.grad = torch.empty_like(table) if table.grad is None else table.grad
                table.grad[span] = grad
        del self._leaves, self._entities

    def add(self, ids: Tensor, relations: Tensor, rows: Embedding) -> None:
        """See :meth:`Tables.add`; entities that are held elsewhere add 0 to any row."""
        places, here = self._model.places(ids)
        for whole, part in zip(self._model.entity_tables, rows.entity_tables, strict=True):
            if part.grad is None or part.numel() == 0:
                continue
            if here is not None:
                part.grad.masked_fill_(~here.view(-1, *[1] * (part.dim() - 1)), 0)
            _add_rows_(gradients_of(whole), places, part.grad)
        for table, gradients in self._relation_gradients(rows):
            _add_rows_(gradients_of(table), self._model.relation_rows(relations), gradients)


class RowTables(PlainTables):
    r"""With Adagrad an entity without a gradient stays as it is, so only those of a batch are updated.

    $G_e \mathrel{+}= g_e^2$ and $x_e \mathrel{-}= \eta\, g_e / (\sqrt{G_e} + \epsilon)$ for each entity $e$
    of the batch once, with all its gradients added up; the optimiser finds none and leaves the tables alone.
    """

    def __init__(self, model: Embedding, optimizer: Optimizer) -> None:
        super().__init__(model)
        self._optimizer = optimizer

    @torch.no_grad()
    def add(self, ids: Tensor, relations: Tensor, rows: Embedding) -> None:
        """See :meth:`Tables.add`."""
        group = self._optimizer.param_groups[0]
        unique, places = torch.unique(ids, return_inverse=True)
        for table, part in zip(self._model.entity_tables, rows.entity_tables, strict=True):
            if part.grad is None or part.numel() == 0:
                continue
            gradients = part.grad.new_zeros(len(unique), *part.shape[1:]).index_add_(0, places, part.grad)
            memory = self._optimizer.state[table]["sum"]
            sums = memory.index_select(0, unique).addcmul_(gradients, gradients)
            memory.index_copy_(0, unique, sums)
            moved = gradients.div_(sums.sqrt_().add_(group["eps"]))
            table.index_copy_(0, unique, table.index_select(0, unique).sub_(moved, alpha=group["lr"]))
        for whole, of_relations in self._relation_gradients(rows):
            _add_rows_(gradients_of(whole), self._model.relation_rows(relations), of_relations)


class FusedTables(Tables):
    """Rows over R, C and H with Adagrad: one pass over the tables builds, one brings back and updates.

    The gradients by the tables are never written down; the optimiser finds none and leaves them alone. Where
    all entities are built at once, each update builds them for the next step; where they are scalars
    alone, they are their table, which moves into one with a few rows more. They are built in the ``dtype``
    of products of matrices, so that these find half the bytes where that is bfloat16.
    """

    def __init__(
        self, model: Embedding, optimizer: Optimizer, passes: Any, dtype: torch.dtype = torch.float32
    ) -> None:
        super().__init__(model)
        self._optimizer, self._passes, self._dtype, count = optimizer, passes, dtype, len(self._scalar)
        self._slots = torch.full((count,), -1, dtype=torch.int32, device=self._scalar.device)
        self._gradients: Tensor | None = None
        self._side = torch.cuda.Stream(self._scalar.device) if self._scalar.is_cuda else None
        self._size = len(model.spec.entity(self._scalar[:1].detach(), self._vector[:1].detach())[0])
        self._k, self._exponential = model.k, model.spec.vector.parametrization is EXPONENTIAL
        self._ready: Tensor | None = None
        self._alone = model.spec.vector.trivial and dtype == self._scalar.dtype
        if self._alone:
            self._ready = self._scalar.new_zeros(_even(count), self._size, self._k)
            self._ready[:count] = self._scalar.data
            self._scalar.data = self._ready[:count]

    @staticmethod
    def fit(spec: ModelSpec, optimizer: Optimizer) -> bool:
        """Whether there are passes for such rows."""
        s, v = spec.scalar, spec.vector
        return (
            isinstance(optimizer, Adagrad)
            and spec.score.join is product
            and s.parametrization in (FREE, ONE)
            and v.parametrization in (NORMALISED, EXPONENTIAL, ONE)
            and s.algebra in ALGEBRAS
            and v.algebra in ALGEBRAS
            and len(v.factors) == 1
        )

    def begin(self) -> None:
        """See :meth:`Tables.begin`; the last bit may be another where an update builds the entities."""
        if self._ready is not None and not self._alone:
            self._passes.build(self._scalar, self._vector, self._exponential, self._ready)

    def build(self, span: slice) -> Entities:
        """See :meth:`Tables.build`."""
        count = _even(span.stop - span.start)
        if self._ready is not None:
            return self._ready[span.start : span.start + count]
        out = self._scalar.new_empty(count, self._size, self._k, dtype=self._dtype)
        self._passes.build(self._scalar[span], self._vector[span], self._exponential, out)
        if span.stop - span.start == len(self._scalar):
            self._ready = out
        return out

    def pull(self, span: slice, gradients: Entities) -> None:
        """See :meth:`Tables.pull`."""
        count = len(self._scalar)
        if span.stop - span.start == count:
            self._gradients = gradients
            return
        if self._gradients is None:
            self._gradients = gradients.new_empty(count, *gradients.shape[1:])
        self._gradients[span] = gradients[: span.stop - span.start]

    def _look_up(self, ids: Tensor, relations: Tensor, rows: Embedding) -> None:
        model = self._model
        if model.workers.shards > 1 or rows.relation_scaling is model.relation_scaling:
            super()._look_up(ids, relations, rows)
            return
        entities = zip(model.entity_tables[:2], rows.entity_tables[:2], strict=True)
        moves = zip(model.relation_tables, rows.relation_tables, strict=True)
        self._passes.gather(ids, model.relation_rows(relations), (*entities, *moves))  # all in one launch

    def add(self, ids: Tensor, relations: Tensor, rows: Embedding) -> None:
        """See :meth:`Tables.add`; with these the tables are updated, those of relations meanwhile."""
        passes = self._passes
        group = self._optimizer.param_groups[0]
        how = group["lr"], group["eps"]
        with self._aside():
            for table, gradients in self._relation_gradients(rows):
                memory, relation_rows = self._memory(table), self._model.relation_rows(relations)
                passes.settle(relation_rows, gradients, table, memory, *how)
        places, here = self._model.places(ids)
        ids = places if here is None else places.masked_fill(~here, -1)
        passes.place(ids, self._slots)
        extra = tuple(gradients_of(part).contiguous() for part in (rows.entity_scalar, rows.entity_vector))
        passes.merge(ids, self._slots, extra)
        sums = [self._memory(table) for table in (self._scalar, self._vector)]
        passes.update(
            (self._scalar, self._vector), self._exponential, sums, extra, self._gradients, self._slots,
            *how, None if self._alone else self._ready,
        )  # fmt: skip
        passes.lift(ids, self._slots)
        self._gradients = None
        if self._side:
            torch.cuda.current_stream().wait_stream(self._side)

    def _memory(self, table: Tensor) -> Tensor:
        """$G$ of a table; of one without numbers, nothing."""
        return self._optimizer.state[table]["sum"] if table.numel() else table

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Do something beside what comes next."""
        if self._side:
            self._side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side):
            yield


def gradients_of(table: Tensor) -> Tensor:
    """Return the gradients by a table; 0 where none were worked out."""
    table.grad = torch.zeros_like(table) if table.grad is None else table.grad
    return table.grad


def _add_rows_(table: Tensor, rows: Tensor, gradients: Tensor) -> None:
    """Add gradients to rows of a table, in an order that is the same each time.

    A GPU adds the many gradients of one row one after another, or for embeddings some at a time.
    """
    if table.is_cuda and len(rows) > _MANY:
        parts = gradients.reshape(len(rows), -1), rows, len(table), -1, False
        table += torch.ops.aten.embedding_dense_backward(*parts).view_as(table)
    else:
        table.index_add_(0, rows, gradients)


def tables_of(model: Embedding, optimizer: Optimizer, build: Build | None, matmul: str) -> Tables:
    """Return the fastest way to and from the tables of this model, for products of this precision."""
    passes = kernels("modulekge.kernels.entities_triton", model.entity_scalar)
    if build and not model.entity_scalar.is_cuda and not model.spec.vector.trivial:
        passes = entities_compiled  # scalars alone are their entities, and PyTorch's own Adagrad is one pass
    one = model.workers.copies == 1  # where there are more, gradients are added up before an update
    if one and passes and FusedTables.fit(model.spec, optimizer):
        half = matmul == "bfloat16" and model.spec.score.bilinear
        return FusedTables(model, optimizer, passes, torch.bfloat16 if half else torch.float32)
    return PlainTables(model, build)
