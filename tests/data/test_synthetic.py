"""Synthetic graphs: exactly the size asked for, and what is held out follows from train."""

import json
import re
import resource
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program import call

from modulekge import evaluate, relation_patterns, train
from modulekge.data.benchmarks import SPLITS
from modulekge.data.registry import open_dataset
from modulekge.data.synthetic.generate import synthesise
from modulekge.data.synthetic.patterns import PATTERNS
from modulekge.data.writing import write_graph
from modulekge.errors import ConfigError, DataError, UnknownNameError

SMALL = ("--entities", "60", "--relations", "8", "--triples", "4e2", "--held-out", "10")


def whole(graph, split, rows=1 << 18):
    return [tuple(triple) for chunk in graph.chunks(split, rows) for triple in chunk.tolist()]


def bounds(*asked):
    """The least and the greatest number of triples, as messages say them."""
    found = []
    for triples in (0, 10**9):
        with pytest.raises(ConfigError) as told:
            synthesise(*asked[:2], triples, asked[2], 0)
        found.append(int(re.search(r"at (?:least|most) ([\d,]+)", str(told.value))[1].replace(",", "")))
    return found


def implied_by(train, names):
    """What train implies, by the laws that the names of relations tell; by brute force."""
    pairs = defaultdict(set)
    for h, r, t in train:
        pairs[names[r]].add((h, t))

    def then(first, second):
        ends = defaultdict(set)
        for y, z in pairs[second]:
            ends[y].add(z)
        return {(x, z) for x, y in pairs[first] for z in ends[y]}

    def turned(name):
        return {(t, h) for h, t in pairs[name]}

    found = set()
    for r, name in enumerate(names):
        kind, stem, letter = name.split("_")[0], name[:-1], name[-1]
        implied = set()
        if kind == "symmetric":
            implied = turned(name)
        elif kind == "inverse":
            implied = turned(stem + ("b" if letter == "a" else "a"))
        elif kind == "composed" and letter == "c":
            implied = then(stem + "a", stem + "b")
        elif kind == "hierarchical":
            implied = then(name, name)
        found |= {(h, r, t) for h, t in implied}
    return found


