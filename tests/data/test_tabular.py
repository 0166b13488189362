"""What is in memory is read as the same triples in a file are."""

from collections import namedtuple

import networkx as nx
import numpy as np
import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modulekge.data.benchmarks import SPLITS
from modulekge.data.reading import read_facts
from modulekge.data.registry import open_dataset
from modulekge.errors import DataError

ROLES = ("head", "relation", "tail")
ROWS = [(f"e{i % 20}", "near" if i % 3 else "in", f"e{(7 * i + 1) % 20}") for i in range(60)]
COLUMNS = dict(zip(ROLES, map(list, zip(*ROWS, strict=True)), strict=True))


class Stream:
    """A table of nobody's: all it has is the interface."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def arrow(rows=ROWS, titles=ROLES):
    return pa.table(dict(zip(titles, map(list, zip(*rows, strict=True)), strict=True)))


def pandas_frame():
    return pytest.importorskip("pandas").DataFrame(COLUMNS)


def filtered_frame():
    frame = pytest.importorskip("pandas").DataFrame([("x", "y", "z"), *ROWS, ("x", "y", "z")], columns=ROLES)
    frame = frame.sample(frac=1, random_state=0).sort_index()
    return frame[frame["head"] != "x"].set_index(np.arange(len(ROWS)) * 3 + 5)


def category_frame():
    return pandas_frame().astype("category")


def polars_frame():
    return pytest.importorskip("polars").DataFrame(COLUMNS)


def polars_categories():
    polars = pytest.importorskip("polars")
    return polars.DataFrame(COLUMNS).with_columns(polars.all().cast(polars.Categorical))


def duckdb_relation():
    duckdb = pytest.importorskip("duckdb")
    return duckdb.from_arrow(arrow())


IN_MEMORY = {
    "tuples": lambda: ROWS,
    "lists": lambda: [list(row) for row in ROWS],
    "named tuples": lambda: [namedtuple("Triple", ROLES)(*row) for row in ROWS],
    "a generator": lambda: (row for row in ROWS),
    "a header first": lambda: [ROLES, *ROWS],
    "dicts": lambda: [dict(zip(reversed(ROLES), reversed(row), strict=True)) for row in ROWS],
    "numpy": lambda: np.array(ROWS),
    "arrow": arrow,
    "arrow, other order": lambda: arrow().select(["tail", "head", "relation"]),
    "arrow, untitled": lambda: arrow(titles=("f0", "f1", "f2")),
    "arrow, batches": lambda: pa.Table.from_batches(arrow().to_batches(max_chunksize=7)),
    "arrow, dictionaries": lambda: pa.table(
        {role: pa.array(names).dictionary_encode() for role, names in COLUMNS.items()}
    ),
    "arrow, an index first": lambda: arrow().add_column(0, "__index_level_0__", [list(range(len(ROWS)))]),
    "a record batch": lambda: arrow().to_batches()[0],
    "the interface": lambda: Stream(arrow()),
    "train alone": lambda: {"train": ROWS},
    "pandas": pandas_frame,
    "pandas, filtered": filtered_frame,
    "pandas, categories": category_frame,
    "pandas, untitled": lambda: pytest.importorskip("pandas").DataFrame(ROWS),
    "polars": polars_frame,
    "polars, categories": polars_categories,
    "polars, untitled": lambda: pytest.importorskip("polars").DataFrame(ROWS, orient="row"),
    "duckdb": duckdb_relation,
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "graph.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in ROWS))
    return path


@pytest.mark.parametrize("kind", IN_MEMORY)
def test_the_data_set_is_that_of_the_same_file(file, kind):
    graph = open_dataset(IN_MEMORY[kind](), seed=3)
    assert graph.fingerprint == open_dataset(file, seed=3).fingerprint
    assert graph.name == "graph"
    assert graph.notes == tuple(
        note.replace(str(file), type(IN_MEMORY[kind]()).__name__) for note in open_dataset(file).notes
    )


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=30, max_size=60, unique=True), st.integers(0, 5)
)
def test_rows_and_columns_agree(rows, seed):
    try:
        expected = open_dataset(rows, seed=seed).fingerprint
    except DataError as error:
        with pytest.raises(DataError, match=str(error).removeprefix("list: ")):
            open_dataset(arrow(rows), seed=seed)
    else:
        assert open_dataset(arrow(rows), seed=seed).fingerprint == expected


def test_splits_are_those_that_are_given(tmp_path):
    parts = {"train": ROWS[:40], "valid": ROWS[40:48], "test": ROWS[48:]}
    for split, rows in parts.items():
        (tmp_path / f"{split}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    mixed = {"train": arrow(parts["train"]), "validation": tmp_path / "valid.tsv", "test": parts["test"]}
    expected = open_dataset(tmp_path).fingerprint
    assert open_dataset(parts).fingerprint == open_dataset(mixed).fingerprint == expected
    graph = open_dataset(parts)
    assert [len(graph[split]) for split in SPLITS] == [len(rows) for rows in parts.values()]


def test_columns_and_labels_are_chosen_as_of_a_file(file, tmp_path):
    wide = arrow([(0.5, *row) for row in ROWS], ("weight", "a", "b", "c"))
    labels = {"e0": "Zero", "near": "is near"}
    (tmp_path / "labels.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in labels.items()))
    expected = open_dataset(file, labels=tmp_path / "labels.tsv", descriptions={"e1": "The first."})
    table = pa.table({"name": list(labels), "label": list(labels.values())})
    for columns in (("a", "b", "c"), (2, 3, 4)):
        for texts in (labels, table, list(labels.items()), tmp_path / "labels.tsv"):
            graph = open_dataset(wide, columns=columns, labels=texts, descriptions={"e1": "The first."})
            assert graph.fingerprint == expected.fingerprint
            assert graph.entities.labels == expected.entities.labels
            assert graph.relations.label(graph.relations.find("is near")) == "is near"
            assert graph.entities.description(graph.entities.find("e1")) == "The first."
    rows = [(0.5, *row) for row in ROWS]
    assert open_dataset(rows, columns=(2, 3, 4)).fingerprint == expected.fingerprint
    assert open_dataset(ROWS, labels={"nobody": "x"}).notes[0].startswith("dict: none of its names is in")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([*ROWS[:16], ("a", "b")], "list: row 17: expected 3 fields, found 2"),
        ([*ROWS[:16], ("a", "", "b")], "list: row 17: the relation is empty"),
        ([*ROWS[:16], ("a", None, "b")], "list: row 17: the relation is null, not a name"),
        ([*ROWS[:16], ("a", "r", object())], "list: row 17: the tail is \"<object"),
        ([*ROWS[:16], "abc"], "list: row 17: 'abc': expected three values"),
        ([ROLES, *ROWS[:15], ("a", "b", 1.5)], "list: row 17: the tail is 1.5, not a name"),
        ([("a", "r", "b", "c")], "list: row 1: which of the 4 columns 1 a, 2 r, 3 b, 4 c are head, relation"),
        ([], "list: no triples; each row should hold head, relation and tail"),
        (b"abc", "bytes: is no table; give a file, a list of"),
        ({"a", "b"}, "set: row 1: "),
        (arrow([("a", "r", "b"), ("a", None, "b")]), "Table: row 2: the relation is empty; fill it in"),
        (arrow([("a", "r", "b\0")]), "Table: row 1: the tail holds a NUL character"),
        (arrow([("a", 0.5, "b")]), "Table: column 'relation' holds double; names should be text"),
        (arrow([("a", "r", "b")], ("x", "y", "z")), r"which of the 3 .* --columns \(columns="),
        (Stream(arrow([("a", "r", "b", 1)], ("x", "y", "z", "w"))), "Stream: which of the 4 columns 1 x"),
        ({"train": ROWS, "valid": ROWS}, "dict: its keys are 'train', 'valid'; expected 'train'"),
        ({"train": ROWS, "dev": ROWS, "valid": ROWS, "test": ROWS}, "dict: its keys are"),
        ({"head": ["a"], "relation": ["r"], "tail": ["b"]}, "dict: its keys are 'head', 'relation', 'tail'"),
        ({"train": ROWS, "valid": [("a", "b")], "test": ROWS}, "^valid: row 1: expected 3 fields, found 2"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_row(source, message):
    with pytest.raises(DataError, match=message):
        open_dataset(source)


def test_bytes_that_are_no_text_are_refused():
    bad = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    with pytest.raises(DataError, match=r"Stream: .*UTF8"):
        open_dataset(Stream(pa.table({"head": bad, "relation": ["r"], "tail": ["b"]})))


def test_a_header_is_not_to_be_chosen_and_a_column_has_to_be_there():
    with pytest.raises(DataError, match="only tables as text have a header"):
        open_dataset(ROWS, header=True)
    with pytest.raises(DataError, match=r"Table: no column 'hed'; did you mean head\?"):
        open_dataset(arrow(), columns=("hed", "relation", "tail"))
    with pytest.raises(DataError, match=r"labels: row 1: .* expected a name and its label"):
        open_dataset(ROWS, labels=[("a", "b", "c")])
    with pytest.raises(DataError, match="labels: row 1"):
        open_dataset(ROWS, labels=arrow())


def test_columns_of_mixed_values_are_refused():
    pandas = pytest.importorskip("pandas")
    mixed = pandas.DataFrame({"head": ["a", 3], "relation": ["r", "r"], "tail": ["b", "c"]}, dtype=object)
    with pytest.raises(DataError, match=r"DataFrame: .* make its columns text or whole numbers"):
        open_dataset(mixed)
    with pytest.raises(DataError, match=r"labels: .* make its columns text"):
        open_dataset(ROWS, labels=mixed[["head", "tail"]])


def test_places_are_those_of_rows():
    assert read_facts(arrow()).place(4) == "Table: row 5"
    assert read_facts([ROLES, *ROWS]).place(4) == "list: row 6"
    assert read_facts({"train": ROWS}).place(4) == "dict: row 5"
    assert read_facts({"train": ROWS, "valid": ROWS, "test": ROWS}).place(4) == "dict"


TURTLE = (
    "".join(f"<x:{h}> <x:{r}> <x:{t}> .\n" for h, r, t in ROWS)
    + """
