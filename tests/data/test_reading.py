import csv
import gzip
import json

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from modulekge.data.benchmarks import SPLITS
from modulekge.data.dataset import Dataset
from modulekge.data.readers import lines
from modulekge.data.readers.columns import known_places
from modulekge.data.readers.files import problems, read_file
from modulekge.data.reading import read_dataset
from modulekge.data.registry import open_dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import DataError

TRAIN = "007\tknows\tbond\nbond\tknows\t007\nm\tleads\t007\n"
HELD = "bond\tleads\tm\n"


def folder(path, train=TRAIN, valid=HELD, test=HELD, end=".txt"):
    path.mkdir(exist_ok=True)
    for split, text in zip(SPLITS, (train, valid, test), strict=True):
        data = text if isinstance(text, bytes) else text.encode()
        (path / f"{split}{end}").write_bytes(gzip.compress(data) if end.endswith(".gz") else data)
    return path


def names(dataset, split="train"):
    e, r = dataset.entities.names, dataset.relations.names
    return [(e[h], r[p], e[t]) for h, p, t in dataset[split].tolist()]


@pytest.mark.parametrize("end", ["", ".txt", ".tsv", ".tsv.gz", ".txt.gz"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_names_come_through_as_they_are(tmp_path, end, newline):
    dataset = read_dataset(folder(tmp_path / "spies", TRAIN.replace("\n", newline), end=end))
    assert dataset.name == "spies"
    assert names(dataset) == [("007", "knows", "bond"), ("bond", "knows", "007"), ("m", "leads", "007")]
    assert names(dataset, "test") == [("bond", "leads", "m")]


def test_awkward_names(tmp_path):
    text = 'a "quoted\tr\tb, c\nNA\tr\tnull\n é\tr\t日本\n1.0\tr\t1\n'
    dataset = read_dataset(folder(tmp_path / "d", text, "NA\tr\t1\n", "NA\tr\t1\n"))
    assert set(dataset.entities.names) == {'a "quoted', "b, c", "NA", "null", " é", "日本", "1.0", "1"}


def test_csv_with_quotes_and_header(tmp_path):
    text = 'head,relation,tail\n"Washington, D.C.",in,US\n"say ""hi""",in,US\n'
    table = read_triples_of(tmp_path, "x.csv", text)
    assert table["head"].to_pylist() == ["Washington, D.C.", 'say "hi"']


def test_quoted_newlines_survive_where_blocks_meet(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 1 << 12)
    rows = '"line one\nline two",r,e1\n"x, y",r,e2\ne1,r,e2\n' * 2000
    table = read_triples_of(tmp_path, "x.csv", rows)
    assert set(table["head"].to_pylist()) == {"line one\nline two", "x, y", "e1"}
    assert table.num_rows == 6000


@pytest.mark.parametrize(("name", "comma"), [("my.csv.copy.tsv", False), ("U.CSV", True), ("a.csv.gz", True)])
def test_the_last_ending_says_what_separates(tmp_path, name, comma):
    text = ("a,r,b\n" if comma else "a\tr\tb\n").encode()
    table = read_triples_of(tmp_path, name, gzip.compress(text) if name.endswith("gz") else text)
    assert table["tail"].to_pylist() == ["b"]


def read_triples_of(tmp_path, name, text, columns=None):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_file(path, columns).splits[0]


def rows(table):
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", 'a b;"r;1";c\nd;r;"e ""f"""\n'),
        ("a.txt", 'a b,r;1,c\nd,r,"e ""f"""\n'),
        ("a.txt.gz", gzip.compress(b'a b;"r;1";c\nd;r;"e ""f"""\n', mtime=0)),
        ("packed", gzip.compress(b'a b\tr;1\tc\nd\tr\te "f"\n', mtime=0)),
        ("a.csv", 'a b\tr;1\tc\nd\tr\te "f"\n'),
    ],
)
def test_the_separator_is_recognised(tmp_path, name, text):
    assert rows(read_triples_of(tmp_path, name, text)) == [("a b", "r;1", "c"), ("d", "r", 'e "f"')]


def test_spaces_separate_where_nothing_else_does_and_keep_quotes(tmp_path):
    assert rows(read_triples_of(tmp_path, "a.txt", 'a r "b\nc r d\n')) == [("a", "r", '"b'), ("c", "r", "d")]


