"""Wide tables: a fact for each filled cell, from files and from memory."""

import json

import pyarrow as pa
import pytest
from pyarrow import parquet

from modulekge.data.doctor import examine_files
from modulekge.data.reading import read_dataset, read_facts
from modulekge.errors import DataError

ROWS = [
    {"film": "Alien", "director": "Ridley Scott", "year": 1979, "genre": "horror"},
    {"film": "Blade Runner", "director": "Ridley Scott", "year": 1982, "genre": None},
    {"film": "Good, Bad", "director": "Sergio Leone", "year": 1966, "genre": "western"},
]
FACTS = {(row["film"], key, str(row[key])) for row in ROWS for key in row if key != "film" and row[key]}


def facts_of(source, columns=("film", "*")):
    found = read_facts(source, list(columns))
    names = (found.entities.names, found.relations.names, found.entities.names)
    return {tuple(part[i] for part, i in zip(names, row, strict=True)) for row in found.triples.tolist()}


def written(path):
    table = pa.Table.from_pylist(ROWS)
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        cut = "\t" if path.suffix == ".tsv" else ","
        rows = [
            list(ROWS[0]),
            *(["" if cell is None else str(cell) for cell in row.values()] for row in ROWS),
        ]
        quoted = [[f'"{cell}"' if "," in cell and cut == "," else cell for cell in row] for row in rows]
        path.write_text("".join(cut.join(row) + "\n" for row in quoted))
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.parquet"])
@pytest.mark.parametrize("head", ["film", "1"])
def test_each_filled_cell_of_a_file_is_a_fact(tmp_path, name, head):
    if (name, head) == ("t.jsonl", "1"):
        pytest.skip("keys of objects have no numbers")
    assert facts_of(written(tmp_path / name), (head, "*")) == FACTS


def test_each_filled_cell_in_memory_is_a_fact():
    assert facts_of(pa.Table.from_pylist(ROWS)) == facts_of(ROWS) == FACTS
    assert facts_of([{"id": 1, "knows": [2, 3], "likes": float("nan")}], ("id", "*")) == {
        ("1", "knows", "2"),
        ("1", "knows", "3"),
    }
    lists = pa.table({"id": ["a", "b"], "tags": [["x", "y"], []]})
    assert facts_of(lists, ("id", "*")) == {("a", "tags", "x"), ("a", "tags", "y")}


def test_a_column_that_joins_nothing_is_left_out_and_said():
    rows = [{"id": f"p{i}", "mail": f"p{i}@example.org", "boss": f"p{i // 2}"} for i in range(40)]
    found = read_facts(rows, ["id", "*"])
    assert found.relations.names == ("boss",)  # whose cells are ids, too
    assert found.notes == ("list: column 'mail' is left out: 100% of its cells stand nowhere else",)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_without_a_name_the_first_column_has_the_heads(tmp_path, name):
    assert facts_of(written(tmp_path / name), ["*"]) == facts_of(pa.Table.from_pylist(ROWS), ["*"]) == FACTS


@pytest.mark.parametrize("name", ["films.csv", "films.parquet", "films.jsonl", None])
def test_columns_may_be_chosen_and_their_cells_cut(tmp_path, name):
    rows = [{**row, "with": text} for row, text in zip(ROWS, ["Ann; Bo", "Bo", "Cy;Ann"], strict=True)]
    source = pa.Table.from_pylist(rows)
    if name:
        source = tmp_path / name
        if source.suffix == ".csv":
            text = [
                ",".join(f'"{cell or ""}"' for cell in line) for line in ([*rows[0]], *map(dict.values, rows))
            ]
            source.write_text("\n".join(text) + "\n")
        elif source.suffix == ".parquet":
            parquet.write_table(pa.Table.from_pylist(rows), source)
        else:
            source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    chosen = {fact for fact in FACTS if fact[1] == "genre"}
    cast = [("Alien", "Ann Bo"), ("Blade Runner", "Bo"), ("Good, Bad", "Cy Ann")]
    cut = {(film, "with", who) for film, people in cast for who in people.split()}
    assert facts_of(source, ("film", "*genre", "*with[;]")) == chosen | cut
    assert facts_of(source, ("film", "*", "*with[;]")) == FACTS | cut


