"""The edges of a graph as messages need them: by where they start, by relation and by where they end."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from modulekge.kernels.gather_sum import Incidence, Lists, ranges, starts_of
from modulekge.kernels.message_plan import Plan
from modulekge.shapes import Ids, Triples


@dataclass(frozen=True, eq=False)
class Adjacency:
    r"""Edges $(u, p, v)$, inverse ones included; what $u$ sends by $p$ is one message for all $v$.

    ``left_out`` numbers, for each edge in the order of its message, what is left out together with it.
    """

    source: Incidence  # messages by entities
    relation: Incidence  # messages by relations
    target: Incidence  # entities by messages: where each arrives
    left_out: Int[Tensor, " edges"]
    by_target: Int[Tensor, " edges"]  # edges in the order of their targets, numbered in that of messages
    plan: Plan | None = None  # of the same edges for the kernels of a GPU, where there is one

    @classmethod
    def of(cls, questions: Triples, n_entities: int, n_relations: int, whole_pairs: bool) -> "Adjacency":
        """Sort edges; with one of them the same triple is left out, or all edges between its two ends."""
        key = (questions[:, 0] * n_relations + questions[:, 1]) * n_entities + questions[:, 2]
        heads, relations, tails = questions[key.argsort(stable=True)].unbind(1)
        sent, message = torch.unique_consecutive(heads * n_relations + relations, return_inverse=True)
        source, relation = sent // n_relations, sent % n_relations
        target = Incidence(Lists.of(tails, n_entities), Lists(tails, starts_of(message, len(sent))))
        by_target = target.rows.items
        target = replace(target, rows=replace(target.rows, items=message[by_target]))
        return cls(
            Incidence(Lists(source), Lists.of(source, n_entities)),
            Incidence(Lists(relation), Lists.of(relation, n_relations)),
            target,
            _left_out_groups(heads, relations, tails, n_entities, n_relations, whole_pairs),
            by_target,
        )

    @property
    def n_entities(self) -> int:
        """How many entities there are."""
        return len(_starts(self.target.rows)) - 1

    @property
    def n_edges(self) -> int:
        """How many edges there are."""
        return len(self.target.rows.items)

    @property
    def edges(self) -> Triples:
        """The edges $(u, p, v)$ themselves, in the order of their messages."""
        counts = _starts(self.target.columns).diff()
        message = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
        sent = self.source.rows.items[message], self.relation.rows.items[message]
        return torch.stack([*sent, self.target.columns.items], 1)

    @cached_property
    def degrees(self) -> Float[Tensor, " e"]:
        """How many edges end in each entity, without those that are left out."""
        starts, weights = _starts(self.target.rows), self.target.rows.weights
        if weights is None:
            return starts.diff().float()
        total: Tensor = torch.cat([starts.new_zeros(1), weights.long().cumsum(0)])
        counts: Tensor = total[starts].diff().float()
        return counts

    def to(self, device: torch.device) -> "Adjacency":
        """Return the same edges on a device."""
        if self.left_out.device == device:
            return self

        source, relation, target = (x.to(device) for x in (self.source, self.relation, self.target))
        plan = None
        if device.type == "cuda":
            counts = self.n_entities, len(_starts(self.relation.columns)) - 1
            plan = Plan.of(source.rows.items, relation.rows.items, target.columns, counts)
        return Adjacency(source, relation, target, self.left_out.to(device), self.by_target.to(device), plan)

    @property
    def kept(self) -> Float[Tensor, " edges"]:
        """1 for each edge that is not left out, else 0, in the order of messages."""
        weights = self.target.columns.weights
        return torch.ones(self.n_edges, device=self.left_out.device) if weights is None else weights

    def groups(self, heads: Ids, relations: Ids, tails: Ids) -> Int[Tensor, " _groups"]:
        """Return the numbers of what is left out together with these edges, as far as they are there."""
        source, relation = self.source.rows.items, self.relation.rows.items
        n_relations = len(_starts(self.relation.columns)) - 1
        asked, sent = heads * n_relations + relations, source * n_relations + relation
        message = torch.searchsorted(sent, asked).clamp(max=max(0, len(sent) - 1))
        places, owner = ranges(_starts(self.target.columns), message)
        there = (self.target.columns.items[places] == tails[owner]) & (sent[message] == asked)[owner]
        found: Tensor = self.left_out[places[there]].unique()
        return found

    @cached_property
    def n_groups(self) -> int:
        """How many numbers there are of what is left out together."""
        return int(self.left_out.max()) + 1 if len(self.left_out) else 0

    def outside(
        self, groups: Int[Tensor, " _some"], others: Bool[Tensor, " groups"] | None = None
    ) -> Bool[Tensor, " edges"]:
        """Mark the edges, in the order of messages, that are neither of these numbers nor of marked ones."""
        left = self.left_out.new_zeros(self.n_groups, dtype=torch.bool) if others is None else others
        return ~left.index_fill(0, groups, True)[self.left_out]

    def only(self, keep: Bool[Tensor, " edges"]) -> "Adjacency":
        """Return the graph of the edges that are marked, in the order of their messages."""
        weights = keep.float()
        rows = replace(self.target.rows, weights=weights[self.by_target])
        return replace(self, target=Incidence(rows, replace(self.target.columns, weights=weights)))

    def reached_from(self, entities: Ids) -> "tuple[Adjacency, Ids] | None":
        """Return the edges that start in some entities, and all where they start or end, ascending.

        In the result, sources are numbered as given and targets as returned. None, where these are so
        many of the edges that all of them are as quickly followed.
        """
        messages, sender = ranges(_starts(self.source.columns), entities)
        edges, message = ranges(_starts(self.target.columns), messages)
        if self.target.columns.weights is not None:
            kept = self.target.columns.weights[edges] > 0
            edges, message = edges[kept], message[kept]
        if len(edges) > self.n_edges // 4:
            return None
        found = self.target.columns.items[edges]
        rows = torch.cat([entities, found]).unique()
        target = torch.searchsorted(rows, found)
        by_target = target.argsort(stable=True)
        relation = self.relation.rows.items[messages]
        n_relations = len(_starts(self.relation.columns)) - 1
        part = Adjacency(
            Incidence(Lists(sender), Lists.of(sender, len(entities))),
            Incidence(Lists(relation), Lists.of(relation, n_relations)),
            Incidence(
                Lists(message[by_target], starts_of(target, len(rows))),
                Lists(target, starts_of(message, len(messages))),
            ),
            self.left_out[edges],
            by_target,
        )
        return part, rows


def _starts(lists: Lists) -> Int[Tensor, " _rows_plus_1"]:
    assert lists.starts is not None, "each row has one item here"
    return lists.starts


def _left_out_groups(
    heads: Ids, relations: Ids, tails: Ids, n_entities: int, n_relations: int, whole_pairs: bool
) -> Int[Tensor, " edges"]:
    """Number edges so that those that are left out together have the same number."""
    half = n_relations // 2
    if whole_pairs:
        first, second = torch.minimum(heads, tails), torch.maximum(heads, tails)
        return _numbered(first * n_entities + second)
    back = relations >= half
    first, second = torch.where(back, tails, heads), torch.where(back, heads, tails)
    return _numbered((first * half + relations % half) * n_entities + second)


def _numbered(keys: Int[Tensor, " edges"]) -> Int[Tensor, " edges"]:
    """Number keys in their order, equal ones alike."""
    number: Tensor = keys.unique(return_inverse=True)[1]
    return number
