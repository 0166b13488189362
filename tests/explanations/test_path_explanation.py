"""What is said to carry the score of a model of paths does: without it the score falls as told."""

import json
from dataclasses import asdict, fields, replace

import pytest
import torch
from program import call
from web import API, Client

from modulekge.config import PathsConfig
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.explanations.best_paths import best_paths
from modulekge.explanations.edge_gradients import TracedQuestion
from modulekge.explanations.explanation import explain
from modulekge.explanations.path_explanation import PathQuestion, explain_by_paths
from modulekge.explanations.values import Explanation, PathExplanation, Route, Support
from modulekge.models.adjacency import Adjacency
from modulekge.models.paths import Paths
from modulekge.models.spec import named
from modulekge.render.terminal import console
from modulekge.render.why import explanation_view
from modulekge.run.train import train
from modulekge.server.http import make_app
from modulekge.server.service import Service

NAMES = ("ann", "bob", "cid", "dan", "eve", "far", "fog")
# ann -0-> bob <-1- cid -0-> dan, beside it eve, which leads nowhere; far and fog stand apart
LINE = [(0, 0, 1), (2, 1, 1), (2, 0, 3), (1, 1, 4), (5, 0, 6)]
DENSE = [(u, (u + v) % 2, v) for u in range(6) for v in range(6) if (3 * u + v) % 4 and u != v]


def graph(triples):
    empty = torch.zeros(0, 3, dtype=torch.long)
    names = Vocabulary("entity", NAMES), Vocabulary("relation", ("likes", "knows"))
    return Dataset("line", *names, torch.tensor(triples), empty, empty)


def model_of(dataset, seed=1, row="DistMult", whole_pairs=False, **settings):
    adjacency = Adjacency.of(dataset.questions("train"), len(NAMES), 4, whole_pairs)
    config = PathsConfig(**{"layers": 3, "d": 16, **settings})
    model = Paths(named(row), len(NAMES), 4, config, lambda: adjacency)
    return model.draw(torch.Generator().manual_seed(seed))


def raising(dataset, triple, **settings):
    """A model whose score of a triple is raised by a path: of drawn ones the first."""
    models = (model_of(dataset, seed, **settings) for seed in range(50))
    return next(model for model in models if explain_by_paths(model, dataset, triple, 5).routes)


def score_on(model, triples, triple):
    h, r, t = triple
    with torch.no_grad():
        questions = graph(triples).questions("train")
        on = model.along(len(NAMES), lambda: Adjacency.of(questions, len(NAMES), 4, False))
        return float(on(torch.tensor([h]), torch.tensor([r]))[0, t])


def as_triple(fact):
    return NAMES.index(fact.head), ("likes", "knows").index(fact.relation), NAMES.index(fact.tail)


def shown(why):
    screen = console()
    with screen.capture() as captured:
        screen.print(explanation_view(why))
    return captured.get()


def test_the_only_path_is_named():
    dataset, triple = graph(LINE), (0, 1, 3)
    why = explain_by_paths(raising(dataset, triple), dataset, triple, 5)
    assert why.reached and why.split is None and why.left_out == ()
    (route,) = why.routes
    assert [as_triple(fact) for fact in route.facts] == LINE[:3]
    assert route.ways == ("forward", "backward", "forward")
    assert "ann -likes-> bob <-knows- cid -likes-> dan" in shown(why)


@pytest.mark.parametrize("triples", [LINE, DENSE])
@pytest.mark.parametrize(
    ("row", "aggregation", "prior"),
    [("DistMult", "mean-std", "relations"), ("TransE", "sum", "none"), ("QuatE", "mean", "none")],
)
def test_what_the_score_loses_is_what_a_graph_without_the_fact_scores(triples, row, aggregation, prior):
    dataset, triple = graph(triples), (0, 1, 3)
    model = raising(dataset, triple, row=row, aggregation=aggregation, prior=prior)
    kept = [fact for fact in triples if fact != triple]
    whole = score_on(model, kept, triple)
    asked = PathQuestion(model, triple)
    drops = asked.drops(asked.paths(5), 20)
    assert drops
    for fact, drop in drops.items():
        rest = [other for other in kept if other != asked.named(fact)]
        assert drop == pytest.approx(whole - score_on(model, rest, triple), abs=1e-5)
    why = explain_by_paths(model, dataset, triple, 5)
    assert why.as_tail.score == pytest.approx(whole, abs=1e-5)
    gone = [as_triple(support.fact) for support in why.supports]
    if gone:
        rest = [other for other in kept if other not in gone]
        assert why.without.score == pytest.approx(score_on(model, rest, triple), abs=1e-5)


@pytest.mark.parametrize(
    ("row", "aggregation"), [("DistMult", "mean-std"), ("TransE", "mean"), ("QuatE", "sum")]
)
def test_gradients_are_those_of_weights_put_at_each_edge(row, aggregation):
    """Against autograd through the weights of all edges at all layers."""
    dataset, (h, r, t) = graph(DENSE), (0, 1, 3)
    model = model_of(dataset, 2, row, aggregation=aggregation)
    edges = model.adjacency.edges

    def score(weights):
        query = model.query[r].view(1, 1, model.message.size, model.k)
        x = torch.zeros(len(NAMES), *query.shape[1:])
        x[h] = query[0]
        for layer in range(3):
            sent = model.sent(layer, x[edges[:, 0]], edges[:, 1], r)
            sums, counts = [], torch.ones(len(NAMES)).index_add(0, edges[:, 2], weights[layer])
            for p in (1, 2) if "std" in aggregation else (1,):
                total = torch.zeros_like(x).index_add(
                    0, edges[:, 2], weights[layer].view(-1, 1, 1, 1) * sent**p
                )
                total[h] += query[0] ** p
                sums.append(total)
            x = model.after(layer, x, sums, counts)
        return model.read(x, r)[0, t]

    ones = torch.ones(3, len(edges)).requires_grad_()
    (expected,) = torch.autograd.grad(score(ones), ones)
    for layer, found in enumerate(TracedQuestion(model, edges, (h, r, t)).gradients):
        torch.testing.assert_close(found.gradients, expected[layer, found.edges], rtol=1e-3, atol=1e-5)
        if layer == 0:
            assert (edges[found.edges, 0] == h).all()
    assert (edges[found.edges, 2] == t).all()