def test_a_chosen_column_has_to_be_there_and_may_have_brackets():
    with pytest.raises(DataError, match="no column 'gender'; did you mean genre"):
        facts_of(ROWS and pa.Table.from_pylist(ROWS), ("film", "*gender"))
    odd = pa.table({"film": ["a", "b"], "size[m]": ["1m2", "2m3"]})
    assert facts_of(odd, ("film", "*size[m]")) == {("a", "size[m]", "1m2"), ("b", "size[m]", "2m3")}


def test_a_table_in_another_encoding_is_said_to_be(tmp_path):
    path = tmp_path / "films.csv"
    path.write_bytes("film,genre,note\nAlien,horror,\nAmélie,,fine\n".encode("cp1252"))
    with pytest.raises(DataError, match=r"films.csv:3: not UTF-8 text"):
        read_facts(path, ["film", "*"])


def test_a_column_of_names_gives_the_labels():
    rows = [{"id": "p1", "name": "Ada", "boss": "p2"}, {"id": "p2", "name": "Grace", "boss": None}]
    found = read_facts(rows, ["*"])
    assert (found.relations.names, found.entities.names) == (("boss",), ("p1", "p2"))
    assert [found.entities.label(i) for i in range(2)] == ["Ada", "Grace"]
    assert found.notes == ("list: column 'name' gives the labels: 100% of its cells stand nowhere else",)
    shared = [{"id": f"p{i}", "name": "Ada" if i < 9 else f"n{i}"} for i in range(20)]
    assert facts_of(shared, ["*"]) >= {("p0", "name", "Ada"), ("p8", "name", "Ada")}


def test_tables_of_a_folder_or_a_list_are_one_graph(tmp_path):
    (tmp_path / "pairs.csv").write_text("product,bought_with\nAlien,Heat\nHeat,Blade Runner\n")
    (tmp_path / "labels.csv").write_text("Heat,The Heat\n")
    (tmp_path / "notes.txt").write_text("not of the graph\n")
    films, pairs = written(tmp_path / "films.csv"), tmp_path / "pairs.csv"
    every = FACTS | {("Alien", "bought_with", "Heat"), ("Heat", "bought_with", "Blade Runner")}
    table = pa.table({"product": ["Alien", "Heat"], "bought_with": ["Heat", "Blade Runner"]})
    for source in (tmp_path, [films, pairs], [str(films), table], [pa.Table.from_pylist(ROWS), table]):
        assert facts_of(source, ["*"]) == every
    found = read_facts(tmp_path, ["*"])
    assert found.notes == (f"{tmp_path}: read as one graph: films.csv, pairs.csv",)
    assert found.entities.label(found.entities.find("Heat")) == "The Heat"
    dataset = read_dataset(tmp_path, columns=["*"])
    assert sum(len(dataset[split]) for split in ("train", "valid", "test")) == len(every)


def test_a_chosen_column_may_be_in_one_of_several_tables(tmp_path):
    (tmp_path / "films.csv").write_text("film,by,cast\nAlien,Scott,Ann; Bo\nHeat,Mann,Bo\n")
    (tmp_path / "people.csv").write_text("name,born\nAnn,Rome\n")
    cast = {("Alien", "cast", "Ann"), ("Alien", "cast", "Bo"), ("Heat", "cast", "Bo")}
    rest = {("Alien", "by", "Scott"), ("Heat", "by", "Mann"), ("Ann", "born", "Rome")}
    tables = [tmp_path / "films.csv", tmp_path / "people.csv"]
    for source in (tmp_path, tables, tables[::-1]):
        assert facts_of(source, ["*", "*cast[;]"]) == cast | rest
        assert facts_of(source, ["*cast[;]"]) == cast
        assert facts_of(source, ["*cast[;]", "*born"]) == cast | {("Ann", "born", "Rome")}
        with pytest.raises(DataError, match="no column 'cats'; did you mean cast"):
            facts_of(source if source != tables[::-1] else tables[:1], ["*", "*cats[;]"])
    assert facts_of(tables[0], ["*cast[;]"]) == cast


