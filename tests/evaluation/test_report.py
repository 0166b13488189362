import json
import math
from dataclasses import replace

import pytest
import torch

from modulekge.data.dataset import Dataset
from modulekge.errors import DataError
from modulekge.evaluation.evaluate import evaluate, ranked_triples
from modulekge.evaluation.metrics import bootstrap, metrics
from modulekge.evaluation.report import Report
from modulekge.models.embedding import Embedding
from modulekge.models.spec import MODELS

approx = pytest.approx


def test_metrics_are_their_definitions():
    found = metrics(torch.tensor([1.0, 2.0, 4.0, 20.0]))
    assert found == approx(
        {"mrr": (1 + 0.5 + 0.25 + 0.05) / 4, "hits@1": 0.25, "hits@3": 0.5, "hits@10": 0.75, "mr": 6.75}
    )
    assert all(math.isnan(value) for value in metrics(torch.zeros(0)).values())


def test_the_interval_covers_the_mean_and_shrinks_with_more_triples():
    generator = torch.Generator().manual_seed(0)
    widths = []
    for m in (100, 10_000):
        ranks = torch.randint(1, 20, (2, m), generator=generator).double()
        low, high = bootstrap(ranks)["mrr"]
        assert low < metrics(ranks.flatten())["mrr"] < high
        widths.append(high - low)
    assert widths[0] / widths[1] == approx(10, rel=0.25)
    assert bootstrap(torch.ones(2, 5))["mrr"] == (1.0, 1.0)


def test_the_interval_has_the_width_theory_gives_it():
    """The mean over m triples of a pair of equal hits has standard error sqrt(p (1 - p) / m)."""
    hits = torch.cat([torch.ones(300), torch.full((700,), 50.0)]).expand(2, 1000).double()
    low, high = bootstrap(hits)["hits@1"]
    assert high - low == approx(2 * 1.96 * math.sqrt(0.3 * 0.7 / 1000), rel=0.1)


@pytest.fixture
def report(family):
    model = Embedding(MODELS["ModulE-RC"], len(family.entities), family.n_relations_with_inverses, 4)
    return evaluate(model.draw(torch.Generator().manual_seed(0), 1.0, 1.0).scorer(), family, "train")


def test_parts_add_up_to_the_whole(report):
    n = sum(part.triples for part in report.relations)
    assert n == report.triples == sum(part.triples for part in report.categories)
    for parts in (report.relations, report.categories):
        mean = sum(p.triples * p.both["mrr"] for p in parts if p.triples) / n
        assert mean == approx(report.both["mrr"])
    assert (report.head["mrr"] + report.tail["mrr"]) / 2 == approx(report.both["mrr"])
    assert report.ties["top"]["mrr"] >= report.ties["mean"]["mrr"] >= report.ties["bottom"]["mrr"]
    assert report.ties["bottom"] == report.both


def test_a_report_is_plain_json_and_states_its_protocol(report):
    fields = json.loads(report.to_json(), parse_constant=pytest.fail)
    assert fields["protocol"]["ties"].startswith("BOTTOM")
    assert fields["both"] == approx(report.both)
    assert fields["protocol"]["triples"] == "all of the split"
    del fields["protocol"]["triples"]  # as older reports were written
    assert Report.from_fields(fields) == report


def test_where_every_triple_holds_an_unseen_entity_nothing_is_reported_without_them(family):
    model = Embedding(MODELS["ModulE-RC"], len(family.entities), family.n_relations_with_inverses, 4)
    model.draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    train = family.train[(family.train[:, [0, 2]] != 7).all(1)]
    cut = replace(family, train=train, test=torch.tensor([[5, 0, 7]]))
    report = evaluate(model.scorer(), cut)
    assert report.without_unseen is None
    assert json.loads(report.to_json(), parse_constant=pytest.fail)["without_unseen"] is None


def test_of_a_very_large_split_a_sample_is_ranked_and_the_report_says_so(family):
    model = Embedding(MODELS["ModulE-RC"], len(family.entities), family.n_relations_with_inverses, 4)
    model.draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    many = replace(family, test=family.train)
    some = ranked_triples(model.scorer(), many, "test", most_scores=2 * len(family.entities) * 5)
    assert len(some) == 5
    again = ranked_triples(model.scorer(), many, "test", most_scores=2 * len(family.entities) * 5)
    assert torch.equal(some, again)
    assert {*map(tuple, some.tolist())} <= {*map(tuple, many.test.tolist())}
    report = evaluate(model.scorer(), many, triples=some)
    assert (report.triples, report.protocol.triples) == (5, "a sample: 5 of 14, drawn with seed 0")
    assert report.both == evaluate(model.scorer(), replace(family, test=some)).both
    assert evaluate(model.scorer(), many).triples == 14


def test_unseen_entities_are_kept_and_reported_apart(family):
    model = Embedding(MODELS["ModulE-RC"], len(family.entities), family.n_relations_with_inverses, 4)
    model.draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    train = family.train[(family.train[:, [0, 2]] != 7).all(1)]
    test = torch.cat([family.test, torch.tensor([[5, 0, 7]])])
    cut = Dataset("cut", family.entities, family.relations, train, family.valid, test)
    report = evaluate(model.scorer(), cut)
    assert (report.triples, report.unseen_triples) == (2, 1)
    assert report.without_unseen != report.both


def test_an_empty_split_is_refused(family):
    empty = Dataset("d", family.entities, family.relations, family.train, family.valid, family.test[:0])
    with pytest.raises(DataError, match="the test split has no triples"):
        evaluate(Embedding(MODELS["DistMult"], 8, 6, 2).scorer(), empty)
