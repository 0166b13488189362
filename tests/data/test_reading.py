import gzip

import pytest
import torch

from modulekge.data import reading
from modulekge.data.dataset import SPLITS, Dataset
from modulekge.data.reading import read_dataset, read_triples
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
    monkeypatch.setattr(reading, "_BLOCK", 1 << 12)
    rows = '"line one\nline two",r,e1\n"x, y",r,e2\ne1,r,e2\n' * 2000
    table = read_triples_of(tmp_path, "x.csv", rows)
    assert set(table["head"].to_pylist()) == {"line one\nline two", "x, y", "e1"}
    assert table.num_rows == 6000


@pytest.mark.parametrize(("name", "comma"), [("my.csv.copy.tsv", False), ("U.CSV", True), ("a.csv.gz", True)])
def test_the_last_ending_says_what_separates(tmp_path, name, comma):
    text = ("a,r,b\n" if comma else "a\tr\tb\n").encode()
    table = read_triples_of(tmp_path, name, gzip.compress(text) if name.endswith("gz") else text)
    assert table["tail"].to_pylist() == ["b"]


def read_triples_of(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_triples(path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.txt",
            "a\tr\tb\na\tb\n",
            "a.txt:2: expected 3 tab-separated fields (head, relation, tail), found 2",
        ),
        ("a.txt", "a r b\n", "a.txt:1: expected 3 tab-separated fields (head, relation, tail), found 1"),
        ("a.tsv", "a\tr\tb\tc\n", "a.tsv:1: expected 3 tab-separated fields (head, relation, tail), found 4"),
        ("a.csv", "a,r\n", "a.csv:1: expected 3 comma-separated fields (head, relation, tail), found 2"),
        ("a.txt", "a\tr\tb\n\n\na\t\tb\n", "a.txt:4: the relation is empty; fill it in or remove the line"),
        ("a.txt", b"a\tr\tb\n\xff\xfe\tr\tb\n", "a.txt:2: not UTF-8 text; save the file as UTF-8"),
        ("a.txt", "", "a.txt: no triples; each line should hold head, relation and tail"),
        ("a.txt", "\n\n", "a.txt: no triples; each line should hold head, relation and tail"),
        ("a.txt.gz", b"this is no gzip", "a.txt.gz: "),
        ("a.txt.gz", gzip.compress(TRAIN.encode(), mtime=0)[:-9], "a.txt.gz: "),
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
