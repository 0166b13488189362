"""What the doctor finds is there, and what is there it finds."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from modulekge.data.dataset import Dataset
from modulekge.data.doctor import examine
from modulekge.data.overlaps import overlaps
from modulekge.data.registry import open_dataset
from modulekge.data.vocabulary import Vocabulary


def graph(train, valid=((0, 0, 1),), test=((1, 0, 2),), entities=40, relations=4):
    names = [tuple(f"{letter}{i}" for i in range(n)) for letter, n in (("e", entities), ("r", relations))]
    splits = [torch.tensor(list(split), dtype=torch.long).reshape(-1, 3) for split in (train, valid, test)]
    return Dataset("g", Vocabulary("entity", names[0]), Vocabulary("relation", names[1]), *splits)


def line(relation, count=20, back=False, first=0):
    pairs = [(first + i, first + i + 1) for i in range(count)]
    return [(b, relation, a) if back else (a, relation, b) for a, b in pairs]


def test_copies_inverses_and_symmetric_relations():
    train = [*line(0), *line(1), *line(2, back=True), *line(3, 12), *line(3, 12, back=True)]
    found = {(o.relation, o.other): (o.likeness, o.share) for o in overlaps(graph(train, (), ()))}
    assert found[("r0", "r1")] == ("same", 1.0)
    assert found[("r0", "r2")] == ("inverse", 1.0)
    assert found[("r1", "r2")] == ("inverse", 1.0)
    assert found[("r3", "r3")] == ("symmetric", 1.0)
    assert ("r0", "r3") not in found  # 12 pairs of 20


def test_half_an_overlap_is_none():
    train = [*line(0), *line(1, first=10)]
    assert overlaps(graph(train, (), ())) == ()
    assert [o.pairs for o in overlaps(graph(train, (), ()), least=0.5)] == [10]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=40))
def test_overlaps_are_those_of_sets(triples):
    dataset = graph(triples, (), (), entities=6, relations=3)
    found = {(o.relation, o.other, o.likeness): (o.share, o.pairs) for o in overlaps(dataset, 1e-9, 1)}
    pairs = [{(h, t) for h, r, t in triples if r == i and h != t} for i in range(3)]
    expected = {}
    for i in range(3):
        for j in range(i, 3):
            back = {(t, h) for h, t in pairs[j]}
            for other, likeness in ((pairs[j], "same"), (back, "symmetric" if i == j else "inverse")):
                common = len(pairs[i] & other)
                if common and not (i == j and likeness == "same"):
                    share = common / max(len(pairs[i]), len(other))
                    expected[(f"r{i}", f"r{j}", likeness)] = (pytest.approx(share), common)
    assert found == expected


def texts(dataset, level=None):
    return [f.what for f in examine(dataset) if level in (None, f.level)]


def test_what_is_wrong_with_splits():
    train = [*line(0), *line(0, 3), *line(1, back=True)]
    dataset = graph(train, valid=[(0, 0, 1), (30, 0, 31)], test=[], relations=2)
    assert texts(dataset, "problem") == ["1 triples of valid stand in train too"]
    warnings = texts(dataset, "warning")
    assert "3 triples of train are repeated" in warnings
    assert "1 triples of valid have an entity that train has not" in warnings
    assert "test is empty" in warnings
    assert any(text.startswith("r0 is the inverse of r1 (") for text in warnings)


def test_many_alike_are_told_by_their_number():
    train = [triple for r in range(5) for triple in line(r)]
    found = texts(graph(train, (), (), relations=5), "warning")
    assert next(text for text in found if "join the same pairs" in text) == (
        "r0 and r1 join the same pairs (100%, 20 pairs)"
    )
    assert "5 more like the last" in found  # of the ten pairs of five relations


def test_what_is_only_worth_knowing():
    dataset = graph([*line(0), (5, 1, 5), (6, 1, 6)], test=[(3, 0, 9)], valid=[(4, 0, 8)], relations=2)
    notes = texts(dataset, "note")
    assert "2 triples join an entity with itself" in notes
    assert "1 relations have fewer than 5 triples in train (r1)" in notes
    assert texts(dataset, "problem") == texts(dataset, "warning") == []


def test_the_embedded_graph_is_found_clean():
    assert texts(open_dataset("world"), "problem") == []
