"""The one model of this library; what it is, its row says."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from modulekge.algebra.groups import Group
from modulekge.algebra.norms import N
from modulekge.errors import ConfigError
from modulekge.models.model import Model
from modulekge.models.scorer import Scorer, batch_size
from modulekge.models.spec import Build, ModelSpec
from modulekge.shapes import Entities, Ids, Queries, Scores
from modulekge.workers import ALONE, Workers

Some = Ids | slice  # rows of a table
_DRAWN = 1 << 16  # rows at a time
_NUMBERS = 1 << 24  # of queries of many entities at once
_KEPT = 1 << 26  # of them from one batch to the next


def take(table: Tensor, rows: Some) -> Tensor:
    """Return rows of a table; those of a slice are not copied."""
    return table[rows] if isinstance(rows, slice) else table.index_select(0, rows)


class Embedding(Model):
    r"""Score of $(h, r, t)$: the row's score of $T_{s_r}(s_h) \odot T_{v_r}(v_h)$ with $s_t \odot v_t$.

    Everything above sees only :meth:`queries` against the table :meth:`entities`. Where several processes
    hold the entities between them, the tables have the rows ``held`` here: :meth:`queries` takes all
    entities by their ids and has the rows of others sent, :meth:`entities` and what it is scored with are
    those held here.
    """

    def __init__(
        self,
        spec: ModelSpec,
        n_entities: int,
        n_relations: int,
        k: int,
        tied: bool = False,
        bias: bool = False,
        workers: Workers = ALONE,
    ) -> None:
        """Make tables for ``n_relations`` with reciprocals; ``tied`` ones are adjoints of the first half."""
        super().__init__()
        if tied:
            spec.check_tieable()
        if n_entities < workers.shards:
            raise ConfigError(f"{n_entities} entities are too few for {workers.shards} processes; use fewer")
        self.spec, self.k, self.tied = spec, k, tied
        self.workers, self.n_entities, self.held = workers, n_entities, workers.rows(n_entities)
        n_entities = self.held.stop - self.held.start
        n_relations = n_relations // 2 if tied else n_relations

        def table(rows: int, group: Group) -> nn.Parameter:
            return nn.Parameter(torch.empty(rows, group.width, k))

        self.entity_scalar = table(n_entities, spec.scalar)
        self.entity_vector = table(n_entities, spec.vector)
        self.relation_scaling = table(n_relations, spec.scaling.group)
        self.relation_rotation = table(n_relations, spec.rotation.group)
        self.entity_bias = nn.Parameter(torch.zeros(n_entities if bias else 0))
        self.score_weights = nn.Parameter(torch.tensor(spec.score.weights, dtype=torch.float32))

    @torch.no_grad()
    def draw(self, generator: Generator, scalar_scale: float, vector_scale: float) -> "Embedding":
        """Start from random numbers: free elements at one scale, parametrizations of unit ones at another.

        Every process draws the rows of all, some at a time, so that how many there are makes no difference.
        """
        scales = {"free": scalar_scale, "unit": vector_scale}
        for table, group, held in (
            (self.entity_scalar, self.spec.scalar, self.held),
            (self.entity_vector, self.spec.vector, self.held),
            (self.relation_scaling, self.spec.scaling.group, None),
            (self.relation_rotation, self.spec.rotation.group, None),
        ):
            count, first = (self.n_entities, held.start) if held else (len(table), 0)
            for start in range(0, count, _DRAWN):
                rows = min(_DRAWN, count - start)
                numbers = group.parametrization.draw((rows, *table.shape[1:]), generator)
                low, high = max(start, first), min(start + rows, first + len(table))
                if low < high:
                    part = numbers[low - start : high - start]
                    table[low - first : high - first] = part * scales.get(group.parametrization.kind, 1.0)
        return self

    def part(self, count: int, relations: int = 0, bias: bool = False) -> "Embedding":
        """Return a model of so many entities and relations, yet unnamed, in this process.

        All else, and without a number all relations, it shares with this one.
        """
        bias = bias and self.entity_bias.numel() > 0
        part = Embedding(self.spec, count, relations * (2 if self.tied else 1), self.k, self.tied, bias)
        part.to(self.entity_scalar)
        if relations == 0:
            part.relation_scaling, part.relation_rotation = self.relation_tables
        part.score_weights = self.score_weights
        return part

    @torch.no_grad()
    def gather(self, ids: Ids, part: "Embedding") -> None:
        """Make a part of as many entities one of these, whoever holds them."""
        pairs = [pair for pair in zip(self.entity_tables, part.entity_tables, strict=True) if pair[1].numel()]
        places, here = self.places(ids)
        if here is None:
            for table, few in pairs:
                torch.index_select(table, 0, ids, out=few)
            return
        found = [table.index_select(0, places) for table, _ in pairs]
        sums = self.workers.sum(*(x.masked_fill_(~here.view(-1, *[1] * (x.dim() - 1)), 0) for x in found))
        for (_, few), rows in zip(pairs, sums, strict=True):
            few.copy_(rows)

    @torch.no_grad()
    def gather_relations(self, relations: Ids, part: "Embedding") -> None:
        """Make a part of as many relations one of these; one that shares all of them has them already."""
        for table, few in zip(self.relation_tables, part.relation_tables, strict=True):
            if few is not table:
                torch.index_select(table, 0, self.relation_rows(relations), out=few)

    def part_rows(self, relations: Ids, part: "Embedding") -> Some:
        """Return by which rows such a part is asked for these relations."""
        if part.relation_scaling is self.relation_scaling:
            return relations
        count = len(relations)
        if not self.tied:
            return slice(count)
        adjoint = relations >= len(self.relation_scaling)
        return torch.arange(count, device=relations.device) + count * adjoint

    def places(self, ids: Ids) -> tuple[Ids, Bool[Tensor, " b"] | None]:
        """Return the row of each entity in the tables here, and which are: the others get any row.

        Where all rows are held here, the second is None.
        """
        if self.workers.shards == 1:
            return ids, None
        places = ids - self.held.start
        inside = places.clamp(0, len(self.entity_scalar) - 1)
        return inside, inside == places

    @property
    def entity_tables(self) -> tuple[nn.Parameter, nn.Parameter, nn.Parameter]:
        """The tables with a row for each entity that is held here."""
        return self.entity_scalar, self.entity_vector, self.entity_bias

    @property
    def relation_tables(self) -> tuple[nn.Parameter, nn.Parameter]:
        """The tables with a row for each relation."""
        return self.relation_scaling, self.relation_rotation

    def relation_rows(self, relations: Ids) -> Ids:
        """Return the row of each relation in its tables; a tied one has that of which it is the adjoint."""
        return relations % len(self.relation_scaling) if self.tied else relations

    def entities(self, rows: Some = slice(None), build: Build | None = None) -> Entities:
        r"""$s_e \odot v_e$ of every entity, or of some; ``build`` is a faster form of the row's own."""
        return (build or self.spec.entity)(take(self.entity_scalar, rows), take(self.entity_vector, rows))

    def queries(self, heads: Some, relations: Some) -> Queries:
        r"""$T_{s_r}(s_h) \odot T_{v_r}(v_h)$ of each (head, relation)."""
        if self.workers.shards > 1 and not isinstance(relations, slice):
            part = self.part(len(relations))
            self.gather(
                torch.arange(self.n_entities, device=relations.device)[heads]
                if isinstance(heads, slice)
                else heads,
                part,
            )
            return part.queries(slice(None), relations)
        scaling, rotation = (self._of_relations(table, relations) for table in self.relation_tables)
        adjoint = None
        if self.tied and not isinstance(relations, slice):
            adjoint = relations >= len(self.relation_scaling)
        scalar, vector = take(self.entity_scalar, heads), take(self.entity_vector, heads)
        return self.spec.query(scalar, vector, scaling, rotation, adjoint)

    def likeness(self, rows: Some, entities: Entities) -> Scores:
        """How alike entities are: the cosine where the score is a product, else the score itself, unmoved."""
        queries = self.spec.unmoved(take(self.entity_scalar, rows), take(self.entity_vector, rows))
        if self.spec.score.bilinear:
            return F.normalize(queries.flatten(1)) @ F.normalize(entities.flatten(1)).T
        return self.spec.score.all_pairs(queries, entities, self.score_weights)

    def queries_through(self, heads: Some, first: Ids, second: Ids) -> Queries:
        """Return each head moved by its first relation and then by its second; not by reciprocal ones."""
        moves = [(self.relation_scaling[rows], self.relation_rotation[rows]) for rows in (first, second)]
        scalar, vector = take(self.entity_scalar, heads), take(self.entity_vector, heads)
        return self.spec.query_through(scalar, vector, moves)

    def _of_relations(self, table: Tensor, relations: Some) -> Tensor:
        return take(table, relations if isinstance(relations, slice) else self.relation_rows(relations))

    def scores(self, queries: Queries, entities: Entities, rows: Int[Tensor, " e"] | None = None) -> Scores:
        """Every query against every entity of the table, or of these ``rows`` of it."""
        scores = self.spec.score.all_pairs(queries, entities, self.score_weights)
        if len(self.entity_bias) == 0:
            return scores
        return scores + (self.entity_bias if rows is None else self.entity_bias[rows])

    def scores_each(
        self, queries: Queries, rows: Int[Tensor, "b k"], build: Build | None = None
    ) -> Float[Tensor, "b k"]:
        """Every query against the entities of its own row."""
        made = not self.spec.vector.trivial  # else they are their table
        if made and rows.numel() < len(self.entity_scalar):  # make no more of them than are asked for
            entities, places = self.entities(rows.flatten()), torch.arange(rows.numel(), device=rows.device)
            places = places.view_as(rows)
        else:
            entities, places = self.entities(build=build), rows
        scores = self.spec.score.each(queries, entities, places, self.score_weights)
        return scores if len(self.entity_bias) == 0 else scores + self.entity_bias[rows]

    def relation_scores(self, heads: Some, tails: Some) -> Float[Tensor, "b r"]:
        r"""$f_r(h, t) = \sum_{ij} s_{r,i} v_{r,j} \langle T_{e_i}(s_h) \odot T_{e_j}(v_h), t \rangle$.

        An inner product is linear in $s_r$ and in $v_r$, so this is one product of a matrix with the
        table of the $s_r \otimes v_r$.
        """
        spec = self.spec
        s = spec.scalar.point(take(self.entity_scalar, heads))
        v = spec.vector.point(take(self.entity_vector, heads))
        return spec.relation_parts(s, v, self.entities(tails)).flatten(1) @ (
            spec.relation_table(self.relation_scaling, self.relation_rotation).flatten(1).T
        )

    @property
    def device(self) -> torch.device:
        """See :attr:`Model.device`."""
        return self.entity_scalar.device

    @property
    def signature(self) -> object:
        """See :attr:`Model.signature`."""
        return self.spec.words(), self.tied

    @property
    def width(self) -> int:
        """See :attr:`Model.width`."""
        return self.spec.query_size * self.k

    @property
    def entity_numbers(self) -> int:
        """See :attr:`Model.entity_numbers`."""
        return sum(group.width for group in self.spec.entity_groups) * self.k

    def samples(self) -> Queries:
        """See :meth:`Model.samples`; an entity moved by every relation."""
        relations = torch.arange(len(self.relation_scaling), device=self.device)
        return self.queries(torch.zeros_like(relations), relations)

    def scorer(self) -> "EmbeddingScorer":
        """Return what answers questions with the weights as they are now."""
        return EmbeddingScorer(self)

    def forward(self, heads: Ids, relations: Ids) -> Scores:
        """Return the scores of all tails."""
        return self.scores(self.queries(heads, relations), self.entities())

    def entity_norms(self, rows: Some) -> Float[Tensor, "b n"]:
        r"""$N(s_e \odot v_e) = N(s_e)$, since $v_e$ has modulus 1."""
        group, numbers = self.spec.scalar, take(self.entity_scalar, rows)
        if group.parametrization.kind == "one":
            return numbers.new_ones(len(numbers), self.k)
        return N(group.point(numbers))

    def head_norms(self, rows: Some, ids: Some) -> Float[Tensor, "b n"]:
        r"""$N(s_h)$, or $N(s_h + b_r)$ where a relation adds $b_r$ before it multiplies."""
        action = self.spec.scaling
        if action.operation.added is None:
            return self.entity_norms(rows)
        moves = action.group.point(self._of_relations(self.relation_scaling, ids))
        return N(self.spec.scalar.point(take(self.entity_scalar, rows)) + action.operation.added(moves))

    def relation_norms(self, ids: Some) -> Float[Tensor, "b n"]:
        r"""$N(s_r \odot v_r) = N(s_r)$, with $r$ read as the module element $s_r \odot v_r$.

        Where $s_r$ is a unit, this is exactly 1, without a gradient of rounding errors.
        """
        action, numbers = self.spec.scaling, self._of_relations(self.relation_scaling, ids)
        if action.group.parametrization.kind in ("one", "unit"):
            return numbers.new_ones(len(numbers), self.k)
        return N(action.operation.measured(action.group.point(numbers)))


