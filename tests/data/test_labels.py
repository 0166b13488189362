"""Descriptions of entities: where they are found, what is kept of them, and what is said of bad ones."""

import gzip

import pytest

from modulekge.data.readers.labels import LONGEST, bounded
from modulekge.data.reading import read_dataset
from modulekge.data.registry import open_dataset
from modulekge.errors import DataError

SPLITS = {"train": "bond\tknows\tm\nm\tleads\tbond\n", "valid": "m\tknows\tbond\n", "test": "m\tknows\tm\n"}


@pytest.fixture
def spies(tmp_path):
    folder = tmp_path / "spies"
    folder.mkdir()
    for split, text in SPLITS.items():
        (folder / f"{split}.txt").write_text(text)
    return folder


def said(dataset):
    return {name: dataset.entities.description(i) for i, name in enumerate(dataset.entities.names)}


@pytest.mark.parametrize("name", ["descriptions.tsv", "descriptions.tsv.gz", "descriptions"])
def test_those_of_a_folder_are_found_and_change_nothing_else(spies, name):
    before = read_dataset(spies)
    assert said(before) == {"bond": None, "m": None}
    text = b"bond\tAn agent, <b>licensed</b>.\nelse\tNobody.\n"
    (spies / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    dataset = read_dataset(spies)
    assert said(dataset) == {"bond": "An agent, <b>licensed</b>.", "m": None}
    assert (dataset.fingerprint, dataset.notes) == (before.fingerprint, ())


@pytest.mark.parametrize("name", ["labels.parquet", "relation_labels.jsonl", "descriptions.nt.gz"])
def test_those_of_a_folder_are_text_and_other_files_are_left_alone(spies, name):
    (spies / name).write_bytes(b"PAR1\xff")
    assert said(read_dataset(spies)) == {"bond": None, "m": None}


def test_a_file_that_is_named_goes_before_those_of_the_folder(spies, tmp_path):
    (spies / "descriptions.tsv").write_text("bond\tAn agent.\nm\tLeads him.\n")
    (tmp_path / "mine.csv").write_text('bond,"Says ""shaken"",\nnot stirred."\n')
    dataset = open_dataset(spies, descriptions=tmp_path / "mine.csv")
    assert said(dataset) == {"bond": 'Says "shaken",\nnot stirred.', "m": "Leads him."}


def test_long_ones_are_cut_with_a_note_and_blank_ones_are_none(spies):
    (spies / "descriptions.tsv").write_text(f"bond\t{'é' * 100_000}\nm\t  \n")
    dataset = read_dataset(spies)
    assert said(dataset) == {"bond": "é" * (LONGEST - 1) + "…", "m": None}
    assert dataset.notes == (f"{spies}: 1 description is cut at 2,000 characters",)


@pytest.mark.parametrize("length", [LONGEST - 1, LONGEST, LONGEST + 1])
def test_none_is_longer_than_the_longest(length):
    kept, cut = bounded({"a": "x" * length})
    assert (len(kept["a"]), cut) == (min(length, LONGEST), int(length > LONGEST))


@pytest.mark.parametrize("option", ["labels", "descriptions"])
def test_a_file_about_nothing_in_the_graph_is_noted(spies, tmp_path, option):
    path = tmp_path / "turned.tsv"
    path.write_text("An agent.\tbond\n")
    (note,) = read_dataset(spies, **{option: path}).notes
    assert note == f"{path}: none of its names is in {spies}; each line should hold a name, then its text"
    path.write_text("knows\tis acquainted with\n")
    assert bool(read_dataset(spies, **{option: path}).notes) == (option == "descriptions")  # of entities only


def test_an_id_stands_for_its_name_where_a_folder_numbers_them(tmp_path):
    for kind, names in (("entities", "bond m"), ("relations", "knows leads")):
        lines = (f"{i}\t{name}\n" for i, name in enumerate(names.split()))
        (tmp_path / f"{kind}.dict").write_text("".join(lines))
    for split, text in SPLITS.items():
        (tmp_path / f"{split}.txt").write_text(text)
    (tmp_path / "descriptions.txt").write_text("1\tLeads him.\n")
    assert said(read_dataset(tmp_path)) == {"bond": None, "m": "Leads him."}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"bond\n", ":1: expected 2 tab-separated fields (name, description), found 1"),
        (b"bond\tAn\tagent\n", ":1: expected 2 tab-separated fields (name, description), found 3"),
        (b"bond\tAn agent\nm\t\n", ":2: the description is empty; fill it in or remove the line"),
        (b"bond\tAn\0agent\n", ":1: holds a NUL byte; remove it"),
        (b"bond\tAn agent\nm\t\xff\n", ":2: not UTF-8 text; save the file as UTF-8"),
        (gzip.compress(b"bond\tAn agent\n", mtime=0)[:-12], ":1: the packed data break off in this line"),
        (None, ": no such file; check the path"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(spies, tmp_path, text, message):
    path = tmp_path / "told.tsv"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(DataError) as error:
        read_dataset(spies, descriptions=path)
    assert str(error.value).startswith(f"{path}{message}")
    assert "\n" not in str(error.value)
