"""JSON lines and Parquet, from files that are written here."""

import gzip
import json

import pyarrow as pa
import pytest
from pyarrow import parquet

from modulekge.data.readers.files import problems, read_file
from modulekge.data.reading import read_dataset
from modulekge.errors import DataError

TRIPLES = [("a", "r", "b c"), ("007", 'say "hi"', "a\tb"), ("日本", "r", "a")]


def rows(graph):
    return [tuple(row.values()) for row in graph.splits[0].to_pylist()]


def write_json(path, records):
    text = "\n".join(json.dumps(record) for record in records).encode() + b"\n\n"
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("name", ["g.jsonl", "g.jsonl.gz", "g.ndjson", "g.json", "g.txt", "g"])
@pytest.mark.parametrize(
    "keys",
    [("head", "relation", "tail"), ("subject", "predicate", "object"), ("tail", "head", "relation"), ()],
)
def test_json_lines_by_ending_and_by_content(tmp_path, name, keys):
    records = [list(triple) for triple in TRIPLES]
    if keys:
        order = ("subject", "predicate", "object") if "subject" in keys else ("head", "relation", "tail")
        records = [{key: triple[order.index(key)] for key in keys} for triple in TRIPLES]
    assert rows(read_file(write_json(tmp_path / name, records))) == TRIPLES


def test_whole_numbers_are_names_and_columns_are_chosen(tmp_path):
    path = write_json(
        tmp_path / "g.jsonl", [{"s": 1, "weight": 0.5, "o": 2, "p": "r"}, {"p": "r", "s": 3, "o": 4}]
    )
    assert rows(read_file(path, ("s", "p", "o"))) == [("1", "r", "2"), ("3", "r", "4")]
    assert rows(read_file(path, ("1", "4", "3"))) == [("1", "r", "2"), ("3", "r", "4")]
    path = write_json(tmp_path / "g.jsonl", [["a", 0.5, "r", "b"]])
    assert rows(read_file(path, ("1", "3", "4"))) == [("a", "r", "b")]


def test_arrays_may_begin_with_their_titles(tmp_path):
    path = write_json(tmp_path / "g.jsonl", [["start", "weight", "kind", "end"], ["a", 0.5, "r", "b"]])
    assert rows(read_file(path, ("start", "kind", "end"))) == [("a", "r", "b")]
    with pytest.raises(DataError, match="columns '01,1,2': expected three"):
        read_file(path, ("01", "1", "2"))
    path = write_json(tmp_path / "g.jsonl", [["tail", "head", "relation"], ["b", "a", "r"]])
    assert rows(read_file(path)) == [("a", "r", "b")]
    path = write_json(tmp_path / "g.jsonl", [["weight", "s", "p", "o"], [1, "a", "r", "b"]])
    assert rows(read_file(path, ("2", "3", "4"))) == [("a", "r", "b")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"head": "a", "relation": "r"',
            "2: not JSON by itself (Expecting ',' delimiter); write one object or array",
        ),
        ('{"head": "a", "relation": "r"}', "2: no 'tail' among the fields 1 head, 2 relation"),
        ('{"head": "a", "relation": "", "tail": "b"}', "2: the relation is empty; fill it in"),
        ('{"head": "a", "relation": null, "tail": "b"}', "2: the relation is null, not a name in quotes"),
        ('{"head": "a", "relation": 0.5, "tail": "b"}', "2: the relation is 0.5, not a name in quotes"),
        ('{"head": "a\\u0000", "relation": "r", "tail": "b"}', "2: the head holds a NUL character"),
        ('{"head": "\\ud800", "relation": "r", "tail": "b"}', "2: the head holds half of a character"),
        (
            '{"head": "a", "relation": "r", "tail": "b", "w": 1}',
            "2: expected 3 fields, found 4; choose three",
        ),
        ('["a", "r", "b"]', "2: objects and arrays are mixed; write all lines alike"),
        ("17", "2: expected an object or an array of three, found 17"),
        ("[" * 100_000, "2: nested too deeply; write three names"),
    ],
)
def test_a_bad_record_is_said_with_its_line(tmp_path, line, message):
    path = tmp_path / "g.jsonl"
    good = '{"head": "a", "relation": "r", "tail": "b"}\n'
    path.write_text(good + line + "\n" + good + line)
    with pytest.raises(DataError) as error:
        read_file(path)
    assert str(error.value).startswith(f"{path}:{message}")
    assert [problem.removeprefix(f"{path}:").split(":")[0] for problem in problems(path)] == ["2", "4"]


