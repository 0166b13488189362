r"""Paths: a row's action along the edges of the graph, added up over all paths from the head.

For a question $(h, r)$ with the boundary $B_v = q_r$ if $v = h$, else $0$, and $L$ layers:

$X_0 = B$, a message $m_e = T_{g_{l,p}(r)}(X_{l-1,u})$ for each edge $e = (u, p, v)$, with the element
$g_{l,p}(r) = A_{l,p} q_r + a_{l,p}$; $M_v$ the mean and deviation of the messages into $v$ and of $B_v$;

$X_{l,v} = X_{l-1,v} + \mathrm{relu}(\mathrm{norm}(C_1 M_v + c_v C_2 M_v + C_3 M_v / c_v + D X_{l-1,v} + b))$
where a path has arrived, else $0$; $c_v$ is the logarithm of the degree beside its mean;
$f_r(h, v) = \mathrm{MLP}(X_{L,v}, q_r)$ and, with a prior, $+ \langle z_v, w_r \rangle$, where $z_v$ is
the mean of learned $z_p$ over the edges $(u, p, v)$: what speaks for a candidate whoever asks. It is the
Bellman-Ford iteration of NBFNet (Zhu et al. 2021).

No number belongs to an entity: whoever is in the graph can be asked about.
"""

from collections.abc import Callable
from functools import cached_property
from math import sqrt

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from modulekge.config import PathsConfig
from modulekge.kernels.message_plan import Plan, Sending
from modulekge.machine import can_compile, compiled, keep_memory, kernels
from modulekge.models.adjacency import Adjacency
from modulekge.models.messages import Message
from modulekge.models.model import Model
from modulekge.models.path_layers import States, log_degree_of, perceptron, reached, update_reached
from modulekge.models.scorer import Scorer
from modulekge.models.spec import ModelSpec
from modulekge.shapes import Ids, Scores
from modulekge.workers import ALONE, Workers

_HIDDEN = 64  # of the last perceptron
_PRIOR_SCALE = 0.3  # of the numbers with which a prior starts
MOST_NUMBERS = 1 << 22  # of messages at a time on a CPU: as many as its caches help with
_MOST_ON_GPU = 1 << 32
_ON_GPU, _PADDED = 256, 64  # questions at a time, and to a multiple of what they are filled up
_ASKED = 32  # questions at a time on a CPU: few, so that whoever waits sees them answered


