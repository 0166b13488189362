"""Several processes read the graph that one reads, and none of them all of it."""

import json
import random
from pathlib import Path

import pytest
from distributed.reading import BLOCKS, outcome
from program import launch

from modulekge.data.reading import read_dataset
from modulekge.errors import DataError
from modulekge.run.train import load
from modulekge.workers import ALONE

JOB = Path(__file__).with_name("reading.py")
SPLITS = "train", "valid", "test"
HEADERS = ("", "head\trelation\ttail\n", "object\tpredicate\tsubject\r\n", "\n\r\n", "\ufeff")
NAMES = ("a", "b", "ü", "北京", "a ", " ü", "\ufeffa", '"q', "007", "#", "'", "𝄞" * 9, "x" * 70)
ODD = 12
PROBLEMS = {
    "few fields": ("train.tsv:51: expected 3 tab-separated fields (head, relation, tail), found 2"),
    "empty name": "test.tsv:7: the tail is empty",
    "not text": "train.tsv:60: not UTF-8 text",
    "long line": "valid.tsv:3: the line is longer than 0 MiB",
    "only a header": "valid.tsv: no triples",
    "no room": "cannot be written (File too large)",
}


def odd_graph(folder, rng):
    """Write a graph with all that a line may hold, and lines that differ in their ends."""
    names = rng.sample(NAMES, rng.randrange(2, len(NAMES)))
    for split in SPLITS:
        rows = ["\t".join(rng.choices(names, k=3)) for _ in range(rng.choice((1, 2, 7, 25)))]
        ends = [rng.choice(("\n", "\r\n", "\n\n", "\n\r\n")) for _ in rows[1:]] + [rng.choice(("", "\n"))]
        text = rng.choice(HEADERS) + "".join(map("".join, zip(rows, ends, strict=True)))
        (folder / f"{split}.tsv").write_bytes(text.encode())
    (folder / "labels.tsv").write_text("b\tBe\nnobody\tNone\n007\tBond\n")
    (folder / "relation_labels.tsv").write_text("a\tfirst\n")


def plain_graph(folder, size=60, **changes):
    for split, count in zip(SPLITS, (size, 10, 10), strict=True):
        rows = [b"e%d\tr%d\te%d\n" % (i, i % 3, (7 * i + 1) % size) for i in range(count)]
        for number, line in changes.get(split, {}).items():
            rows[number - 1] = line
        (folder / f"{split}.tsv").write_bytes(b"".join(rows))


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    place = tmp_path_factory.mktemp("graphs")

    def made(name):
        (place / name).mkdir()
        return place / name

    for seed in range(ODD):
        odd_graph(made(f"odd{seed}"), random.Random(seed))
    plain_graph(made("few fields"), train={51: b"a\tb\n"})
    plain_graph(made("empty name"), test={7: b"a\tr\t\n"})
    plain_graph(made("not text"), train={60: b"a\tr\t\xff\n"})
    plain_graph(made("long line"), valid={3: b"a\tr\t" + b"b" * 100 + b"\n"})
    plain_graph(
        made("only a header"), valid=dict.fromkeys(range(1, 11), b"") | {1: b"head\trelation\ttail\n"}
    )
    plain_graph(made("no room"))
    plain_graph(made("large"), size=3000)
    return place


@pytest.fixture(scope="module")
def several(graphs, tmp_path_factory):
    """What three processes say, of which one is neither the first nor the last."""
    out = tmp_path_factory.mktemp("job")
    done = launch(3, JOB, graphs, out)
    assert done.returncode == 0, done.stderr
    return json.loads((out / "found.json").read_text())


def expected(folder):
    """Return what the job says of a graph, read as ever."""
    graph = read_dataset(folder)
    labels = ({n: v.labels[n] for n in v.names if n in v.labels} for v in (graph.entities, graph.relations))
    sizes = len(graph.entities), list(graph.relations.names), sum(len(graph[split]) for split in SPLITS)
    return [graph.fingerprint, *labels, list(graph.notes), graph.name, *sizes]


@pytest.mark.parametrize("name", [f"odd{seed}" for seed in range(ODD)])
def test_all_read_what_one_reads(name, graphs, several, tmp_path):
    one = expected(graphs / name)
    for block in BLOCKS:
        assert outcome(graphs / name, block, tmp_path, ALONE) == [one]
        for process in several["graphs"][name][str(block)]:
            assert process == one


@pytest.mark.parametrize("name", PROBLEMS)
def test_all_say_what_is_wrong_and_leave_nothing(name, graphs, several):
    for block in BLOCKS:
        said = several["graphs"][name][str(block)]
        assert len(set(said)) == 1
        assert PROBLEMS[name] in said[0]
    assert several["left"] == []


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name not in ("long line", "no room")])
def test_one_process_says_the_same(name, graphs, several):
    with pytest.raises(DataError) as error:
        read_dataset(graphs / name)
    assert several["graphs"][name]["20"][0] == str(error.value)


def test_each_holds_a_part_of_the_names_and_of_the_triples(several):
    count = len(several["held"])
    for names, train, valid, test in several["held"]:
        assert 0.8 * 3000 / count < names < 1.2 * 3000 / count
        assert 0.8 * 3000 / count < train < 1.2 * 3000 / count
        assert 0 < valid < 10
        assert 0 < test < 10
    assert [sum(part) for part in zip(*several["held"], strict=True)] == [3000, 3000, 10, 10]


def test_the_program_ends_with_one_line_and_leaves_nothing(graphs, tmp_path):
    done = launch(2, "-m", "modulekge", "train", graphs / "few fields", "--out", tmp_path / "run")
    assert done.returncode != 0
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert PROBLEMS["few fields"] in errors[0]
    assert list(tmp_path.iterdir()) == []


def test_the_program_trains_on_what_all_have_read(graphs, tmp_path):
    settings = [word for key in ("model.k=2", "train.epochs=1") for word in ("--set", key)]
    train = ["-m", "modulekge", "train", graphs / "large", "--model", "DistMult", *settings]
    done = launch(2, *train, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "large with 2 processes" in done.stderr
    assert "read 3,020 triples of 3,000 entities" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    run = load(tmp_path / "run")
    assert run.dataset.fingerprint == read_dataset(graphs / "large").fingerprint
    assert run.folder.report().fingerprint == run.dataset.fingerprint