def test_of_more_fields_those_called_head_relation_and_tail_are_taken(tmp_path):
    path = tmp_path / "g.jsonl"
    path.write_text('{"head": "a", "w": 1, "tail": "b", "relation": "r"}\n')
    assert list(rows(read_file(path))) == [("a", "r", "b")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"head": "a", "type": "r", "b": "b", "w": 1}', "which of the 4 columns 1 head, 2 type, 3 b"),
        ('{"x": "a", "y": "r", "z": "b"}', "which of the 3 columns 1 x, 2 y, 3 z are"),
        ('["a", "r"]', "expected 3 fields, found 2"),
        ("[\n[1, 2, 3]]", "not JSON"),
        ('[["a", "r", "b"], ["b", "r", "c"], ["c", "r", "a"]]', "one array of 3 records; write one array or"),
        (
            '[{"head": "a", "relation": "r", "tail": "b"}]',
            "one array of 1 record; write one array or object",
        ),
    ],
)
def test_the_first_record_has_to_say_which_field_is_which(tmp_path, text, message):
    path = tmp_path / "g.jsonl"
    path.write_text(text)
    with pytest.raises(DataError) as error:
        read_file(path)
    assert str(error.value).startswith(f"{path}:1: {message}")


def test_a_wrong_key_offers_the_nearest(tmp_path):
    path = write_json(tmp_path / "g.jsonl", [{"subject_id": "a", "predicate": "r", "object_id": "b"}])
    with pytest.raises(DataError, match=r"g\.jsonl:1: no column 'subjct_id'; did you mean subject_id"):
        read_file(path, ("subjct_id", "predicate", "object_id"))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
@pytest.mark.parametrize("name", ["g.parquet", "g"])
def test_parquet_of_text(tmp_path, kind, name):
    heads, relations, tails = zip(*TRIPLES, strict=True)
    table = pa.table({"object": tails, "subject": heads, "predicate": relations})
    parquet.write_table(table.cast(pa.schema([(n, kind) for n in table.column_names])), tmp_path / name)
    assert rows(read_file(tmp_path / name)) == TRIPLES


def test_parquet_columns_numbers_and_many_row_groups(tmp_path):
    path = tmp_path / "g.parquet"
    n = 3000
    table = pa.table({"a": range(n), "weight": [0.5] * n, "b": [i % 7 for i in range(n)], "p": ["r"] * n})
    parquet.write_table(table, path, row_group_size=100)
    dataset = read_dataset(path, columns=("a", "p", "b"))
    assert sum(len(dataset[split]) for split in ("train", "valid", "test")) == n
    assert "2999" in dataset.entities.names
    assert rows(read_file(path, ("1", "4", "3")))[8] == ("8", "r", "1")
    for columns, message in (
        (None, "which of the 4 columns 1 a, 2 weight, 3 b, 4 p"),
        (("a", "weight", "b"), "column 'weight' holds double; names should be text or whole numbers"),
        (("a", "q", "b"), "no column 'q'; the columns are 1 a"),
    ):
        with pytest.raises(DataError) as error:
            read_file(path, columns)
        assert str(error.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize(("bad", "finding"), [(None, "is empty"), ("", "is empty"), ("x\0", "holds a NUL")])
def test_parquet_cells_that_are_no_names(tmp_path, bad, finding):
    path = tmp_path / "g.parquet"
    parquet.write_table(pa.table({"h": ["a", "b"], "r": ["r", bad], "t": ["c", "d"]}), path)
    with pytest.raises(DataError, match=f"row 2: the relation {finding}"):
        read_file(path)


def test_parquet_that_is_none_or_is_cut_off(tmp_path):
    path = tmp_path / "g.parquet"
    parquet.write_table(pa.table({"h": ["a"], "r": ["r"], "t": ["c"]}), path)
    for content in (path.read_bytes()[:-20], b"a\tr\tb\n", b""):
        path.write_bytes(content)
        with pytest.raises(DataError, match="is it a Parquet file, and whole"):
            read_file(path)


def test_two_columns_of_one_name_are_refused(tmp_path):
    table = pa.Table.from_arrays([pa.array(["a"] * 20)] * 3, names=["head", "head", "tail"])
    parquet.write_table(table, tmp_path / "g.parquet")
    with pytest.raises(DataError, match="more than one column 'head'; rename one"):
        read_file(tmp_path / "g.parquet", ("1", "2", "3"))
