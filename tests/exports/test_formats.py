"""What is written for other tools, read back by others than ourselves."""

import contextlib
import re
import sys
from dataclasses import replace
from urllib.parse import unquote

import numpy as np
import pyarrow.parquet as pq
import pyoxigraph
import pytest
import torch
from program import call
from rows import ONE_OF_EACH

import modulekge
from modulekge.errors import ModulekgeError
from modulekge.exports import vectors
from modulekge.exports.formats import FORMATS, export
from modulekge.exports.rdf import write_rdf
from modulekge.models.spec import MODELS

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TERMS = "urn:modulekge:terms#"


def scores_of(run, split="test"):
    """What the model says of the questions of a split."""
    heads, relations, _ = run.dataset.questions(split).unbind(1)
    with torch.no_grad():
        return run.model(heads, relations).numpy()


def lines_of(path):
    """A plain reader of the .tsv files: split, then undo what README.md says of names."""
    undo = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\\\": "\\"}
    lines = path.read_text("utf-8").removesuffix("\n").split("\n")[1:]
    return [[re.sub(r"\\.", lambda m: undo[m[0]], cell) for cell in line.split("\t")] for line in lines]


def check_readme(run, folder):
    """Run the Python of README.md for each question; its scores are the model's."""
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text("utf-8"), re.DOTALL)
    for i, wanted in enumerate(scores_of(run)):
        names = {}
        with contextlib.chdir(folder):
            exec(code.replace("queries[0]", f"queries[{i}]"), names)
        np.testing.assert_allclose(names["scores"], wanted, rtol=1e-4, atol=1e-5)
        assert names["best"][0] == wanted.argmax()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_arrays_score_as_their_readme_says(family, drawn_run, tmp_path, name, bias):
    run = drawn_run(family, name, bias=bias)
    written = export(run, tmp_path / "arrays", to="numpy")
    assert written.path == tmp_path / "arrays"
    check_readme(run, written.path)
    assert np.load(written.path / "relations.npy").shape[0] == 6


@pytest.mark.parametrize("name", [name for name in ONE_OF_EACH if MODELS[name].tieable])
def test_tied_relations_are_written_once_and_ask_both_ways(family, drawn_run, tmp_path, name):
    run = drawn_run(family, name, reciprocal="tied")
    folder = export(run, tmp_path / "arrays", to="numpy").path
    check_readme(run, folder)
    assert len(np.load(folder / "relations.npy")) == len(lines_of(folder / "relations.tsv")) == 3


def test_heads_and_relations_make_the_queries(family, drawn_run, tmp_path):
    folder = export(drawn_run(family, "ModulE-RC"), tmp_path / "arrays", to="numpy").path
    heads, relations = np.load(folder / "heads.npy"), np.load(folder / "relations.npy")
    entities = [name for name, _ in lines_of(folder / "entities.tsv")]
    asked = [(name, side) for name, _, side in lines_of(folder / "relations.tsv")]
    for (given, relation, side, _), query in zip(
        lines_of(folder / "queries.tsv"), np.load(folder / "queries.npy"), strict=True
    ):
        s, x, y = heads[entities.index(given)].reshape(3, 3)
        scale, cos, sin = relations[asked.index((relation, side))].reshape(3, 3)
        moved = s * scale * (x + 1j * y) * (cos + 1j * sin)
        np.testing.assert_allclose(query, np.concatenate([moved.real, moved.imag]), rtol=1e-4, atol=1e-6)


def test_names_and_labels_beside_the_arrays(odd, drawn_run, tmp_path):
    folder = export(drawn_run(odd, "DistMult"), tmp_path / "arrays", to="numpy").path
    labels = [odd.entities.label(i) for i in range(8)]
    assert lines_of(folder / "entities.tsv") == [
        list(pair) for pair in zip(odd.entities.names, labels, strict=True)
    ]
    assert [line[2] for line in lines_of(folder / "relations.tsv")] == ["tail", "tail", "head", "head"]


@pytest.mark.parametrize(("name", "bias"), [("ModulE-HH", False), ("ModulE-HH", True), ("RotatE", True)])
def test_a_parquet_file_holds_names_labels_and_vectors(odd, drawn_run, tmp_path, name, bias, monkeypatch):
    monkeypatch.setattr(vectors, "_ROWS", 3)
    run = drawn_run(odd, name, bias=bias)
    table = pq.read_table(export(run, tmp_path / "v.parquet").path)
    assert table["name"].to_pylist() == list(odd.entities.names)
    assert table["label"].to_pylist()[0] == "The\tBig Apple"
    assert table["label"].to_pylist()[2] == "Zürich 北京"
    length = table.schema.field("vector").type.list_size
    found = torch.tensor(table["vector"].to_pylist()).view(8, length)
    entities = run.model.entities().flatten(1)
    assert torch.equal(found[:, : entities.shape[1]], entities)
    if bias:
        last = found[:, -1] if name == "ModulE-HH" else torch.tensor(table["bias"].to_pylist())
        assert torch.equal(last, run.model.entity_bias)


