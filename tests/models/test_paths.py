"""Paths: against an implementation that is written from the formula, edge by edge."""

from dataclasses import replace

import pytest
import torch
from rows import ONE_OF_EACH

from modulekge.config import PathsConfig
from modulekge.errors import ConfigError
from modulekge.models.adjacency import Adjacency
from modulekge.models.messages import Message
from modulekge.models.paths import Paths
from modulekge.models.spec import MODELS, named

ENTITIES, RELATIONS = 13, 3
ROWS = ("DistMult", "ComplEx", "QuatE", "TransE", "NagE", "ModulE-RC", "ModulE-RH", "ModulE-HH", "RotatE")


def with_inverses(triples, relations=RELATIONS):
    """Edges both ways."""
    h, r, t = triples.unbind(1)
    return torch.cat([triples, torch.stack([t, r + relations, h], 1)])


def graph(seed=0, edges=30, entities=ENTITIES, relations=RELATIONS):
    """A random graph with a hub, a self-loop and, at its end, entities without any edge."""
    draw = torch.Generator().manual_seed(seed)
    triples = torch.stack(
        [torch.randint(n, (edges,), generator=draw) for n in (entities - 3, relations, entities - 3)], 1
    )
    triples[: edges // 3, 2] = 1  # a hub
    triples[-1] = torch.tensor([2, 0, 2])  # a loop
    return triples.unique(dim=0)


def model_of(triples, row="DistMult", whole_pairs=False, **settings):
    """A drawn model on a graph."""
    adjacency = Adjacency.of(with_inverses(triples), ENTITIES, 2 * RELATIONS, whole_pairs)
    config = PathsConfig(**{"layers": 3, "d": 24, **settings})
    model = Paths(named(row), ENTITIES, 2 * RELATIONS, config, lambda: adjacency)
    return model.draw(torch.Generator().manual_seed(1))


def naive(model, edges, head, relation):
    """The scores of all entities for one question, by the formula, from a list of edges (u, p, v)."""
    size, n = model.message.size, model.k
    query = model.query[relation]
    boundary = [query if v == head else torch.zeros(model.d) for v in range(model.n_entities)]
    states = [state.clone() for state in boundary]
    for layer in range(model.config.layers):
        numbers = torch.nn.functional.linear(query, model.relation_weight[layer], model.relation_bias[layer])
        elements = model.message.elements(numbers.view(-1, model.message.width, n))
        new = []
        for v in range(model.n_entities):
            arriving = [
                model.message.move(states[u].view(size, n), elements[p]).flatten()
                for u, p, target in edges
                if target == v
            ]
            messages = torch.stack([*arriving, boundary[v]])
            features = [messages.mean(0)]
            if model.config.aggregation == "sum":
                features = [messages.sum(0)]
            if "std" in model.config.aggregation:
                variance = messages.square().mean(0) - messages.mean(0).square()
                features.append(variance.clamp(min=1e-6).sqrt())
            m = torch.cat(features)
            c = (torch.tensor(float(len(messages))).log() + 0.5) / model.log_degree[0]
            c1, c2, c3 = model.aggregate[layer].chunk(3)
            y = c1 @ m + c * (c2 @ m) + (c3 @ m) / c + model.own[layer] @ states[v] + model.bias[layer]
            y = torch.nn.functional.layer_norm(
                y, y.shape, model.norm_weight[layer], model.norm_bias[layer]
            ).relu()
            reached = bool((states[v] != 0).any() or (messages.sum(0) != 0).any())
            new.append(states[v] + y if reached else torch.zeros(model.d))
        states = new
    hidden = [model.hidden @ torch.cat([x, query]) + model.hidden_bias for x in states]
    scores = torch.stack([(model.output @ h.relu())[0] for h in hidden])
    if model.config.prior == "relations":
        for v in range(model.n_entities):
            arriving = [model.prior_arriving[p] for _, p, target in edges if target == v]
            if arriving:
                scores[v] += torch.stack(arriving).mean(0) @ model.prior_asked[relation]
    return scores


def edges_of(triples):
    """Edges as tuples."""
    return [tuple(edge) for edge in with_inverses(triples).tolist()]


def asked_without(model, *triple):
    """The graph as it is while a triple is asked for."""
    adjacency = model.adjacency
    return adjacency.only(adjacency.outside(adjacency.groups(*triple)))


@pytest.mark.parametrize("row", ROWS)
def test_scores_are_those_of_the_formula(row):
    triples = graph()
    model = model_of(triples, row)
    heads, relations = torch.tensor([0, 1, 2, 12]), torch.tensor([0, 5, 3, 1])  # 12 has no edges
    with torch.no_grad():
        found = model(heads, relations)
        for h, r, row_of in zip(heads.tolist(), relations.tolist(), found, strict=True):
            torch.testing.assert_close(row_of, naive(model, edges_of(triples), h, r), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("aggregation", ["mean", "sum", "mean-std"])
def test_aggregations_are_those_of_the_formula(aggregation):
    triples = graph(3)
    model = model_of(triples, aggregation=aggregation)
    with torch.no_grad():
        found = model(torch.tensor([4]), torch.tensor([2]))[0]
        torch.testing.assert_close(found, naive(model, edges_of(triples), 4, 2), rtol=1e-4, atol=1e-5)


def test_the_prior_is_that_of_the_formula():
    triples = graph(4)
    model = model_of(triples, prior="relations", layers=1)
    with torch.no_grad():
        found = model(torch.tensor([4]), torch.tensor([2]))[0]
        torch.testing.assert_close(found, naive(model, edges_of(triples), 4, 2), rtol=1e-4, atol=1e-5)
        asked = triples[5]
        without = asked_without(model, *asked[:, None])
        others = with_inverses(torch.cat([triples[:5], triples[6:]]))
        never = model.along(ENTITIES, lambda: Adjacency.of(others, ENTITIES, 6, False))
        torch.testing.assert_close(
            model(asked[:1], asked[1:2], without), never(asked[:1], asked[1:2], never.adjacency)
        )


def test_gradients_are_those_of_the_formula():
    triples = graph(5, edges=14)
    model = model_of(triples, "ModulE-HH", layers=2, d=16)
    weights = [table for table in model.parameters() if table.requires_grad and table.numel()]
    found = torch.autograd.grad(model(torch.tensor([1]), torch.tensor([0]))[0].square().sum(), weights)
    expected = torch.autograd.grad(naive(model, edges_of(triples), 1, 0).square().sum(), weights)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)


def test_a_question_is_answered_alike_whoever_is_asked_beside_it():
    model = model_of(graph(7), layers=4)
    heads, relations = torch.arange(ENTITIES), torch.arange(ENTITIES) % (2 * RELATIONS)
    with torch.no_grad():
        together = model(heads, relations)
        for i in range(ENTITIES):
            torch.testing.assert_close(together[i : i + 1], model(heads[i : i + 1], relations[i : i + 1]))


@pytest.mark.parametrize("whole_pairs", [False, True])
@pytest.mark.parametrize("aggregation", ["mean", "sum", "mean-std"])
def test_nothing_tells_where_an_edge_was_left_out(whole_pairs, aggregation):
    """A graph from which edges are left out is the graph that never had them, degrees and all."""
    triples = graph(2)
    model = model_of(triples, whole_pairs=whole_pairs, aggregation=aggregation)
    asked = torch.tensor([[0, 1, 2]])
    asked[0] = triples[5]
    h, r, t = asked.unbind(1)
    ends = {int(h), int(t)}
    kept = [
        edge
        for edge in triples.tolist()
        if (({edge[0], edge[2]} != ends) if whole_pairs else (edge != asked[0].tolist()))
    ]
    without = asked_without(model, h, r, t)
    never = Adjacency.of(with_inverses(torch.tensor(kept)), ENTITIES, 2 * RELATIONS, whole_pairs)
    with torch.no_grad():
        torch.testing.assert_close(model(h, r, without), model(h, r, never))
        torch.testing.assert_close(without.degrees, never.degrees)
        inverse = asked_without(model, t, r + RELATIONS, h)
        torch.testing.assert_close(model(t, r + RELATIONS, inverse), model(t, r + RELATIONS, never))


def test_a_triple_that_is_not_there_leaves_all_edges():
    model = model_of(graph())
    groups = model.adjacency.groups(torch.tensor([11, 0]), torch.tensor([0, 2]), torch.tensor([12, 12]))
    assert len(groups) == 0


def test_entities_that_no_path_reaches_have_the_same_score():
    triples = torch.tensor([[0, 0, 1], [1, 1, 2], [5, 0, 6]])
    scores = model_of(triples, layers=6)(torch.tensor([0]), torch.tensor([1]))[0]
    far = scores[3:]
    assert torch.equal(far, far[:1].expand_as(far))
    assert len(scores[:3].unique()) == 3
    assert (scores[:3] != far[0]).all()


def test_edges_that_are_there_twice_count_twice():
    triples = torch.tensor([[0, 0, 1], [0, 0, 1], [1, 1, 2]])
    model = model_of(triples)
    with torch.no_grad():
        found = model(torch.tensor([0]), torch.tensor([1]))[0]
        torch.testing.assert_close(found, naive(model, edges_of(triples), 0, 1), rtol=1e-4, atol=1e-5)


def test_one_relation_and_a_graph_without_edges():
    one = Adjacency.of(with_inverses(torch.tensor([[0, 0, 1]]), 1), 3, 2, False)
    none = Adjacency.of(torch.zeros(0, 3, dtype=torch.long), 3, 2, False)
    for adjacency in (one, none):
        model = Paths(MODELS["DistMult"], 3, 2, PathsConfig(layers=2, d=4), lambda: adjacency)
        model.draw(torch.Generator().manual_seed(0))
        assert model(torch.tensor([0, 2]), torch.tensor([0, 1])).isfinite().all()


@pytest.mark.parametrize("row", ["HAKE", "DensE"])
def test_a_row_that_puts_weights_beside_what_it_moves_is_refused_by_name(row):
    with pytest.raises(ConfigError, match=row):
        Message(MODELS[row])


@pytest.mark.parametrize("row", [*ONE_OF_EACH, *ROWS])
def test_every_other_row_is_a_message(row):
    spec = MODELS[row]
    if spec.scaling.operation.weighs:
        pytest.skip("refused")
    adjacency = Adjacency.of(with_inverses(graph()), ENTITIES, 2 * RELATIONS, False)
    spec, config = replace(spec, name=f"Paths-{row}"), PathsConfig(layers=2, d=16)
    model = Paths(spec, ENTITIES, 2 * RELATIONS, config, lambda: adjacency)
    scores = model.draw(torch.Generator().manual_seed(0))(torch.tensor([0]), torch.tensor([0]))
    assert scores.isfinite().all() and len(scores.unique()) > 3


def test_the_scorer_gives_the_same_for_candidates_and_some_at_a_time():
    model = model_of(graph())
    scorer = model.scorer()
    heads, relations = torch.tensor([0, 3, 0]), torch.tensor([1, 1, 1])
    every = scorer.scores(heads, relations)
    candidates = torch.tensor([[1, 2], [0, 12], [3, 3]])
    torch.testing.assert_close(scorer.scores_of(heads, relations, candidates), every.gather(1, candidates))
