"""Facts around entities, neighbourhoods and the map, against looking at every triple."""

import numpy as np
import pytest
import torch

from modulekge.answers.predictor import Predictor
from modulekge.data.benchmarks import SPLITS
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.server import projection
from modulekge.server.entity_map import MapMaker, places_of
from modulekge.server.facts import DIRECTIONS, Facts
from modulekge.server.lookup import Lookup
from modulekge.server.neighbourhood import Neighbours
from modulekge.server.projection import directions, principal_plane, project
from modulekge.server.service import ServedRun


def graph(name, n, relations, *splits, **options):
    return Dataset(
        name,
        Vocabulary("entity", tuple(f"e{i}" for i in range(n))),
        Vocabulary("relation", tuple(f"r{i}" for i in range(relations))),
        *(torch.tensor(split, dtype=torch.long).view(-1, 3) for split in splits),
        **options,
    )


@pytest.fixture(scope="module")
def random():
    draw = torch.Generator().manual_seed(0)
    triples = torch.stack([torch.randint(0, size, (200,), generator=draw) for size in (12, 3, 12)], 1)
    return graph("random", 13, 3, triples[:150].tolist(), triples[120:180].tolist(), triples[170:].tolist())


def naive(dataset, entity):
    """{(relation, direction): {other end: first split}} of an entity."""
    found = {}
    for split in SPLITS:
        for h, r, t in dataset[split].tolist():
            for end, direction, other in ((h, "out", t), (t, "in", h)):
                if end == entity:
                    found.setdefault((r, direction), {}).setdefault(other, split)
    return found


