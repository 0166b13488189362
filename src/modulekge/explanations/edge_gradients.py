r"""$\partial f_r(h, t) / \partial w_{l,e}$ for each edge $e$ at each layer $l$ of a model of paths.

Every edge has the weight $w_{l,e} = 1$: its message and the degree of where it ends count so often. With
$S_v = \sum_e w_e m_e$, $Q_v = \sum_e w_e m_e^2$ and $n_v = 1 + \sum_e w_e$, the gradient of an edge into $v$
is $\langle \nabla_{S_v} f, m_e \rangle + \langle \nabla_{Q_v} f, m_e^2 \rangle + \partial f / \partial n_v$.

One question is asked, along those edges alone that lie on a path of at most $L$ edges from head to tail.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from modulekge.kernels.gather_sum import Incidence, Lists
from modulekge.models.path_layers import States
from modulekge.models.paths import Paths
from modulekge.shapes import Triples

Some = Int[Tensor, " some"]


@dataclass(frozen=True, eq=False)
class LayerGradients:
    """The edges that a layer can follow on the way from head to tail, ascending, and their gradients."""

    edges: Some
    gradients: Float[Tensor, " some"]


@dataclass(frozen=True, eq=False)
class _Layer:
    """What is followed at a layer: edges, where they start among the rows before, and end among its own."""

    edges: Some
    source: Incidence  # edges by rows before
    target: Incidence  # rows by edges
    rows: Int[Tensor, " v"]  # entities, ascending
    before: Int[Tensor, " v"]  # the place of each among the rows before; -1 where it is not


@dataclass(frozen=True, eq=False)
class _Arrived:
    """What arrived at a layer, of which gradients are taken: sums of powers, and degrees."""

    messages: list[Float[Tensor, "some b size n"]]
    sums: list[States]
    degrees: Float[Tensor, " v"]


@dataclass(frozen=True, eq=False)
class TracedQuestion:
    """A triple that a model of paths is asked about in the graph of some edges, inverse ones among them."""

    model: Paths
    edges: Triples
    triple: tuple[int, int, int]

    def score(self, without: Some) -> float:
        r"""$f_r(h, t)$ when the edges of these numbers are left out, which are given ascending."""
        with torch.no_grad():
            return float(self._follow(without)[0])

    @cached_property
    def gradients(self) -> list[LayerGradients]:
        """The gradients of the score by the weight of each edge, layer by layer."""
        with torch.enable_grad():
            score, arrived = self._follow(torch.zeros(0, dtype=torch.long))
        leaves = [leaf for each in arrived for leaf in (*each.sums, each.degrees)]
        found = iter(torch.autograd.grad(score, leaves, allow_unused=True, materialize_grads=True))
        gradients = []
        for layer, each in zip(self._layers, arrived, strict=True):
            ends, total = layer.target.columns.items, torch.zeros(len(layer.edges))
            for messages in each.messages:
                total += (messages * next(found).index_select(0, ends)).flatten(1).sum(1)
            gradients.append(LayerGradients(layer.edges, total + next(found)[ends]))
        return gradients

    @cached_property
    def _layers(self) -> list[_Layer]:
        head, _, tail = self.triple
        return list(_layers(self.edges, self.model.n_entities, head, tail, self.model.config.layers))

    @cached_property
    def _degrees(self) -> Float[Tensor, " e"]:
        return torch.bincount(self.edges[:, 2], minlength=self.model.n_entities).float() + 1

    def _follow(self, without: Some) -> tuple[Float[Tensor, ""], list[_Arrived]]:
        """Return the score, and what arrived at each layer where gradients are wanted."""
        model, (head, relation, _) = self.model, self.triple
        query = model.query[relation].detach().view(1, 1, model.message.size, model.k)
        lost = torch.bincount(self.edges[without, 2], minlength=model.n_entities)
        degrees, squares = self._degrees - lost, "std" in model.config.aggregation
        x, arrived = query, []
        for number, layer in enumerate(self._layers):
            starts = (layer.source @ x.flatten(1)).view(-1, *query.shape[1:])
            sent = model.sent(number, starts, self.edges[layer.edges, 1], relation)
            sent = sent.index_fill(0, _places(layer.edges, without), 0.0) if len(without) else sent
            powers = [sent, sent.square()] if squares else [sent]
            at_head = (layer.rows == head).view(-1, 1, 1, 1)
            sums = [
                (layer.target @ power.flatten(1)).view(-1, *query.shape[1:]) + at_head * query**p
                for p, power in enumerate(powers, 1)
            ]
            counts = degrees[layer.rows]
            if torch.is_grad_enabled():
                *leaves, leaf = (torch.zeros_like(part, requires_grad=True) for part in (*sums, counts))
                arrived.append(_Arrived([power.detach() for power in powers], leaves, leaf))
                sums = [part + each for part, each in zip(sums, leaves, strict=True)]
                counts = counts + leaf
            x = model.after(number, _moved(x, layer.before), sums, counts)
        reached = x if len(x) else torch.zeros_like(query)  # what no path reaches has the state 0
        return model.read(reached, relation)[0, 0], arrived


def _places(ascending: Some, wanted: Int[Tensor, " wanted"]) -> Int[Tensor, " _found"]:
    """Return where some numbers stand among others, as far as they do."""
    if len(ascending) == 0:
        return ascending
    places = torch.searchsorted(ascending, wanted).clamp(max=len(ascending) - 1)
    return places[ascending[places] == wanted]


def _layers(edges: Triples, n_entities: int, head: int, tail: int, count: int) -> Iterator[_Layer]:
    """Yield what each layer follows: what is near enough to the head by then, and to the tail from there."""
    sources, _, targets = (column.contiguous() for column in edges.unbind(1))
    there = _distances(head, sources, targets, n_entities, count)
    back = _distances(tail, targets, sources, n_entities, count)
    starts, ends = there[sources], back[targets]
    place = torch.full((n_entities,), -1)
    count_before = int(back[head] <= count)
    place[head] = count_before - 1
    for layer in range(1, count + 1):
        followed = ((starts < layer) & (ends <= count - layer)).nonzero()[:, 0]
        rows = ((there <= layer) & (back <= count - layer)).nonzero()[:, 0]
        before, place = place, torch.full((n_entities,), -1)
        place[rows] = torch.arange(len(rows))
        start, end = before[sources[followed]], place[targets[followed]]
        source = Incidence(Lists(start), Lists.of(start, count_before))
        target = Incidence(Lists.of(end, len(rows)), Lists(end))
        count_before = len(rows)
        yield _Layer(followed, source, target, rows, before[rows])


def _distances(
    origin: int, starts: Int[Tensor, " edges"], ends: Int[Tensor, " edges"], n_entities: int, most: int
) -> Int[Tensor, " e"]:
    """Return how many edges lead from an entity to each; beyond so many, one more than these."""
    distances = torch.full((n_entities,), most + 1)
    distances[origin] = 0
    for step in range(most):
        found = ends[distances[starts] == step]
        distances[found] = distances[found].clamp(max=step + 1)
    return distances


def _moved(x: States, places: Int[Tensor, " rows"]) -> Float[Tensor, "rows b size n"]:
    """Return the states at these places, 0 where the place is -1."""
    there = (places >= 0).nonzero()[:, 0]
    return x.new_zeros(len(places), *x.shape[1:]).index_copy(0, there, x.index_select(0, places[there]))