class Paths(Model):
    """The weights of the layers, and the graph along whose edges they send messages."""

    def __init__(
        self,
        spec: ModelSpec,
        n_entities: int,
        n_relations: int,
        config: PathsConfig,
        edges: Callable[[], Adjacency],
        workers: Workers = ALONE,
    ) -> None:
        """Make weights for ``n_relations`` with inverses, which are asked for and followed alike.

        ``edges`` makes the graph when it is first needed: reading a run takes no time for it.
        """
        super().__init__()
        self.spec, self.config, self.workers, self.message = spec, config, workers, Message(spec)
        self.n_entities, self._edges = n_entities, edges
        self.held = slice(0, self.n_entities)
        self.n_relations, self.k = n_relations, max(1, config.d // self.message.size)
        layers, d, parts = config.layers, self.d, len(config.aggregation.split("-"))

        def table(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape))

        named = self.message.width * self.k
        self.query = table(n_relations, d)
        self.relation_weight = table(layers, n_relations * named, d)
        self.relation_bias = table(layers, n_relations * named)
        self.aggregate = table(layers, 3 * d, parts * d)
        self.own = table(layers, d, d)
        self.bias = table(layers, d)
        self.norm_weight = table(layers, d)
        self.norm_bias = table(layers, d)
        self.hidden = table(_HIDDEN, 2 * d)
        self.hidden_bias = table(_HIDDEN)
        self.output = table(1, _HIDDEN)
        kinds = n_relations if config.prior == "relations" else 0
        self.prior_arriving, self.prior_asked = table(kinds, d), table(kinds, d)
        self.log_degree = nn.Parameter(torch.empty(1), requires_grad=False)

    @cached_property
    def adjacency(self) -> Adjacency:
        """The edges along which messages are sent."""
        return self._edges()

    @property
    def d(self) -> int:
        """Numbers of a state."""
        return self.message.size * self.k

    @property
    def width(self) -> int:
        """See :attr:`Model.width`."""
        return self.d

    @property
    def entity_numbers(self) -> int:
        """None: what is known of an entity are its edges."""
        return 0

    @property
    def device(self) -> torch.device:
        """See :attr:`Model.device`."""
        return self.query.device

    @property
    def signature(self) -> object:
        """See :attr:`Model.signature`."""
        return self.spec.words(), self.config

    @torch.no_grad()
    def draw(self, generator: Generator, scalar_scale: float = 1.0, vector_scale: float = 1.0) -> "Paths":
        """Start from random numbers, those of a map at the scale of what it reads."""
        for name, table in self.named_parameters():
            if name == "query":
                table.normal_(generator=generator)
            elif name.startswith("prior"):
                table.normal_(std=_PRIOR_SCALE, generator=generator)
            elif name == "norm_weight":
                table.fill_(1.0)
            elif name == "norm_bias":
                table.zero_()
            elif name == "log_degree":
                table.fill_(log_degree_of(self.adjacency.degrees + 1).mean())
            else:
                reads = {"relation_bias": self.d, "bias": self.d, "hidden_bias": 2 * self.d}
                bound = 1 / sqrt(reads.get(name, table.shape[-1]))
                table.uniform_(-bound, bound, generator=generator)
        return self

    def along(self, n_entities: int, edges: Callable[[], Adjacency]) -> "Paths":
        """Return the same weights, shared, on another graph with the same relations."""
        other = Paths(self.spec, n_entities, self.n_relations, self.config, edges, self.workers)
        for name, table in self.named_parameters():
            setattr(other, name, table)
        return other

    @property
    def most_questions(self) -> int:
        """How many questions to ask at once, that the messages of a layer may lie in memory."""
        messages = max(1, len(self.adjacency.source.rows.items), self.n_entities)
        return max(1, (_MOST_ON_GPU if self.device.type == "cuda" else MOST_NUMBERS) // (messages * self.d))

    def scorer(self) -> "PathScorer":
        """See :meth:`Model.scorer`."""
        return PathScorer(self)

    def samples(self) -> Tensor:
        """See :meth:`Model.samples`."""
        return self._elements(0, self.query[:1].view(1, self.message.size, self.k))

    def forward(
        self,
        heads: Ids,
        relations: Ids,
        adjacency: Adjacency | None = None,
        arriving: Float[Tensor, "e d"] | None = None,
    ) -> Scores:
        """Return the score of every entity, by paths in the graph or in a part of it.

        What speaks for candidates is worked out, where it is not given as :meth:`arriving` there.
        """
        adjacency = self.adjacency if adjacency is None else adjacency
        query = self.query[relations].view(-1, self.message.size, self.k)
        entities, x = self._states(heads, query, adjacency)
        hidden = self._hidden(query.flatten(1))
        near = self._fast(perceptron, adjacency)(x, hidden, self.hidden[:, : self.d], self.output)
        prior = self.prior(relations, adjacency, arriving)
        if adjacency.plan is not None:
            return near + prior
        far = F.linear(hidden.relu(), self.output)  # of those that no path reaches: of all the same bits
        near = torch.where(reached(x), near, far)
        return far.expand(-1, adjacency.n_entities).index_copy(1, entities, near) + prior

    def prior(
        self, relations: Ids, adjacency: Adjacency, arriving: Float[Tensor, "e d"] | None = None
    ) -> Scores | float:
        r"""$\langle z_v, w_r \rangle$: how far what arrives at an entity makes it an answer."""
        arriving = self.arriving(adjacency) if arriving is None else arriving
        return 0.0 if arriving is None else F.linear(self.prior_asked[relations], arriving)

    def arriving(self, adjacency: Adjacency) -> Float[Tensor, "e d"] | None:
        """$z_v$ of every entity, which is the same for all questions; None without a prior."""
        if self.prior_asked.numel() == 0:
            return None
        if adjacency.plan is not None and (gpu := kernels("modulekge.kernels.messages_triton", self.query)):
            arriving = gpu.Arriving.apply(self.prior_arriving, adjacency.plan, adjacency.kept)
        else:
            arriving = adjacency.target @ (adjacency.relation @ self.prior_arriving)
        found: Tensor = arriving / adjacency.degrees.clamp(min=1)[:, None]
        return found

    def _states(
        self, heads: Ids, query: Float[Tensor, "b size n"], adjacency: Adjacency
    ) -> tuple[Int[Tensor, " v"], States]:
        """Return the entities that are reached from any of the heads, ascending, and their states."""
        every = torch.arange(adjacency.n_entities, device=heads.device)
        if adjacency.plan is not None and self.message.products:
            return every, self._dense_states(heads, query, adjacency, adjacency.plan)
        degrees = adjacency.degrees + 1
        entities, places = heads.unique(return_inverse=True)
        x = _at_heads(query, places, len(entities))
        for layer in range(self.config.layers):
            found = adjacency.reached_from(entities) if len(entities) < len(every) else None
            if found is None:
                x, entities, found = _expanded(x, entities, every), every, (adjacency, every)
            part, rows = found
            sums = self._sums(layer, x, query, part)
            here = torch.searchsorted(rows, heads.contiguous()), torch.arange(len(heads), device=heads.device)
            sums = [total.index_put(here, query**power, True) for power, total in enumerate(sums, 1)]
            x, entities = self.after(layer, _expanded(x, entities, rows), sums, degrees[rows]), rows
        return entities, x

    def _dense_states(
        self, heads: Ids, query: Float[Tensor, "b size n"], adjacency: Adjacency, plan: Plan
    ) -> States:
        """Return the states of all entities, by the kernels of a GPU; what is not reached sends nothing."""
        gpu = kernels("modulekge.kernels.path_layer_triton", self.query)
        degrees, kept = adjacency.degrees + 1, adjacency.kept
        counts = torch.ones_like(degrees) if self.config.aggregation == "sum" else degrees
        scale, squares = log_degree_of(degrees) / self.log_degree, "std" in self.config.aggregation
        shape = gpu.Shape(self.message.products, squares, counts, scale)
        active = torch.zeros(adjacency.n_entities, device=heads.device).index_fill(0, heads, 1.0)
        low = query.bfloat16()
        x = _at_heads(low, heads, adjacency.n_entities)
        for layer in range(self.config.layers):
            sending = Sending.of(plan, kept, active)
            elements = self._elements(layer, query).bfloat16()
            x = gpu.Layer.apply(x, elements, low, *self._weights(layer), heads, sending, shape)
            active = sending.arrived
        return x

    def _fast(self, function: Callable[..., Tensor], adjacency: Adjacency) -> Callable[..., Tensor]:
        """Return a function as it is, or compiled where all entities take part each time."""
        dense = adjacency.plan is not None and self.message.products and can_compile(self.device.type)
        return compiled(function, dynamic=False) if dense else function

    def _layer(self, layer: int) -> tuple[bool | Tensor, ...]:
        """What a layer's update takes: whether to sum, the mean log-degree, its weights."""
        return self.config.aggregation == "sum", self.log_degree, *self._weights(layer)

    def _weights(self, layer: int) -> tuple[Tensor, ...]:
        tables = self.aggregate, self.own, self.bias, self.norm_weight, self.norm_bias
        return tuple(table[layer] for table in tables)

    def _hidden(self, query: Float[Tensor, "b d"]) -> Float[Tensor, "b hidden"]:
        """What the perceptron reads of the query."""
        return F.linear(query, self.hidden[:, self.d :], self.hidden_bias)

    def sent(
        self, layer: int, x: Float[Tensor, "m b size n"], relations: Int[Tensor, " m"], relation: int
    ) -> Float[Tensor, "m b size n"]:
        """Return the messages of single edges, from the states they start in, for one relation asked."""
        query = self.query[relation].view(1, self.message.size, self.k)
        return self.message.move(x, self._elements(layer, query).index_select(0, relations))

    def after(self, layer: int, x: States, sums: list[States], degrees: Float[Tensor, " v"]) -> States:
        """Return the states after a layer, of those before it and the sums of what arrived."""
        return update_reached(x, sums, degrees, *self._layer(layer))

    def read(self, x: States, relation: int) -> Scores:
        """Return the scores of states, for one relation asked."""
        hidden = self._hidden(self.query[relation][None])
        return perceptron(x, hidden, self.hidden[:, : self.d], self.output)

    def _elements(self, layer: int, query: Float[Tensor, "b size n"]) -> Float[Tensor, "r b w n"]:
        """$g_{l,p}(r)$ of every relation, for each question."""
        numbers = F.linear(query.flatten(1), self.relation_weight[layer], self.relation_bias[layer])
        numbers = numbers.view(len(query), self.n_relations, self.message.width, self.k)
        return self.message.elements(numbers.transpose(0, 1).contiguous())

    def _sums(
        self, layer: int, x: States, query: Float[Tensor, "b size n"], edges: Adjacency
    ) -> list[Float[Tensor, "rows b size n"]]:
        """Return the sums of the messages into each entity and, where these are asked for, of squares."""
        elements = self._elements(layer, query)
        sources = (edges.source @ x.flatten(1)).view(-1, *x.shape[1:])
        moves = (edges.relation @ elements.flatten(1)).view(-1, *elements.shape[1:])
        messages = self.message.move(sources, moves).flatten(1)
        powers = [messages, messages.square()] if "std" in self.config.aggregation else [messages]
        return [(edges.target @ power).view(-1, *x.shape[1:]) for power in powers]


def _at_heads(query: Float[Tensor, "b size n"], places: Ids, count: int) -> States:
    """$X_0$: the query where the head is, else 0."""
    each = torch.arange(len(query), device=query.device)
    return query.new_zeros(count, *query.shape).index_put((places, each), query)


def _expanded(
    x: States, entities: Int[Tensor, " v"], rows: Int[Tensor, " rows"]
) -> Float[Tensor, "rows b size n"]:
    """Return states among those of more entities, which are 0."""
    if len(entities) == len(rows):
        return x
    return x.new_zeros(len(rows), *x.shape[1:]).index_copy(0, torch.searchsorted(rows, entities), x)


class PathScorer(Scorer):
    """The scores by all paths from the head; nothing is kept from one question to the next."""

    def __init__(self, model: Paths) -> None:
        self.model, self.workers, self.name = model, model.workers, model.spec.name
        self.n_entities, self.n_relations, self.device = model.n_entities, model.n_relations, model.device
        self.adjacency = model.adjacency.to(model.device)
        if self.device.type == "cpu":
            keep_memory()  # of one layer's messages for the next

    @property
    def cost(self) -> int:
        """A message costs as much as a score; a GPU has done with them as soon."""
        messages = self.model.config.layers * len(self.adjacency.target.rows.items)
        return self.n_entities if self.device.type == "cuda" else max(self.n_entities, messages)

    @property
    def cost_of_one(self) -> int:
        """As much as all: one candidate takes the messages of its whole question."""
        return self.cost

    @property
    def at_once(self) -> int:
        """As many as there is memory for; a GPU is busy with fewer."""
        most = self.model.most_questions
        return min(most, _ON_GPU) if self.device.type == "cuda" else min(max(most, _ASKED), super().at_once)

    @torch.no_grad()
    def scores(self, heads: Ids, relations: Ids) -> Scores:
        """Some questions at a time, as memory for messages allows."""
        size, count = min(self.at_once, self.model.most_questions), len(heads)
        if self.device.type == "cuda":  # loops are compiled for few sizes
            heads, relations = (F.pad(x, (0, -count % _PADDED), value=0) for x in (heads, relations))
        parts, arriving = zip(heads.split(size), relations.split(size), strict=True), None
        if len(heads) > size:  # worked out once for all
            arriving = self.model.arriving(self.adjacency)
        return torch.cat([self.model(h, r, self.adjacency, arriving) for h, r in parts])[:count]

    @torch.no_grad()
    def scores_of(self, heads: Ids, relations: Ids, candidates: Int[Tensor, "b k"]) -> Float[Tensor, "b k"]:
        """A question costs the same for all candidates, so those asked for are picked from all."""
        asked, rows = torch.unique(torch.stack([heads, relations]), dim=1, return_inverse=True)
        found = torch.empty(candidates.shape, device=self.device)
        for first in range(0, asked.shape[1], self.at_once):
            scores = self.scores(*asked[:, first : first + self.at_once].unbind(0))
            here = ((rows >= first) & (rows < first + len(scores))).nonzero()[:, 0]
            found[here] = scores[rows[here] - first].gather(1, candidates[here])
        return found