def test_word2vec_is_a_line_of_words_for_each_entity(odd, drawn_run, tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "_ROWS", 3)
    run = drawn_run(odd, "ModulE-HH", bias=True)
    lines = export(run, tmp_path / "v.vec").path.read_text("utf-8").splitlines()
    assert lines[0].split() == ["8", "13"]
    words = [line.split() for line in lines[1:]]
    assert [unquote(name) for name, *_ in words] == list(odd.entities.names)
    assert [name for name, *_ in words][:3] == ["New%20York", "tab%09here", "Zürich%20北京"]
    found = np.array([numbers for _, *numbers in words], dtype=np.float32)
    heads, relations, _ = odd.questions("test").unbind(1)
    queries = vectors.query_vectors(run.model, run.model.queries(heads, relations)).detach().numpy()
    np.testing.assert_array_equal(found[:, :-1], run.model.entities().flatten(1).detach().numpy())
    np.testing.assert_allclose(queries @ found.T, scores_of(run), rtol=1e-5, atol=1e-6)


def test_word2vec_has_no_place_for_the_bias_of_a_distance(family, drawn_run, tmp_path):
    with pytest.raises(ModulekgeError, match=r"adds a bias .* export to numpy or parquet"):
        export(drawn_run(family, "TransE", bias=True), tmp_path / "v.vec")
    assert not list(tmp_path.glob("*v.vec*"))


def statements(path):
    """The predictions in a file, by pyoxigraph's own query language."""
    store = pyoxigraph.Store()
    store.load(path=str(path))
    found = store.query(
        f"""PREFIX rdf: <{RDF}> PREFIX kge: <{TERMS}>
        SELECT ?s ?p ?o ?score ?probability WHERE {{
          ?x a rdf:Statement; rdf:subject ?s; rdf:predicate ?p; rdf:object ?o; kge:score ?score .
          OPTIONAL {{ ?x kge:probability ?probability }} }} ORDER BY DESC(?score)"""
    )
    return [[term and term.value for term in row] for row in found]


@pytest.mark.parametrize("suffix", [".nt", ".ttl"])
def test_predictions_are_statements_with_a_score_and_no_facts(tmp_path, suffix):
    rows = [
        ("New York", "lies in", "http://x/é", 2.5, 0.75),
        ('quo"te\ttab\n', "http://x/r", "北京 #1", -1e-9, None),
        ("_:b1", "p%q", "Star: a/b", -2.0, None),
    ]
    assert write_rdf(iter(rows), tmp_path / f"a{suffix}") == 3
    prefix = "urn:modulekge:"
    found = statements(tmp_path / f"a{suffix}")
    assert found[0] == [f"{prefix}New%20York", f"{prefix}lies%20in", "http://x/é", "2.5", "0.75"]
    for row, (head, _, tail, score, _) in zip(found, rows, strict=True):
        assert unquote(row[0].removeprefix(prefix)) == head
        assert unquote(row[2].removeprefix(prefix)) == tail
        assert float(row[3]) == score
    triples = list(pyoxigraph.parse(path=str(tmp_path / f"a{suffix}")))
    assert len(triples) == 3 * 5 + 1
    assert {type(t.subject) for t in triples} == {pyoxigraph.BlankNode}  # nothing is said of entities


def test_the_new_answers_to_a_question_as_rdf(odd, drawn_run, tmp_path):
    run = drawn_run(odd, "ModulE-HH")
    asked = {"relation": "lies in", "k": 8, "prefix": "http://names/"}
    export(run, tmp_path / "tails.nt", head="New York", **asked)
    answers = modulekge.predict(run, head="New York", relation="lies in", k=8, known="exclude")
    found = statements(tmp_path / "tails.nt")
    assert {row[0] for row in found} == {"http://names/New%20York"}
    assert [unquote(row[2].removeprefix("http://names/")) for row in found] == [a.name for a in answers]
    assert len(found) >= 7
    export(run, tmp_path / "heads.ttl", tail="New York", **asked)
    assert {row[2] for row in statements(tmp_path / "heads.ttl")} == {"http://names/New%20York"}


def test_of_two_entities_there_are_as_many_relations_as_the_graph_has(family, drawn_run, tmp_path):
    written = export(drawn_run(family, "ModulE-HH"), tmp_path / "between.nt", head="ada", tail="hal")
    assert written.note.startswith("3 new links")
    assert {row[1] for row in statements(tmp_path / "between.nt")} == {
        f"urn:modulekge:{name}" for name in family.relations.names
    }