def test_facts_are_those_of_looking_at_every_triple(random):
    facts = Facts.of(random)
    for entity in range(13):
        expected = naive(random, entity)
        groups = facts.groups(entity)
        assert {
            (g.relation, g.direction): dict(zip(g.others.tolist(), g.splits, strict=True)) for g in groups
        } == expected
        assert [len(g.others) for g in groups] == sorted((len(g.others) for g in groups), reverse=True)
        assert facts.degrees[entity] == sum(map(len, expected.values()))
        most = int(facts.most_asked()[entity])
        if expected:
            assert len(expected[most % 3, DIRECTIONS[most // 3]]) == max(map(len, expected.values()))
        else:
            assert most == -1
    whole = {tuple(triple) for split in SPLITS for triple in random[split].tolist()}
    assert facts.of_relation.tolist() == [sum(r == i for _, r, _ in whole) for i in range(3)]


def test_what_train_does_not_hold_is_not_trained():
    lookup = Lookup(graph("few", 3, 1, [(0, 0, 1)], [], [(2, 0, 1)]))
    assert [lookup.entity(f"e{i}", None, None, 20).trained for i in range(3)] == [True, True, False]


def test_a_graph_without_facts_is_looked_up_too(random):
    bare = graph("bare", 13, 3, [], [], [], facts=False)
    lookup = Lookup(bare)
    assert lookup.entities("e1", 5).items[0].degree == 0
    card = lookup.entity("e1", None, None, 20)
    assert (card.facts, card.trained) == ([], True)  # whether it was seen is not known
    assert lookup.relations("", 5).total == 3
    drawn = MapMaker(lookup, torch.randn(13, 2)).of_best(20)
    assert (len(drawn.names), drawn.groups, drawn.group) == (13, [], [-1] * 13)


@pytest.fixture
def capitals(drawn_run):
    """Thirty countries: the first 25 have a capital, and all border the next one, both ways."""
    capital = [(i, 0, 30 + i) for i in range(25)]
    borders = [(i, 1, i + 1) for i in range(29)] + [(i + 1, 1, i) for i in range(29)]
    return drawn_run(graph("capitals", 60, 2, capital + borders, [], []), "ModulE-HH")


def test_no_second_capital_is_drawn_and_none_that_is_taken(capitals):
    lookup = Lookup(capitals.dataset)
    neighbours = Neighbours(Predictor(capitals), lookup)
    for entity in (3, 27, 33, 58):
        drawn = neighbours.of(entity, known=50, predicted=20)
        known = {(link.head, link.relation, link.tail) for link in drawn.links if link.known}
        facts = {
            (f"e{h}", f"r{r}", f"e{t}") for h, r, t in capitals.dataset.train.tolist() if entity in (h, t)
        }
        assert known | {(t, r, h) for h, r, t in known if r == "r1"} == facts
        assert not any((t, r, h) in known for h, r, t in known)  # what holds both ways is drawn once
        new = [link for link in drawn.links if not link.known]
        assert not any(link.relation == "r0" and link.head in {f"e{i}" for i in range(25)} for link in new)
        assert not any(
            link.relation == "r0" and link.tail in {f"e{30 + i}" for i in range(25)} for link in new
        )
        assert not any(link.head == link.tail for link in new)
        assert not known & {(link.head, link.relation, link.tail) for link in new}
        assert {end for link in drawn.links for end in (link.head, link.tail)} <= {
            n.name for n in drawn.nodes
        }
        assert drawn.nodes[0].name == f"e{entity}"
    assert len([link for link in neighbours.of(3, 5, 7).links if not link.known]) == 7
    assert neighbours.of(3, 0, 0).links == []


def test_as_many_links_are_drawn_as_there_are(drawn_run):
    """Most countries have their capital: what is left stands far behind them in the scores."""
    capital = [(i, 0, 60 + i % 2) for i in range(50)]
    run = drawn_run(graph("taken", 62, 1, capital, [], []), "ModulE-HH")
    new = Neighbours(Predictor(run), Lookup(run.dataset)).of(60, 0, 12, types="any").links
    assert {(link.head, link.tail) for link in new} == {(f"e{i}", "e60") for i in (*range(50, 60), 61)}


def test_a_link_to_itself_is_drawn_once(drawn_run):
    run = drawn_run(graph("loops", 4, 2, [(0, 0, 0), (0, 0, 1), (1, 0, 0)], [], []), "ModulE-HH")
    links = Neighbours(Predictor(run), Lookup(run.dataset)).of(0, 9, 9, types="any").links
    triples = [(link.head, link.relation, link.tail) for link in links]
    assert len(triples) == len(set(triples))
    assert triples.count(("e0", "r0", "e0")) == 1
    assert len(links) == 2 + 2  # each other one once, for the relation holds both ways


def test_each_relation_has_its_turn_in_what_is_drawn(capitals):
    drawn = Neighbours(Predictor(capitals), Lookup(capitals.dataset)).of(3, known=3, predicted=0)
    assert {link.relation for link in drawn.links} == {"r0", "r1"}


@pytest.mark.parametrize("shape", [(50, 2, 5), (40, 1, 1), (2, 3, 4), (1, 2, 2), (300, 4, 30)])
def test_a_plane_is_the_first_two_principal_components(shape):
    falling = torch.logspace(0, -2, shape[1] * shape[2]).view(shape[1:])  # so that there are first ones
    table = torch.randn(shape, generator=torch.Generator().manual_seed(1)) * falling
    x = torch.nn.functional.normalize(table.flatten(1), dim=1)
    u, s, _ = torch.linalg.svd(x - x.mean(0), full_matrices=False)
    exact = torch.zeros(shape[0], 2)
    exact[:, : min(2, len(s))] = (u * s)[:, :2]
    exact = exact / exact.abs().max(0).values.clamp(min=1e-12)
    found = principal_plane(directions(table))
    assert torch.equal(found, principal_plane(directions(table)))
    real = s[:2] > 1e-5
    for axis in range(2):
        if axis < len(real) and real[axis]:
            same = torch.dot(found[:, axis], exact[:, axis]).sign()
            assert torch.allclose(found[:, axis] * same, exact[:, axis], atol=2e-2)
    assert bool(found.isfinite().all())


@pytest.mark.parametrize("sample", [8000, 150])
def test_the_map_keeps_more_neighbours_than_a_plane_does(sample, monkeypatch):
    monkeypatch.setattr(projection, "_SAMPLE", sample)
    draw = torch.Generator().manual_seed(2)
    kind = torch.arange(300) % 12  # in twelve directions
    table = 3 * torch.randn(12, 20, generator=draw)[kind] + torch.randn(300, 20, generator=draw)
    table = table.view(300, 2, 10)
    places = project(table)
    assert torch.equal(places, project(table))
    assert float(places.abs().max()) == pytest.approx(1)

    def of_a_kind(places):
        near = torch.cdist(places, places).topk(6, largest=False).indices[:, 1:]
        return float((kind[near] == kind[:, None]).float().mean())

    assert of_a_kind(places) > of_a_kind(principal_plane(directions(table))) + 0.1


@pytest.mark.parametrize("n", [1, 2, 10, 11, 12])
def test_few_entities_have_a_map_too(n):
    assert bool(project(torch.randn(n, 2, 3)).isfinite().all())


def test_places_are_found_once_and_anew_for_other_weights(drawn_run):
    run = drawn_run(graph("kept", 20, 1, [(i, 0, i + 1) for i in range(19)], [], []), "ModulE-HH")
    places = places_of(run)
    before = run.folder.map_file.read_bytes()
    assert torch.equal(places_of(run), places)
    assert run.folder.map_file.read_bytes() == before
    with torch.no_grad():
        next(iter(run.model.state_dict().values())).mul_(-2).add_(1)
    assert not torch.equal(places_of(run), places)
    run.folder.map_file.write_bytes(b"cut")
    places_of(run)
    assert run.folder.map_file.read_bytes()[:3] != b"cut"


def test_a_run_with_a_single_entity_is_served(drawn_run):
    served = ServedRun("one", drawn_run(graph("one", 1, 1, [(0, 0, 0)], [], []), "ModulE-HH")).prepare()
    assert served.map(5).result().names == ["e0"]
    assert served.neighbourhood("e0", 5, 5).result().nodes[0].degree == 2
    served.close()


def test_paging_of_a_group(random):
    lookup = Lookup(random)
    whole = lookup.entity("e0", "r0", "out", 1000).facts[0]
    pages = [lookup.entity("e0", "r0", "out", 2, i).facts[0] for i in range(0, whole.total + 2, 2)]
    assert [item for page in pages for item in page.items] == whole.items
    assert {page.total for page in pages} == {whole.total} == {len(naive(random, 0)[0, "out"])}
    assert np.all(lookup.facts.degrees >= 0)