def test_the_best_paths_are_those_of_a_plain_search():
    dataset = graph(DENSE)
    asked = PathQuestion(model_of(dataset, 3), (0, 1, 3))
    edges, found = asked.every_edge.tolist(), {}
    gains = [dict(zip(x.edges.tolist(), x.gradients.tolist(), strict=True)) for x in asked.layers]

    def walk(path, passed, layer, total):
        if path and passed[-1] == 3:
            found[path] = max(found.get(path, -torch.inf), total / len(path))
            return
        for later in range(layer, len(gains)):
            for edge, gain in gains[later].items():
                u, _, v = edges[edge]
                if u == passed[-1] and v not in passed:
                    walk((*path, edge), (*passed, v), later + 1, total + gain)

    walk((), (0,), 0, 0.0)
    expected = sorted((weight for weight in found.values() if weight > 0), reverse=True)[:10]
    best = best_paths(asked.layers, asked.every_edge, len(NAMES), 0, 3, 10)
    assert [path.weight for path in best] == pytest.approx(expected)
    assert all(found[path.edges] == pytest.approx(path.weight) for path in best)


@pytest.mark.parametrize("whole_pairs", [False, True])
def test_a_training_fact_is_left_out_meanwhile(whole_pairs):
    triples = [*DENSE, (0, 0, 3), (0, 1, 3)]
    dataset, triple = graph(triples), (0, 1, 3)
    model = raising(dataset, triple, whole_pairs=whole_pairs)
    why = explain_by_paths(model, dataset, triple, 50)
    gone = {(0, 1, 3)} | (
        {fact for fact in triples if {fact[0], fact[2]} == {0, 3}} if whole_pairs else set()
    )
    assert why.split == "train"
    assert {as_triple(fact) for fact in why.left_out} == gone
    assert not gone & {as_triple(fact) for route in why.routes for fact in route.facts}
    rest = [fact for fact in triples if fact not in gone]
    assert why.as_tail.score == pytest.approx(score_on(model, rest, triple), abs=1e-5)
    assert "left out of the graph meanwhile, as in training" in shown(why)


def test_a_tail_that_no_path_reaches_says_so():
    dataset = graph(LINE)
    model = model_of(dataset)
    for triple in ((0, 0, 6), (0, 0, 5), (4, 0, 3)):  # apart, or further than the layers go
        model = model_of(dataset, layers=2) if triple[0] == 4 else model
        why = explain_by_paths(model, dataset, triple, 3)
        assert not why.reached
        assert (why.routes, why.supports, why.without, why.facts_between) == ((), (), None, 0)
        assert f"no path of up to {model.config.layers} facts leads from" in shown(why)


def test_an_entity_and_itself():
    dataset = graph(DENSE)
    why = explain_by_paths(model_of(dataset), dataset, (2, 0, 2), 5)
    assert why.reached
    assert why.as_tail.score == pytest.approx(score_on(model_of(dataset), DENSE, (2, 0, 2)), abs=1e-5)
    for route in why.routes:
        assert {route.facts[0].head, route.facts[0].tail} >= {"cid"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = {"paths.layers": 3, "paths.d": 8, "train.epochs": 2, "train.batch": 8, "train.eval_every": 1}
    dataset = replace(graph(DENSE), valid=torch.tensor([(0, 0, 3)]), test=torch.tensor([(3, 0, 0)]))
    return train(dataset, "Paths", settings, tmp_path_factory.mktemp("line") / "run")


def test_the_command_prints_it(run, tmp_path):
    why = explain(run, "dan", "likes", "ann", k=2)
    assert isinstance(why, PathExplanation)
    seen = call("explain", run.folder.path, "dan", "likes", "ann", "-k", 2, cwd=tmp_path)
    assert seen.returncode == 0
    assert "dan  likes  ann  known, held out in test" in seen.stdout
    told = json.loads(call("explain", run.folder.path, "dan", "likes", "ann", "--json", cwd=tmp_path).stdout)
    assert list(told) == [field.name for field in fields(PathExplanation)]
    assert told["layers"] == 3


def test_the_server_answers_with_it_and_for_embeddings_as_before(run, tmp_path):
    other = train(run.dataset, "DistMult", {"model.k": 4, "train.epochs": 1}, tmp_path / "vectors")
    service = Service.open([run.folder.path, other.folder.path], torch.device("cpu"))
    client, asked = Client(make_app(service)), {"head": "dan", "relation": "likes", "tail": "ann"}
    why = client.post(f"{API}/run/explain", asked).json()
    assert list(why) == [field.name for field in fields(PathExplanation)]
    expected = json.loads(json.dumps(asdict(explain(run, *asked.values()))))
    assert why["routes"] == expected["routes"]
    names = "triple split model as_tail as_head supports candidates facts_around routes near_head near_tail"
    as_before = client.post(f"{API}/vectors/explain", asked).json()
    assert list(as_before) == names.split() == [field.name for field in fields(Explanation)]
    assert [field.name for field in fields(Support)] == ["fact", "influence", "share"]
    assert [field.name for field in fields(Route)] == ["facts", "ways", "evidence", "paths"]
    service.close()
