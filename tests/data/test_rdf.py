"""N-Triples and Turtle."""

import gzip
import sys

import pytest

from modulekge.data.readers.files import problems, read_file
from modulekge.data.reading import read_dataset
from modulekge.data.statistics import statistics_of
from modulekge.errors import DataError

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
N_TRIPLES = f"""# a comment
<http://x/a> <http://x/r> <http://x/b> .
<http://x/a> <http://x/age> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://x/a> {LABEL} "Ach"@de .
<http://x/a> {LABEL} "Ah"@en-GB .
<http://x/a> {LABEL} "Oh" .
<http://x/r> {LABEL} "relates to" .
<http://x/b> {LABEL} "Beh"@fr .
_:n1 <http://x/r> <http://x/a> .
"""
TURTLE = """@prefix : <http://x/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:a :r :b ; :age 7 ; rdfs:label "Ach"@de, "Ah"@en-GB, "Oh" .
:r rdfs:label "relates to" . :b rdfs:label "Beh"@fr .
_:n1 :r :a .
"""
FOUND = [("http://x/a", "http://x/r", "http://x/b"), ("_:n1", "http://x/r", "http://x/a")]


def rows(graph):
    return [tuple(row.values()) for row in graph.splits[0].to_pylist()]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.nt", N_TRIPLES),
        ("g.nt.gz", N_TRIPLES),
        ("g.txt", N_TRIPLES.split("\n", 1)[1]),
        ("g.ttl", TURTLE),
        ("g.ttl.gz", TURTLE),
        ("g", TURTLE),
        ("bom.nt", "\ufeff" + N_TRIPLES),
        ("bom.txt", "\ufeff" + N_TRIPLES.split("\n", 1)[1]),
        ("bom.ttl.gz", "\ufeff" + TURTLE),
    ],
)
def test_triples_between_nodes_labels_and_the_count_of_literals(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    graph = read_file(path)
    assert rows(graph) == FOUND
    assert graph.labels == {"http://x/a": "Ah", "http://x/r": "relates to", "http://x/b": "Beh"}
    assert graph.notes == (
        f"{path}: 6 triples with a literal are left out, 5 of them labels, which are shown",
    )


def test_descriptions_in_english_or_without_a_language_go_before_others(tmp_path):
    path = tmp_path / "g.ttl"
    path.write_text(
        TURTLE
        + """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
        :a skos:definition "Anfang"@de, "" ; rdfs:comment "Start"@en, "Late" .
        :b <https://schema.org/description> "Suite\\nlongue"@fr ; skos:definition :a .
        :r <http://schema.org/description> "Joins." .
        """
    )
    graph = read_file(path)
    assert graph.descriptions == {
        "http://x/a": "Start",
        "http://x/b": "Suite\nlongue",
        "http://x/r": "Joins.",
    }
    assert len(rows(graph)) == 3  # a definition that is a node is a fact
    counts = "12 triples with a literal are left out, 5 of them labels and 6 of them descriptions"
    assert graph.notes == (f"{path}: {counts}, which are shown",)


def test_nodes_without_an_id_are_named_alike_each_time_and_apart_in_each_file(tmp_path):
    text = "<http://x/a> <http://x/r> [ <http://x/r> <http://x/b> ] .\n[] <http://x/r> <http://x/a> ."
    for name in ("train.ttl", "valid.ttl", "test.ttl"):
        (tmp_path / name).write_text(text)
    first, again = read_dataset(tmp_path), read_dataset(tmp_path)
    assert first.fingerprint == again.fingerprint
    assert {n for n in first.entities.names if n.startswith("_:")} == {
        f"_:{split}.ttl-{i}" for split in ("train", "valid", "test") for i in (1, 2)
    }


def test_triples_about_triples_are_left_out_and_counted(tmp_path):
    path = tmp_path / "g.nt"
    path.write_text("<http://a> <http://r> <<( <http://a> <http://r> <http://b> )>> .\n" + N_TRIPLES)
    assert read_file(path).notes[1] == f"{path}: 1 triple about triples is left out"


def test_labels_are_for_people_and_notes_reach_the_survey(tmp_path):
    lines = [f"<http://x/e{i}> <http://x/r> <http://x/e{i * 7 % 20}> .\n" for i in range(60)]
    path = tmp_path / "graph.nt"
    path.write_text("".join(lines) + f'<http://x/e1> {LABEL} "One" .\n<http://x/r> {LABEL} "is near" .\n')
    dataset = read_dataset(path)
    assert dataset.entities.names[dataset.entities.find("one")] == "http://x/e1"
    assert dataset.relations.label(0) == "is near"
    assert statistics_of(dataset).notes == dataset.notes != ()
    assert dataset.notes[0] in repr(dataset)  # in a notebook, too


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "g.nt",
            b"<http://a> <http://r> <http://b> .\n<http://a> <http://r> oops .\n",
            ":2: The object of a",
        ),
        ("g.nt", b"<http://a> <http://r> <http://b> .\n\n<http://a> <http://r> <http://\xff> .\n", ":3: "),
        ("g.nt", b"<http://a> <http://r> <http://b\0> .\n", ":1: "),
        ("g.ttl", b"@prefix : <http://x/> .\n:a :r :b .\n:a y:r :b .\n", ":3: "),
        ("g.ttl", b"<a> <r> <b> .\n", ":1: No scheme found in an absolute IRI; mend the line or remove it"),
        ("g.nt.gz", gzip.compress(N_TRIPLES.encode(), mtime=0)[:-12], ": after triple "),
        (
            "g.nt",
            b'<http://a> <http://r> "1" .\n',
            ": no triples; each line should hold head, relation and tail (",
        ),
        (
            "g.nt",
            b'<http://a> <http://r> "' + b"x" * (17 << 20),
            ": after triple 0: a line is longer than 8 MiB",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_bytes(text)
    with pytest.raises(DataError) as error:
        read_file(path)
    assert str(error.value).startswith(f"{path}{message}")
    assert "\n" not in str(error.value)
    assert list(problems(path)) == [str(error.value)]


def test_rdf_has_no_columns_and_needs_its_extra(tmp_path, monkeypatch):
    path = tmp_path / "g.nt"
    path.write_text(N_TRIPLES)
    with pytest.raises(DataError, match="no columns to choose"):
        read_file(path, ("1", "2", "3"))
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    with pytest.raises(DataError, match=r"pip install .*\[rdf\]'"):
        read_file(path)