@pytest.mark.parametrize(
    "header",
    [
        "Head,relation,tail",
        "source,relation,target",
        "h,r,t",
        "s,p,o",
        "from,type,to",
        "subject_id,predicate,object_id",
    ],
)
def test_a_header_in_known_words_is_none_of_the_triples(tmp_path, header):
    assert rows(read_triples_of(tmp_path, "a.csv", f"\ufeff\n{header}\na,r,b\n")) == [("a", "r", "b")]
    assert rows(read_triples_of(tmp_path, "b.csv", f"a,r,b\n{header}\n"))[0] == ("a", "r", "b")


def test_a_header_in_another_order_says_which_column_is_which(tmp_path):
    assert rows(read_triples_of(tmp_path, "a.csv", "object,subject,predicate\nb,a,r\n")) == [("a", "r", "b")]
    assert rows(read_triples_of(tmp_path, "b.tsv", "t\tr\th\n")) == [("t", "r", "h")]  # letters may be names


@given(st.data())
@settings(max_examples=200)
def test_any_names_come_back_as_they_were(tmp_path_factory, data):
    """Whatever stands in names, TSV keeps it but for its own separators, and CSV keeps line ends too."""
    path = tmp_path_factory.getbasetemp() / data.draw(st.sampled_from(["any.tsv", "any.csv", "any.jsonl"]))
    awkward = st.sampled_from(list("\"',;| {[<#\\.\u2028\x85aé") + ["\n"] * (path.suffix != ".tsv"))
    letter = awkward | st.characters(exclude_characters="\t\n\r\0\ufeff", exclude_categories=["Cs"])
    name = st.text(letter, min_size=1, max_size=6)
    triples = data.draw(st.lists(st.tuples(name, name, name), min_size=1, max_size=8))
    assume(known_places(triples[0]) is None)
    with path.open("w", encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            file.writelines(json.dumps(triple) + "\n" for triple in triples)
        elif path.suffix == ".csv":
            csv.writer(file, lineterminator="\n").writerows(triples)
        else:
            file.writelines("\t".join(triple) + "\n" for triple in triples)
    assert rows(read_file(path).splits[0]) == triples
    assert list(problems(path)) == []


WIDE = "subject_id,weight,object_id,predicate\na,1,b,r\n"


@pytest.mark.parametrize("columns", [("subject_id", "predicate", "object_id"), ("1", "4", "3")])
def test_columns_are_chosen_by_name_and_by_number(tmp_path, columns):
    assert rows(read_triples_of(tmp_path, "a.csv", WIDE, columns)) == [("a", "r", "b")]
    text = WIDE.replace(",", "\t").encode()
    assert rows(read_triples_of(tmp_path, "a.tsv.gz", gzip.compress(text), columns)) == [("a", "r", "b")]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (None, "a.csv:1: which of the 4 columns 1 subject_id, 2 weight, 3 object_id, 4 predicate are head"),
        (("subject", "predicate", "object_id"), "a.csv:1: no column 'subject'; did you mean subject_id or"),
        (("zz", "predicate", "object_id"), "a.csv:1: no column 'zz'; the columns are 1 subject_id, 2 weight"),
        (("1", "2", "5"), "a.csv:1: no column 5; there are 4, counted from 1"),
        (("0", "1", "2"), "a.csv:1: no column 0; there are 4, counted from 1"),
    ],
)
def test_a_wrong_column_is_said_with_the_nearest(tmp_path, columns, message):
    with pytest.raises(DataError) as error:
        read_triples_of(tmp_path, "a.csv", WIDE, columns)
    assert str(error.value).startswith(f"{tmp_path}/{message}")


def test_columns_are_three_and_named_once(tmp_path):
    for columns in (("1", "2"), ("1", "1", "2"), ("a", "", "b")):
        with pytest.raises(DataError, match="expected three, of head, relation and tail"):
            read_triples_of(tmp_path, "a.csv", WIDE, columns)
    with pytest.raises(DataError, match="more than one column 'x'; choose by number"):
        read_triples_of(tmp_path, "a.csv", "x,y,x,z\n", ("x", "y", "z"))


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.jsonl", "a.txt.gz"])
def test_a_line_without_end_is_refused_in_bounded_memory(tmp_path, monkeypatch, name):
    monkeypatch.setattr(lines, "LONGEST", 1 << 12)
    text = b"a\tr\tb\n" + b"x" * (1 << 20) + b"\na\tr\n"
    if name == "a.csv":
        text = text.replace(b"\t", b",")
    if name == "a.jsonl":
        text = text.replace(b"a\tr\tb", b'["a", "r", "b"]')
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    with pytest.raises(DataError, match=rf"{name}:2: the line is longer than"):
        read_file(path)
    assert [problem.split(": ")[0][-2:] for problem in problems(path)] == [":2", ":3"]