def test_two_names_do_not_become_one_iri(family, drawn_run, tmp_path):
    names = replace(family.entities, names=("a b", "urn:modulekge:a%20b", *family.entities.names[2:]))
    run = drawn_run(replace(family, entities=names), "DistMult")
    asked = {"head": "a b", "relation": "parent"}
    with pytest.raises(ModulekgeError, match="'a b' and 'urn:modulekge:a%20b' are both entities; choose"):
        export(run, tmp_path / "a.nt", **asked)
    export(run, tmp_path / "a.nt", **asked, prefix="n:")
    names = replace(family.entities, names=("a:b", "urn:modulekge:a:b", *family.entities.names[2:]))
    run = drawn_run(replace(family, entities=names), "DistMult")
    export(run, tmp_path / "both.nt", head="a:b", relation="parent")  # which are IRIs, and two


def test_the_new_links_of_a_graph_as_rdf(family, drawn_run, tmp_path):
    run = drawn_run(family, "ModulE-HH")
    modulekge.calibrate(run)
    export(run, tmp_path / "links.nt", k=5, prefix="n:")
    links = modulekge.Predictor(modulekge.load(run.folder.path)).links(k=5)
    found = {(row[0], row[1], row[2], float(row[4])) for row in statements(tmp_path / "links.nt")}
    assert found == {(f"n:{x.head}", f"n:{x.relation}", f"n:{x.tail}", x.probability) for x in links}


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("arrays", {}, r"the format cannot be told from the name; end it in \.parquet, \.vec"),
        ("a.csv", {}, "or name one of numpy, parquet, word2vec, hub, index, rdf"),
        ("a", {"to": "numppy"}, "unknown format 'numppy'; did you mean numpy"),
        ("a.nt", {}, "has no calibration yet"),
        ("a.nt", {"relation": "parent", "head": "ada", "tail": "bob"}, "leave out exactly one"),
        ("a.nt", {"relation": "parnt", "head": "ada"}, "did you mean 'parent'"),
        ("a.nt", {"relation": "parent", "head": "ada", "prefix": "no iri "}, "expected the start of an IRI"),
        ("a.xml", {"to": "rdf", "relation": "parent", "head": "ada"}, r"ends in \.nt or \.ttl"),
        ("a.parquet", {"head": "ada"}, "export to parquet: no option head; it takes no options"),
        ("a", {"to": "hub", "k": 3}, "no option k; it takes without_facts"),
        ("a", {"to": "index", "expansion": 0}, "at least one candidate"),
    ],
)
def test_what_cannot_be_written_leaves_nothing(family, drawn_run, tmp_path, target, options, message):
    run = drawn_run(family, "DistMult")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ModulekgeError, match=message):
        export(run, tmp_path / target, **options)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("to", FORMATS)
def test_an_existing_target_is_kept(family, drawn_run, tmp_path, to):
    (tmp_path / "there.nt").write_text("mine")
    with pytest.raises(ModulekgeError, match="exists already; remove it or choose another target"):
        export(drawn_run(family, "DistMult"), tmp_path / "there.nt", to=to)
    assert (tmp_path / "there.nt").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_said_in_one_line(family, drawn_run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ModulekgeError, match=r"v\.vec: cannot be written \("):
        export(drawn_run(family, "DistMult"), tmp_path / "file" / "v.vec")


@pytest.mark.parametrize(
    ("package", "to", "target"), [("pyoxigraph", "rdf", "a.nt"), ("usearch.index", "index", "a")]
)
def test_what_is_not_installed_is_named(family, drawn_run, tmp_path, monkeypatch, package, to, target):
    monkeypatch.setitem(sys.modules, package, None)
    options = {"relation": "parent", "head": "ada"} if to == "rdf" else {}
    with pytest.raises(ModulekgeError, match=rf"pip install .*\[{to}\]'"):
        export(drawn_run(family, "DistMult"), tmp_path / target, to=to, **options)
    assert not (tmp_path / target).exists()


def test_the_command(family, drawn_run, tmp_path):
    run = drawn_run(family, "ModulE-HH").folder.path
    code, out, _ = call("export", run, "deep/v.parquet", cwd=tmp_path)
    assert (code, out) == (0, "deep/v.parquet: 8 entities: name, label and a vector of 12 numbers\n")
    code, out, _ = call(
        "export", run, "a.nt", "--head", "ada", "--relation", "child", "-k", "3", "--json", cwd=tmp_path
    )
    assert code == 0
    assert '"format": "rdf"' in out
    code, _, err = call("export", run, "a.nt", "--head", "ada", "--relation", "child", cwd=tmp_path)
    assert (code, err) == (2, "error: a.nt: exists already; remove it or choose another target\n")
    assert call("export", run, "b", "--to", "numpy", "-k", "3", cwd=tmp_path).returncode == 2