class EmbeddingScorer(Scorer):
    """The scores of an embedding as it is now; its entities are built once."""

    def __init__(self, model: Embedding, at_once: int = _NUMBERS, kept: int = _KEPT) -> None:
        """Make queries of ``at_once`` numbers at a time; if they are few, keep those of a relation."""
        self.model, self.workers, self._at_once, self._most_kept = model, model.workers, at_once, kept
        with torch.no_grad():
            self.table = model.entities()
        self.name, self.n_entities, self.device = model.spec.name, model.n_entities, self.table.device
        self.n_relations = len(model.relation_scaling) * (2 if model.tied else 1)  # tied ones are there twice
        self._asked: tuple[int, Queries] | None = None  # every entity with one relation, if they are few

    @property
    def held(self) -> slice:
        """The rows of the table."""
        return self.model.held

    @torch.no_grad()
    def scores(self, heads: Ids, relations: Ids) -> Scores:
        """The moved heads against the table."""
        return self.model.scores(self.model.queries(heads, relations), self.table)

    @torch.no_grad()
    def scores_of(self, heads: Ids, relations: Ids, candidates: Int[Tensor, "b k"]) -> Float[Tensor, "b k"]:
        """The moved heads against rows of the table."""
        return self.model.scores_each(self.model.queries(heads, relations), candidates)

    @torch.no_grad()
    def inverse_scores(self, heads: Ids, relation: int) -> Scores:
        """Every entity moved by the inverse relation, some at a time, against the heads."""
        few = self.table[heads]
        return torch.cat([self.model.scores(q, few, heads) for q in self._moved(relation)]).T

    @torch.no_grad()
    def best_scores(self, relation: int) -> Float[Tensor, " e"]:
        """Every entity moved by the relation, some at a time, against the table."""
        size = min(batch_size(len(self.table), self.device), self._at_once // self.table[0].numel())
        return torch.cat([self.model.scores(q, self.table).amax(1) for q in self._queries(relation, size)])

    def _moved(self, relation: int) -> list[Queries] | Iterator[Queries]:
        """Every entity moved by the inverse of a relation; where they are not too many, kept."""
        inverse = int(self.inverse(torch.tensor([relation])))
        parts = self._queries(inverse, self._at_once // self.table[0].numel())
        if self.table.numel() > self._most_kept:
            return parts
        if self._asked is None or self._asked[0] != inverse:
            self._asked = inverse, torch.cat(list(parts))
        return [self._asked[1]]

    def _queries(self, relation: int, size: int) -> Iterator[Queries]:
        for start in range(0, self.n_entities, max(1, size)):
            some = slice(start, min(start + max(1, size), self.n_entities))
            asked = torch.full((some.stop - some.start,), relation, device=self.device)
            yield self.model.queries(some, asked)