@pytest.mark.parametrize("before", [1, 3 << 20, 7 << 20])
def test_a_line_of_8_mib_is_read_and_one_longer_than_16_is_not_wherever_it_stands(tmp_path, before):
    path = tmp_path / "a.tsv"
    short, start = b"a\tr\tb\n", b"a\tr\t" + b"x" * before + b"\na\tr\t"
    path.write_bytes(start + b"y" * ((8 << 20) - 5) + b"\n" + short)
    assert read_file(path).splits[0].num_rows == 3
    path.write_bytes(start + b"y" * (16 << 20) + b"\n" + short)
    with pytest.raises(DataError, match=r"a\.tsv:2: the line is longer than 8 MiB; is it one line"):
        read_file(path)


def test_every_malformed_line_is_listed_up_to_a_limit(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(b"a\tr\tb\na\tr\n\n\tr\tb\n\xff\tr\tb\na\tr\tb\0\na r b\nx\tr\ty\n")
    found = [problem.removeprefix(f"{path}:") for problem in problems(path)]
    assert [line.split(":")[0] for line in found] == ["2", "4", "5", "6", "7"]
    assert list(problems(path, limit=2)) == [f"{path}:{line}" for line in found[:2]]
    path.write_text("a\tr\tb\n")
    assert list(problems(path)) == []
    path.write_text("a\n")
    assert [problem.startswith(f"{path}:1: expected 3") for problem in problems(path)] == [True]
    quoted = tmp_path / "a.csv"
    quoted.write_text('a,r,"b"c\n"a\nb",r\nd,r,e\nf,"r\n')
    assert [problem.split(":")[1] for problem in problems(quoted)] == ["1", "2", "5"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.txt",
            "a\tr\tb\na\tb\n",
            "a.txt:2: expected 3 tab-separated fields (head, relation, tail), found 2",
        ),
        ("a.txt", "a\n", "a.txt:1: expected 3 tab-separated fields (head, relation, tail), found 1"),
        (
            "a.tsv",
            "a\tr\tb\tc\n",
            "a.tsv:1: which of the 4 columns 1 a, 2 r, 3 b, 4 c are head, relation and tail? choose with",
        ),
        (
            "a.tsv",
            "a\tr\tb\na\tr\tb\tc\n",
            "a.tsv:2: expected 3 tab-separated fields (head, relation, tail), found 4",
        ),
        ("a.csv", "a,r\n", "a.csv:1: expected 3 comma-separated fields (head, relation, tail), found 2"),
        ("a.txt", "a\tr\tb\n\n\na\t\tb\n", "a.txt:4: the relation is empty; fill it in or remove the line"),
        ("a.txt", b"a\tr\tb\n\xff\xfe\tr\tb\n", "a.txt:2: not UTF-8 text; save the file as UTF-8"),
        ("a.txt", "", "a.txt: no triples; each line should hold head, relation and tail"),
        ("a.txt", "\n\n", "a.txt: no triples; each line should hold head, relation and tail"),
        ("a.txt.gz", b"this is no gzip", "a.txt.gz: "),
        ("a.txt.gz", gzip.compress(TRAIN.encode(), mtime=0)[:-9], "a.txt.gz:4: the packed data break off in"),
        ("a.txt", b"a\tr\tb\na\tr\0\tb\n", "a.txt:2: holds a NUL byte; remove it"),
        (
            "a.txt",
            "a\tr\tb\na,r,b\n",
            "a.txt:2: expected 3 tab-separated fields (head, relation, tail), found 1; "
            "cut at commas it has 3: separate all lines alike",
        ),
        ("a.txt", "a, r, b\n", "a.txt:1: could be cut at commas and spaces alike; separate the fields with"),
        ("a.csv", 'a,r,b\na,r,"b\nc,r,d\n', "a.csv:2: unexpected end of data; close each quote"),
        ("a.csv", 'a,r,b\na,"",b\n', "a.csv:2: the relation is empty; fill it in or remove the line"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, name, text, message):
    with pytest.raises(DataError) as error:
        read_triples_of(tmp_path, name, text)
    assert str(error.value).startswith(f"{tmp_path}/{message}")
    assert "\n" not in str(error.value)


def test_missing_split_two_of_a_split_missing_folder(tmp_path):
    path = folder(tmp_path / "d")
    (path / "train.tsv").write_text(TRAIN)
    with pytest.raises(DataError, match=r"train\.txt and train\.tsv both exist; keep one"):
        read_dataset(path)
    (path / "train.tsv").unlink()
    (path / "valid.txt").unlink()
    with pytest.raises(DataError, match="no valid file"):
        read_dataset(path)
    with pytest.raises(DataError, match="no such file or folder"):
        read_dataset(tmp_path / "nowhere")


def test_a_folder_with_train_alone_is_split_like_the_file(tmp_path):
    text = "".join(f"e{i}\tr{i % 3}\te{(i * 7 + 1) % 40}\n" for i in range(200))
    path = tmp_path / "d"
    path.mkdir()
    (path / "train.tsv").write_text(text)
    (tmp_path / "graph.tsv").write_text(text)
    assert read_dataset(path).fingerprint == read_dataset(tmp_path / "graph.tsv").fingerprint


def test_labels_of_a_file_that_is_named(tmp_path):
    (tmp_path / "names.csv").write_text('bond,"Bond, James"\nknows,is acquainted with\n')
    dataset = read_dataset(folder(tmp_path / "d"), labels=tmp_path / "names.csv")
    assert dataset.entities.label(dataset.entities.find("bond")) == "Bond, James"
    assert dataset.relations.label(dataset.relations.find("knows")) == "is acquainted with"


def test_labels(tmp_path):
    path = folder(tmp_path / "d")
    (path / "labels.tsv").write_text("bond\tJames Bond\nelse\tNobody\n")
    (path / "relation_labels.txt").write_text("knows\tis acquainted with\n")
    dataset = read_dataset(path)
    assert dataset.entities.label(dataset.entities.find("james bond")) == "James Bond"
    assert dataset.relations.label(0) == "is acquainted with"


def test_one_file_is_split_reproducibly_with_everything_in_train(tmp_path):
    lines = [f"e{i}\tr{i % 3}\te{(i * 7 + 1) % 40}" for i in range(200)]
    path = tmp_path / "graph.tsv"
    path.write_text("\n".join(lines) + "\n")
    first, again, other = read_dataset(path, 0), read_dataset(path, 0), read_dataset(path, 1)
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert first.seen.all()
    assert set(first.train[:, 1].tolist()) == set(range(3))
    assert sorted(x for s in SPLITS for x in names(first, s)) == sorted({tuple(x.split("\t")) for x in lines})
    assert len(first.valid) == len(first.test) > 0


def test_a_file_too_small_to_split(tmp_path):
    path = tmp_path / "graph.tsv"
    path.write_text("a\tr\tb\nc\tr\td\n")
    with pytest.raises(DataError, match="too few to split"):
        read_dataset(path)


def test_ids_out_of_range_are_refused():
    vocabularies = Vocabulary("entity", ("a", "b")), Vocabulary("relation", ("r",))
    good = torch.tensor([[0, 0, 1]])
    for bad, message in (
        ([[0, 1, 1]], "relation id 1 is out of range 0..0"),
        ([[0, 0, 2]], "tail id 2"),
        ([[-1, 0, 0]], "head id -1"),
    ):
        with pytest.raises(DataError, match=message):
            Dataset("d", *vocabularies, good, torch.tensor(bad), good)
    with pytest.raises(DataError, match="no triples"):
        Dataset("d", *vocabularies, good[:0], good, good)


def test_what_is_seldom_meant_is_noted(tmp_path):
    lines = [f"e{i % 9}, r{i % 2}, e{i % 7}\n" for i in range(126)]
    (tmp_path / "spaced.csv").write_text("".join([*lines, *lines[:27]]))
    notes = read_dataset(tmp_path / "spaced.csv").notes
    assert "7 names (entity) begin or end with a space, 7 of them are also there without it" in notes[0]
    assert "2 names (relation) begin or end with a space, 0 of them" in notes[1]
    assert notes[2].endswith("27 repeated triples are kept once")


def test_a_file_called_as_the_embedded_graph_is_another_one(tmp_path):
    (tmp_path / "world.tsv").write_text("".join(f"e{i % 9}\tr\te{i % 7}\n" for i in range(63)))
    assert open_dataset(tmp_path / "world.tsv").name == "my-world"
    assert open_dataset("world").name == "world"


def test_columns_may_be_numbers(tmp_path):
    (tmp_path / "g.tsv").write_text("".join(f"x\te{i % 9}\tr\te{i % 7}\n" for i in range(63)))
    assert open_dataset(tmp_path / "g.tsv", columns=(2, 3, 4)).relations.names == ("r",)