<x:e0> <http://www.w3.org/2000/01/rdf-schema#label> "null"@de, "zero"@en ; <x:weighs> 3 .
<x:near> <http://www.w3.org/2000/01/rdf-schema#label> "is near" .
"""
)


def oxigraph_store():
    store = ox.Store()
    store.load(TURTLE.encode(), ox.RdfFormat.TURTLE)
    return store


def oxigraph_dataset():
    return ox.Dataset(reversed(list(oxigraph_store())))


def rdflib_graph():
    return pytest.importorskip("rdflib").Graph().parse(data=TURTLE, format="turtle")


def rdflib_dataset():
    dataset = pytest.importorskip("rdflib").Dataset()
    for triple in rdflib_graph():
        dataset.add(triple)
    return dataset


@pytest.mark.filterwarnings("ignore:Dataset:DeprecationWarning")  # of rdflib about itself
@pytest.mark.parametrize("make", [oxigraph_store, oxigraph_dataset, rdflib_graph, rdflib_dataset])
def test_graphs_of_rdf_are_read_as_their_files(tmp_path, make):
    lines = sorted(f"<x:{h}> <x:{r}> <x:{t}> .\n" for h, r, t in ROWS)
    (tmp_path / "sorted.nt").write_text("".join(dict.fromkeys(lines)))
    graph = open_dataset(make())
    assert graph.fingerprint == open_dataset(tmp_path / "sorted.nt").fingerprint
    assert graph.entities.labels["x:e0"] == "zero"
    assert graph.relations.label(graph.relations.find("is near")) == "is near"
    assert graph.notes[0] == (
        f"{type(make()).__name__}: 4 triples with a literal are left out, 3 of them labels, which are shown"
    )
    with pytest.raises(DataError, match="RDF has no columns to choose"):
        open_dataset(make(), columns=(1, 2, 3))


def test_blank_nodes_are_marked_and_triples_about_triples_left_out():
    a, r, blank = ox.NamedNode("x:a"), ox.NamedNode("x:r"), ox.BlankNode("b1")
    store = ox.Dataset([ox.Quad(a, r, blank), ox.Quad(blank, r, a), ox.Quad(a, r, ox.Triple(a, r, a))])
    facts = read_facts(store)
    assert facts.blank
    assert set(facts.entities.names) == {"x:a", "_:b1"}
    assert facts.notes == ("Dataset: 1 triple about triples is left out",)


def multigraph(kind=nx.MultiDiGraph, **attributes):
    graph = kind()
    for h, r, t in ROWS:
        graph.add_edge(h, t, **{name: r if value is None else value for name, value in attributes.items()})
    return graph


def triples(source, **options):
    facts = read_facts(source, **options)
    names = facts.entities.names
    return {(names[h], facts.relations.names[r], names[t]) for h, r, t in facts.triples.tolist()}


def test_edges_are_triples_whose_relation_is_a_key_or_an_attribute():
    assert triples(multigraph(key=None)) == set(ROWS)
    assert triples(multigraph(relation=None, weight=2)) == set(ROWS)
    assert triples(multigraph(key=None, type="of")) == set(ROWS)
    assert triples(multigraph(how=None), columns=("source", "how", "target")) == set(ROWS)
    turned = {(t, r, h) for h, r, t in ROWS}
    assert triples(multigraph(key=None), columns=("target", "key", "source")) == turned
    single = multigraph(nx.DiGraph, relation=None)
    assert triples(single) <= set(ROWS)
    assert len(triples(single)) == single.number_of_edges()


def test_labels_of_nodes_are_kept_and_undirected_edges_are_noted():
    graph = multigraph(nx.MultiGraph, key=None)
    graph.add_node("e0", label="Zero", description="Nothing.")
    dataset = open_dataset(graph)
    assert (dataset.entities.labels, dataset.entities.descriptions) == ({"e0": "Zero"}, {"e0": "Nothing."})
    assert dataset.notes[0] == "MultiGraph: has no directions; each edge is read one way, once"
    assert open_dataset(multigraph(key=None)).notes == ()


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (multigraph(), "MultiDiGraph: which of the 3 columns 1 source, 2 key, 3 target are head, relation"),
        (multigraph(type=None, label=None), "which of the 5 columns"),
        (nx.MultiDiGraph(), "MultiDiGraph: no triples"),
        (nx.MultiDiGraph([("a", "b", {"relation": "r"}), ("b", "c", {})]), "edge 2: no 'relation' among the"),
        (nx.MultiDiGraph([("a", (1, 2), "r")]), "edge 1: the tail is \\[1, 2\\], not a name"),
    ],
)
def test_edges_without_a_relation_are_refused(graph, message):
    with pytest.raises(DataError, match=message):
        open_dataset(graph)