def test_a_column_whose_cells_hold_several_values_is_said_to_be_cut(tmp_path):
    rows = [{"film": f"f{i}", "by": f"d{i % 3}", "cast": f"a{i % 7}; a{i % 9}; a{i % 11}"} for i in range(40)]
    (note,) = read_facts(rows, ["*"]).notes
    assert note.endswith("nowhere else, but what is between ';' does: *cast[;] among the columns takes it")


def test_what_is_wrong_with_a_table_of_a_folder_is_said(tmp_path):
    written(tmp_path / "films.csv")
    (tmp_path / "pairs.csv").write_text("a,b\nAlien,Heat\n")
    with pytest.raises(DataError, match=r"pairs\.csv: no column 'film'"):
        read_facts(tmp_path, ["film", "*"])
    with pytest.raises(DataError, match=r"pairs\.csv:1: expected 3 .* by its first column: --columns"):
        read_facts(tmp_path / "pairs.csv")
    (found, *_) = examine_files(tmp_path, ["film", "*"])
    assert "pairs.csv: no column 'film'" in found.what
    for name in ("a.ttl", "b.ttl"):
        (tmp_path / "rdf").mkdir(exist_ok=True)
        (tmp_path / "rdf" / name).write_text("_:x <http://e.org/p> <http://e.org/y> .\n")
    with pytest.raises(DataError, match=r"a\.ttl and b\.ttl both have blank nodes"):
        read_facts(tmp_path / "rdf")


def test_numbers_of_rows_are_no_names(tmp_path):
    """As pandas writes them, in a first column without a title, and as its frames hand them on."""
    (tmp_path / "t.csv").write_text(",film,by\n0,Alien,Scott\n1,Heat,Mann\n")
    assert facts_of(tmp_path / "t.csv", ["*"]) == {("Alien", "by", "Scott"), ("Heat", "by", "Mann")}
    assert "column 1 is left out: it has no name" in read_facts(tmp_path / "t.csv", ["*"]).notes[0]
    by_number = facts_of(tmp_path / "t.csv", ["1", "*"])
    assert {("0", "film", "Alien"), ("0", "by", "Scott")} <= by_number
    frame = pa.table({"film": ["Alien"], "by": ["Scott"], "__index_level_0__": [7]})
    assert facts_of(frame, ["film", "*"]) == {("Alien", "by", "Scott")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("film,year\nAlien,1979\n", "no column 'flim'; did you mean film?"),
        ("flim,year\n,1979\n", "row 1: flim holds 0 names; one says what the row is about"),
        ("flim,flim\na,b\n", "1: two columns have one title; rename one of them"),
        ("flim,year\na,b,c\n", "2: expected 2 comma-separated fields (flim, year), found 3"),
        ("", "no columns; expected three"),
        ("flim\na\n", "no triples; each line should hold head, relation and tail"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, text, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(DataError) as error:
        read_facts(path, ["flim", "*"])
    assert message in str(error.value)
    (finding,) = examine_files(path, ["flim", "*"])
    assert message in finding.what


def test_rows_without_titles_are_refused():
    with pytest.raises(DataError, match="row 1: its columns have no names; write an object"):
        read_facts([("a", "b")], ["id", "*"])
    with pytest.raises(DataError, match="row 1: holds an object in an object"):
        read_facts([{"id": "a", "of": {"b": 1}}], ["id", "*"])
