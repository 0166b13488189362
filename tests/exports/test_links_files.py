"""Links that are written for other systems, read back."""

import csv
import re

import pyoxigraph
import pytest
from program import call
from pyarrow import parquet

import modulekge
from modulekge.answers.questions import Link
from modulekge.errors import ModulekgeError
from modulekge.exports.links import links_writer
from modulekge.run.train import train

TERMS = "urn:modulekge:terms#"


@pytest.fixture
def links(odd):
    names, relations = odd.entities.names, odd.relations.names
    return [
        Link(name, relations[i % 2], names[-1 - i], -0.5 * i, (i + 1) / 9, i + 1, 2, None)
        for i, name in enumerate(names)
    ]


def as_neo4j_reads(path):
    """Rows of a CSV file in which, within quotes, a backslash escapes, as LOAD CSV has it by default."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, escapechar="\\", strict=True))


def test_a_folder_for_neo4j_holds_every_name_as_it_is(links, odd, tmp_path):
    links_writer(tmp_path / "neo")(links, odd)
    assert {path.name for path in (tmp_path / "neo").iterdir()} == {
        "entities.csv",
        "links.csv",
        "load.cypher",
    }
    rows = as_neo4j_reads(tmp_path / "neo" / "links.csv")
    assert [(r["head"], r["relation"], r["tail"]) for r in rows] == [
        (x.head, x.relation, x.tail) for x in links
    ]
    assert [float(r["probability"]) for r in rows] == [x.probability for x in links]
    entities = {r["name"]: r["label"] for r in as_neo4j_reads(tmp_path / "neo" / "entities.csv")}
    assert entities == {name: odd.entities.label(i) for i, name in enumerate(odd.entities.names)}
    script = (tmp_path / "neo" / "load.cypher").read_text()
    read = set(re.findall(r"row\.(\w+)", script))
    assert read == {"name", "label", *rows[0]} - {"split"}  # a new link stands in none
    assert set(re.findall(r"file:///(\S+)'", script)) == {"entities.csv", "links.csv"}
    assert "-[link:PREDICTED {relation: row.relation}]->" in script


@pytest.mark.parametrize("suffix", [".nt", ".ttl"])
def test_rdf_names_each_triple_with_its_probability_and_asserts_none(links, odd, tmp_path, suffix):
    links_writer(tmp_path / f"a{suffix}", "n:")(links, odd)
    store = pyoxigraph.Store()
    store.load(path=str(tmp_path / f"a{suffix}"))
    found = store.query(
        f"""PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> PREFIX kge: <{TERMS}>
        SELECT ?o ?score ?probability WHERE {{ ?x rdf:reifies <<( ?s ?p ?o )>>; kge:score ?score;
        kge:probability ?probability }} ORDER BY ?probability"""
    )
    rows = [[term.value for term in row] for row in found]
    assert [(float(s), float(p)) for _, s, p in rows] == [(x.score, x.probability) for x in links]
    assert rows[0][0] == "http://x/é"
    assert rows[-1][0] == "n:New%20York"
    assert {type(quad.subject) for quad in store} == {pyoxigraph.BlankNode}


def test_tables_hold_the_same_rows(links, odd, tmp_path):
    for ending in ("csv", "jsonl", "parquet"):
        links_writer(tmp_path / f"a.{ending}")(links, odd)
    rows = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert [{name: row[name] for name in vars(link)} for row, link in zip(rows, links, strict=True)] == [
        vars(link) for link in links
    ]
    for row in rows:
        assert row["head_label"] == odd.entities.label(odd.entities.find(row["head"]))
        assert row["tail_label"] == odd.entities.label(odd.entities.find(row["tail"]))
    assert list(rows[0])[-3:] == ["head_label", "relation_label", "tail_label"]


@pytest.mark.parametrize(
    ("target", "prefix", "message"),
    [
        ("a.xlsx", None, r"ends in \.csv, .* or \.ttl; or a folder, which Neo4j loads"),
        ("there", None, "there: exists already"),
        ("no/where", None, "there is no folder"),
        ("a.csv", "n:", r"a prefix is for RDF; end the name in \.nt or \.ttl"),
        ("a.nt", "no iri ", "expected the start of an IRI"),
    ],
)
def test_what_cannot_be_written_is_refused_before_there_are_links(tmp_path, target, prefix, message):
    (tmp_path / "there").mkdir()
    with pytest.raises(ModulekgeError, match=message):
        links_writer(tmp_path / target, prefix)


@pytest.fixture(scope="module")
def run(family, tmp_path_factory):
    settings = {"model.k": 8, "model.scalar_scale": 0.1, "train.epochs": 20, "train.batch": 8}
    run = train(family, "ModulE-HH", settings, tmp_path_factory.mktemp("runs") / "kin")
    modulekge.calibrate(run)
    return run.folder.path


def test_the_least_probable_links_are_left_out(run):
    asked = modulekge.Predictor(modulekge.load(run))
    every = asked.links(k=1000)
    middle = len(every) // 2
    least = (every[middle - 1].probability + every[middle].probability) / 2
    assert 0 < least < every[0].probability
    few = asked.links(k=1000, min_probability=least)
    # probabilities that are worked out for fewer at once may differ in their last bit
    assert [(x.head, x.relation, x.tail) for x in few] == [
        (x.head, x.relation, x.tail) for x in every if x.probability >= least
    ]
    assert len(few) == middle
    with pytest.raises(ModulekgeError, match="between 0 and 1"):
        asked.links(min_probability=1.5)


def test_a_dry_run_shows_and_writes_nothing(run, tmp_path):
    ask = ("links", run, "--limit", 3, "--out", "new.nt", "--prefix", "n:")
    done = call(*ask, "--dry-run", cwd=tmp_path)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 4)
    assert done.stderr.endswith("new.nt: 3 links would be written; nothing was\n")
    assert not (tmp_path / "new.nt").exists()
    assert call(*ask, cwd=tmp_path).stderr.splitlines()[1] == "3 rows in new.nt"
    assert len(list(pyoxigraph.parse(path=str(tmp_path / "new.nt")))) == 9
    assert call(*ask, "--dry-run", cwd=tmp_path).returncode == 2  # it is there now
    done = call("links", run, "--min-probability", 1, cwd=tmp_path)
    assert done.stderr.endswith("no new link has a probability of 1 or more\n")