@settings(max_examples=30)
@given(
    st.integers(10, 60),
    st.integers(0, 9),
    st.lists(st.sampled_from(list(PATTERNS)), min_size=1, unique=True),
    st.floats(0, 1),
    st.floats(0, 1),
    st.integers(0, 5),
)
def test_a_graph_is_as_asked_for_and_train_implies_the_rest(entities, more, patterns, full, held, seed):
    relations = sum(PATTERNS[name].relations for name in patterns)
    relations += more if any(PATTERNS[name].relations == 1 for name in patterns) else 0
    least, most = bounds(entities, relations, patterns)
    triples = least + int(full * (most - least))
    implied = sum(family.implied for family in synthesise(entities, relations, triples, patterns, 0).families)
    held_out = int(held * (implied // 4))
    asked = (entities, relations, triples, patterns, held_out, seed)
    graph = synthesise(*asked)
    splits = {split: whole(graph, split) for split in SPLITS}
    every = [triple for split in SPLITS for triple in splits[split]]
    assert len(every) == len(set(every)) == triples
    assert {split: len(rows) for split, rows in splits.items()} == graph.sizes
    assert len(splits["valid"]) == len(splits["test"]) == held_out
    assert {e for h, _, t in splits["train"] for e in (h, t)} == set(range(entities))
    assert {r for _, r, _ in splits["train"]} == set(range(relations))
    assert len(set(graph.relations)) == relations
    assert {name.split("_")[0] for name in graph.relations} == set(patterns)
    assert set(splits["valid"] + splits["test"]) <= implied_by(splits["train"], graph.relations)
    assert not any(h == t for h, _, t in every)
    unsaid = implied_by(every, graph.relations) - set(every)  # where the count of triples cuts a family short
    assert all(n <= 8 for n in Counter(r for _, r, _ in unsaid).values())
    for split in SPLITS:
        assert whole(graph, split, rows=7) == splits[split]
        assert whole(synthesise(*asked), split) == splits[split]


def test_another_seed_makes_another_graph():
    one, other = (synthesise(100, 8, 800, held_out=20, seed=seed) for seed in (0, 1))
    assert set(whole(one, "train")) != set(whole(other, "train"))
    assert whole(one, "test") != whole(other, "test")


def test_no_law_holds_but_those_planted():
    """No two moves make up a third, over all relations that move along the ring."""
    graph = synthesise(601, 12, 6000, held_out=100)
    moves = defaultdict(dict)
    for h, r, t in whole(graph, "train") + whole(graph, "valid") + whole(graph, "test"):
        moves[graph.relations[r]][h] = t
    planted = {
        (f"{stem}a", f"{stem}b", f"{stem}c") for name in moves if (stem := name[:-1]).startswith("comp")
    }
    along = [name for name in moves if name.startswith(("inverse", "composed"))]
    found = set()
    for a, b, c in product(along, repeat=3):
        ends = [(moves[b][y], moves[c][x]) for x, y in moves[a].items() if y in moves[b] and x in moves[c]]
        if len(ends) > 20 and sum(here == there for here, there in ends) > 10:
            found.add((a, b, c))
    assert found == {law for a, b, c in planted for law in ((a, b, c), (b, a, c))}


def test_degrees_are_skewed():
    graph = synthesise(2000, 4, 8000, ["hierarchical"], 0)
    met = Counter(t for _, _, t in whole(graph, "train"))
    greatest = sorted(met.values(), reverse=True)
    assert greatest[0] > 50 * greatest[len(greatest) // 2]


@pytest.mark.parametrize(
    ("asked", "finding"),
    [
        ({"triples": 100_001}, "triples = 100,001: 60 entities and these relations hold at most"),
        ({"triples": 70}, "triples = 70: too few to mention each entity, and each relation 10 times"),
        ({"entities": 9}, "entities = 9: too few for a structure; give at least 10"),
        ({"relations": 6}, "too few for symmetric (1) and inverse (2) and composed (3)"),
        ({"relations": 6, "patterns": ["inverse", "composed"]}, "1 is left over (inverse takes 2"),
        ({"held_out": 200}, "triples follow from others, so at most"),
        ({"patterns": ["random"], "relations": 7}, "0 triples follow from others, so at most 0"),
        ({"seed": -1}, "seed = -1"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_said(asked, finding):
    with pytest.raises(ConfigError) as told:
        synthesise(**{"entities": 60, "relations": 8, "triples": 400, "held_out": 10, **asked})
    assert finding in str(told.value)


def test_an_unknown_pattern_gets_the_nearest_known():
    with pytest.raises(UnknownNameError, match=r"unknown pattern 'symetric'; did you mean symmetric\?"):
        synthesise(60, 8, 400, ["symetric"])


@pytest.mark.parametrize("options", [(), ("--gzip",)])
def test_the_folder_is_read_as_it_was_made(options, tmp_path):
    done = call("data", "synth", *SMALL, "--out", "made", "--json", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    kept = json.loads((tmp_path / "made" / "structure.json").read_text())
    assert told == {**kept, "path": "made"}
    read = open_dataset(tmp_path / "made")
    assert {split: len(read[split]) for split in SPLITS} == kept["triples"]
    graph = synthesise(60, 8, 400, held_out=10)
    assert (len(read.entities), set(read.relations.names)) == (60, set(graph.relations))
    for split in SPLITS:
        named = {(f"e{h}", graph.relations[r], f"e{t}") for h, r, t in whole(graph, split)}
        ids = zip(*read[split].T.tolist())
        assert {
            (read.entities.names[h], read.relations.names[r], read.entities.names[t]) for h, r, t in ids
        } == named
    assert [family["law"] for family in kept["families"]][1] == "inverse_1b(y, x) if inverse_1a(x, y)"
    assert sum(family["held_out"] for family in kept["families"]) == 20


def test_equal_seeds_make_equal_files(tmp_path):
    for name in ("one", "two"):
        assert call("data", "synth", *SMALL, "--gzip", "--out", name, cwd=tmp_path).returncode == 0
    for split in SPLITS:
        file = f"{split}.tsv.gz"
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_nothing_held_out_is_a_train_split_alone(tmp_path):
    done = call("data", "synth", *SMALL[:-1], "0", "--pattern", "random", "--out", "made", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "made").iterdir()} == {"train.tsv", "structure.json"}


@pytest.mark.parametrize(
    ("options", "finding"),
    [
        (("--triples", "1e9"), "triples = 1,000,000,000: 60 entities"),
        (("--pattern", "inverted"), "unknown pattern 'inverted'; did you mean inverse?"),
        (("--entities", "2.5"), "'2.5' is not a whole number, such as 5000000 or 5e6"),
        (("--entities", "many"), "'many' is not a whole number"),
        (("--entities", "inf"), "'inf' is not a whole number"),
        (("--out", "."), ".: exists already; remove it or choose another --out"),
        (("--out", "file/made"), "file/made: cannot be written (File exists)"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(options, finding, tmp_path):
    (tmp_path / "file").write_text("")
    done = call("data", "synth", *SMALL, *options, cwd=tmp_path)
    assert done.returncode == 2
    assert finding in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_leaves_nothing(tmp_path):
    limit = 1 << 16
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(DataError, match=r"made: cannot be written \(.*\); nothing was kept; free space"):
            write_graph(synthesise(1000, 8, 8000, held_out=100), tmp_path / "made")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.integration
def test_memory_does_not_grow_with_the_graph(tmp_path):
    """Ten times as many triples take no more memory to speak of."""
    program = """
import resource, sys
from pathlib import Path
from modulekge.data.synthetic.generate import synthesise
from modulekge.data.writing import write_graph
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
write_graph(synthesise(100_000, 40, 200_000), Path(sys.argv[1]) / "small")
before = peak()
write_graph(synthesise(250_000, 40, 2_000_000), Path(sys.argv[1]) / "large")
print(peak() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 30_000  # kilobytes, where the ids alone are 47,000
    assert (tmp_path / "large" / "train.tsv").stat().st_size > 50_000_000


@pytest.mark.integration
def test_models_learn_what_they_can_and_the_laws_are_found(tmp_path):
    """DistMult cannot tell there from back; ModulE-HH reaches what is to be reached."""
    write_graph(synthesise(151, 7, 980, ["symmetric", "inverse", "composed"], 30), tmp_path / "made")
    chosen = {"model.k": 16, "train.epochs": 30, "train.eval_every": 30, "train.batch": 100}
    runs = {
        name: train(tmp_path / "made", name, chosen, tmp_path / name) for name in ("ModulE-HH", "DistMult")
    }
    for name, inverse in (("ModulE-HH", True), ("DistMult", False)):
        report = evaluate(runs[name], "test")
        mrr = {row.name.split("_")[0]: row.both["mrr"] for row in report.relations}
        assert mrr["symmetric"] > 0.9
        assert (mrr["inverse"] > 0.9) == (mrr["composed"] > 0.9) == inverse
    laws = {(law.kind, law.relations) for law in relation_patterns(runs["ModulE-HH"]).claims}
    a, b, c = ("composed_2a", "composed_2b", "composed_2c")
    assert {law for law in laws if law[0] in ("symmetric", "inverse", "equal", "composition")} == {
        ("symmetric", ("symmetric_0",)),
        ("symmetric", ("symmetric_3",)),
        ("inverse", ("inverse_1a", "inverse_1b")),
        ("composition", (a, b, c)),
        ("composition", (b, a, c)),
    }
