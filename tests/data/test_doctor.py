"""What the doctor finds is there, and what is there it finds."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import modulekge
from modulekge.data.benchmarks import SPLITS
from modulekge.data.compositions import compositions
from modulekge.data.dataset import Dataset
from modulekge.data.doctor import STAGES, doctor, examine_files, spelt_alike
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
    return [f.what for f in doctor(dataset) if level in (None, f.level)]


def test_what_is_wrong_with_splits():
    train = [*line(0), *line(0, 3), *line(1, back=True)]
    dataset = graph(train, valid=[(0, 0, 1), (30, 0, 31)], test=[], relations=2)
    assert texts(dataset, "problem") == ["1 triple of valid stands in train too"]
    warnings = texts(dataset, "warning")
    assert "3 triples of train are repeated" in warnings
    assert "1 triple of valid has an entity that train has not" in warnings
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
    assert "1 relation has fewer than 5 triples in train (r1)" in notes
    assert texts(dataset, "problem") == texts(dataset, "warning") == []


def test_the_embedded_graph_is_found_clean():
    assert texts(open_dataset("world"), "problem") == []


def test_names_that_differ_in_case_spaces_or_normal_form_are_told():
    names = ("caf\u00e9", "b", "cafe\u0301", "New York", "new\u00a0york ", "NewYork", "x2", "x\u00b2")
    assert spelt_alike(names) == [("caf\u00e9", "cafe\u0301"), ("New York", "new\u00a0york ", "NewYork")]
    dataset = graph([*line(0, 6), *line(1, 6, back=True)], (), (), entities=8, relations=2)
    spelt = Dataset(
        "g", Vocabulary("entity", names), Vocabulary("relation", ("r", "R")), *(dataset[s] for s in SPLITS)
    )
    found = texts(spelt, "warning")
    told = "'caf\u00e9' and 'cafe\u0301', 'New York' and 'new\\xa0york ' and 'NewYork'"
    only = "differ from others in case, spaces or Unicode form only"
    assert f"5 names of entities {only} ({told})" in found
    assert f"2 names of relations {only} ('r' and 'R')" in found
    assert not any(only in text for text in texts(dataset))


def pick(ids, count, draw):
    return ids[torch.randint(len(ids), (count,), generator=draw)]


def composed(share, seed=0):
    """A graph in which r2 holds for so many of the pairs that r0, then r1 turned round give."""
    draw = torch.Generator().manual_seed(seed)
    xs, ys, zs = torch.arange(100), torch.arange(100, 200), torch.arange(200, 400)
    first = torch.stack([pick(xs, 300, draw), pick(ys, 300, draw)], 1)
    second = torch.stack([pick(zs, 600, draw), pick(ys, 600, draw)], 1)
    pairs = sorted({(x, z) for x, y in first.tolist() for z, w in second.tolist() if y == w})
    kept = [pair for pair in pairs if torch.rand((), generator=draw) < share]
    other = torch.randint(400, (100, 2), generator=draw).tolist()
    rows = [(0, *pair) for pair in first.tolist()] + [(1, *pair) for pair in second.tolist()]
    rows += [(2, *pair) for pair in kept] + [(3, *pair) for pair in other]
    return graph([(h, r, t) for r, h, t in rows], (), (), entities=400), len(kept) / len(pairs)


def test_a_relation_that_follows_from_two_others_is_told_with_its_shares():
    dataset, share = composed(0.8)
    (found,) = compositions(dataset)
    assert (found.relation, found.path) == ("r2", ("r0", "inverse of r1"))
    assert found.share == pytest.approx(share)  # every pair of the path was looked at
    assert found.covered == 1
    told = next(text for text in texts(dataset, "warning") if "follows" in text)
    assert told.startswith(
        f"r2 follows from r0, then inverse of r1 ({share:.0%} of the pairs that these join"
    )
    assert compositions(composed(0.3)[0]) == ()


def test_what_chance_would_join_too_is_no_composition():
    pairs = [(a, b) for a in range(12) for b in range(12) if a != b]
    dense = [(a, r, b) for r in range(3) for a, b in pairs]  # each relation joins all, whatever the path
    assert compositions(graph(dense, (), (), entities=12, relations=3)) == ()


def test_numbers_and_cells_of_several_values_are_told():
    people, sizes = [f"p{i}" for i in range(30)], [f"{i}.5" for i in range(10)]
    groups = [f"p{i}, p{i + 1}" for i in range(20)]
    diseases = [f"disease {i}, type {i}" for i in range(20)]
    names = [*people, *sizes, *groups, *diseases]
    starts = [names.index(part[0]) for part in (sizes, groups, diseases)]
    counts = len(sizes), len(groups), len(diseases)
    train = [
        (i % 30, r, start + i)
        for r, (start, count) in enumerate(zip(starts, counts, strict=True))
        for i in range(count)
    ]
    data = graph(train, (), (), len(names))
    found = [f for f in doctor(replace(data, entities=Vocabulary("entity", tuple(names)))) if ":" in f.what]
    told = {f.what.split(":")[0]: (f.level, f.what) for f in found if f.what[0] == "r"}
    assert "numbers or dates ('0.5', '1.5')" in told["r0"][1]
    assert told["r1"] == ("warning", "r1: 20 names hold several others ('p0, p1', 'p1, p2')")
    assert "r2" not in told


def test_the_stages_of_an_examination_are_told():
    told = []
    doctor(graph(line(0)), told.append)
    assert tuple(told) == STAGES


def test_what_many_lines_lack_is_said_once(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,r,b\n" + "c,r\n" * 9 + "d,,e\nf,r,g\n")
    once, apart = (finding.what for finding in examine_files(path))
    fields = f"{path}:2: expected 3 comma-separated fields (head, relation, tail), found 2, so no tail"
    pairs = "; a table of pairs is read by its first column: --columns '*'"
    assert once == f"{fields}{pairs}; likewise 8 lines more: 3, 4, 5, 6, ..."
    assert apart == f"{path}:11: the relation is empty; fill it in or remove the line"


def test_python_shows_what_was_found_line_by_line_and_as_a_table():
    found = modulekge.doctor(graph(line(0) + line(0)))
    assert any(
        line.startswith("warning: 20 triples of train are repeated; ") for line in repr(found).splitlines()
    )
    assert found.to_arrow().column_names == ["level", "what", "advice"]
