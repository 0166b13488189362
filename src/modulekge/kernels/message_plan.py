"""The edges of a graph in the orders in which the kernels of a GPU follow them, cut into pieces."""

from dataclasses import dataclass

import torch
from torch import Tensor

from modulekge.kernels.gather_sum import Lists, starts_of

_PIECE = 64  # edges of a target, rows of a sum, at a time
_RUN = 16  # edges of a message
_RUNS = 16  # of a source


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
    def of(cls, starts: Tensor, most: int) -> "Pieces":
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
    """The edges of a graph in the orders in which the kernels follow them, made once for a graph.

    A run is a part of the edges that carry one message; those of a source stand together, long ones first.
    """

    starts: Tensor  # of the edges of each target
    by_target: Pieces
    edge: Tensor  # each edge by target, then relation: its number in the order of messages
    source: Tensor
    relation: Tensor
    target: Tensor  # of each edge in the order of messages
    start: Tensor  # of each run, among them
    end: Tensor
    sender: Tensor  # source of each run
    moved_by: Tensor  # and its relation
    by_sender: Pieces  # of runs
    by_relation: Pieces
    of_relation: Tensor  # runs in the order of their relations
    edges_by_relation: Pieces
    edge_of_relation: Tensor  # each edge by relation: its number in the order of messages

    @classmethod
    def of(cls, source: Tensor, relation: Tensor, message: Lists, counts: tuple[int, int]) -> "Plan":
        """Order the edges of messages with these sources and relations."""
        assert message.starts is not None
        entities, relations = counts
        runs = Pieces.of(message.starts, _RUN)
        sender, shorter = source[runs.row.long()], _RUN - (runs.end - runs.start)
        order = (sender * (_RUN + 1) + shorter).argsort(stable=True)
        carried = runs.row.long()[order]
        each = torch.repeat_interleave(torch.arange(len(source), device=source.device), message.starts.diff())
        edge = (message.items * relations + relation[each]).argsort(stable=True)
        listed = Lists.of(relation[carried], relations)
        assert listed.starts is not None
        starts = starts_of(message.items, entities)
        return cls(
            starts,
            Pieces.of(starts, _PIECE),
            edge,
            source[each[edge]].int(),
            relation[each[edge]].int(),
            message.items.int(),
            runs.start[order],
            runs.end[order],
            source[carried].int(),
            relation[carried].int(),
            Pieces.of(starts_of(source[carried], entities), _RUNS),
            Pieces.of(listed.starts, _PIECE),
            listed.items.int(),
            Pieces.of(starts_of(relation[each], relations), _PIECE),
            relation[each].argsort(stable=True),
        )


@dataclass(frozen=True, eq=False)
class Sending:
    """Who sends to whom in a layer: edges that are left out, or start where nobody is, have number -1."""

    plan: Plan
    source: Tensor  # of each edge by target
    target: Tensor  # of each edge in the order of messages
    active: Tensor  # 1 for each entity that sends, else 0
    arrived: Tensor  # 1 for each entity with a state after the layer, else 0

    @classmethod
    def of(cls, plan: Plan, kept: Tensor, active: Tensor) -> "Sending":
        """Let active entities send along the edges that are kept, in the order of messages."""
        sent = kept[plan.edge] * active[plan.source.long()]
        source, target = plan.source.where(sent > 0, -1), plan.target.where(kept > 0, -1)
        before = torch.cat([sent.new_zeros(1), sent.cumsum(0)])
        arrived = (before[plan.starts].diff() > 0).float().maximum(active)
        return cls(plan, source, target, active, arrived)
