"""Folders as other tools write them: all hold one graph, and it comes out the same."""

import gzip

import pyarrow as pa
import pytest
from pyarrow import parquet

from modulekge.data.benchmarks import SPLITS
from modulekge.data.reading import read_dataset
from modulekge.data.registry import open_dataset
from modulekge.errors import DataError

ENTITIES = ("b", 'say "hi"', "New York", "never met")
RELATIONS = ("in", "near")
LINES = "a\tr\tb\nb\tr\ta\n"
TRIPLES = {
    "train": [(2, 0, 0), (1, 1, 2), (0, 1, 1)],
    "valid": [(0, 0, 2)],
    "test": [(2, 1, 1), (1, 0, 0)],
}


def write(path, files):
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def dictionary(names, line="{i}\t{name}"):
    return "".join(line.format(i=i, name=name) + "\n" for i, name in enumerate(names))


def triples(split, line="{h}\t{r}\t{t}", names=False):
    return "".join(
        line.format(
            h=ENTITIES[h] if names else h, r=RELATIONS[r] if names else r, t=ENTITIES[t] if names else t
        )
        + "\n"
        for h, r, t in TRIPLES[split]
    )


def open_ke():
    line = "{name}\t{i}"
    return {
        "entity2id.txt": f"{len(ENTITIES)}\n" + dictionary(ENTITIES, line),
        "relation2id.txt": f"{len(RELATIONS)}\n" + dictionary(RELATIONS, line),
        **{f"{s}2id.txt": f"{len(TRIPLES[s])}\n" + triples(s, "{h} {t} {r}") for s in SPLITS},
    }


def libkge():
    return {
        "entity_ids.del": dictionary(ENTITIES),
        "relation_ids.del": dictionary(RELATIONS),
        **{f"{split}.del": triples(split) for split in SPLITS},
    }


def rotate(names=True):
    return {
        "entities.dict": dictionary(ENTITIES),
        "relations.dict": dictionary(RELATIONS),
        **{f"{split}.txt": triples(split, names=names) for split in SPLITS},
    }


def pykeen():
    quoted = [name if '"' not in name else '"' + name.replace('"', '""') + '"' for name in ENTITIES]
    files = {"metadata.pth": "this is no pickle, and nobody opens it"}
    for folder, split in (("training", "train"), ("validation", "valid"), ("testing", "test")):
        files[f"{folder}/base.pth"] = "neither is this"
        files[f"{folder}/entity_to_id.tsv.gz"] = "id\tlabel\n" + dictionary(quoted)
        files[f"{folder}/relation_to_id.tsv.gz"] = "id\tlabel\n" + dictionary(RELATIONS)
        files[f"{folder}/numeric_triples.tsv.gz"] = "head\trelation\ttail\n" + triples(split)
    return files


@pytest.mark.parametrize(
    "files",
    [
        open_ke(), libkge(), rotate(), rotate(names=False), pykeen(),
        *({f"{name}.gz": text for name, text in files.items()} for files in (open_ke(), libkge(), rotate())),
    ],
    ids=lambda files: next(iter(files)),
)  # fmt: skip
def test_the_same_graph_comes_out_of_each_with_the_ids_it_had(tmp_path, files):
    dataset = open_dataset(write(tmp_path / "graph", files))
    assert dataset.entities.names == ENTITIES
    assert dataset.relations.names == RELATIONS
    for split in SPLITS:
        assert [tuple(triple) for triple in dataset[split].tolist()] == TRIPLES[split]


def test_train_says_whether_triples_are_of_ids_where_names_are_numbers_too(tmp_path):
    files = {
        "entities.dict": "0\t2\n1\t0\n2\t7\n",
        "relations.dict": "0\tr\n",
        "train.txt": "0\t0\t1\n1\t0\t2\n",
        "valid.txt": "0\t0\t2\n",  # which are names as well
        "test.txt": "2\t0\t0\n",
    }
    dataset = read_dataset(write(tmp_path, files))
    assert dataset.entities.names == ("2", "0", "7")
    assert dataset.valid.tolist() == [[0, 0, 2]]
    files["entities.dict"] = "0\t1\n1\t2\n2\t0\n"  # then the relation says it alone
    (tmp_path / "again").mkdir()
    dataset = read_dataset(write(tmp_path / "again", files))
    assert dataset.entities.names == ("1", "2", "0")
    assert dataset.train.tolist() == [[0, 0, 1], [1, 0, 2]]


def test_splits_of_pykeen_with_numberings_of_their_own_meet_by_name(tmp_path):
    files = pykeen()
    files["testing/entity_to_id.tsv.gz"] = "id\tlabel\n0\tNew York\n1\tb\n2\tsomebody new\n"
    files["testing/numeric_triples.tsv.gz"] = "head\trelation\ttail\n0\t1\t2\n"
    dataset = read_dataset(write(tmp_path, files))
    assert dataset.entities.names == (*ENTITIES, "somebody new")
    assert dataset.test.tolist() == [[2, 1, 4]]


def test_one_factory_of_pykeen_and_a_train_file_alone_are_split(tmp_path):
    files = {
        "entity_to_id.tsv.gz": "id\tlabel\n" + dictionary(f"e{i}" for i in range(20)),
        "relation_to_id.tsv.gz": "id\tlabel\n0\tr\n",
        "numeric_triples.tsv.gz": "head\trelation\ttail\n"
        + "".join(f"{i % 20}\t0\t{(i * 7 + i // 20) % 20}\n" for i in range(60)),
    }
    dataset = read_dataset(write(tmp_path, files))
    assert len(dataset.valid) == len(dataset.test) > 0
    assert dataset.seen.all()


def test_labels_of_ids_and_of_names(tmp_path):
    files = {**libkge(), "entity_strings.del": "0\tBee\nNew York\tThe Big Apple\n9\tNobody\n"}
    files["relation_strings.del"] = "1\tis near\n"
    dataset = read_dataset(write(tmp_path, files))
    assert [dataset.entities.label(i) for i in range(3)] == ["Bee", 'say "hi"', "The Big Apple"]
    assert [dataset.relations.label(i) for i in range(2)] == ["in", "is near"]


@pytest.mark.parametrize(
    ("files", "name", "text", "message"),
    [
        (open_ke(), "train2id.txt", "3\n0 1 0\n1 2 0\n", "train2id.txt:1: says 3, and 2 follow; the file is"),
        (
            open_ke(),
            "train2id.txt",
            "0 1 0\n1 2 0\n",
            "train2id.txt:1: expected the number of lines that follow",
        ),
        (open_ke(), "entity2id.txt", "4\na\t0\n", "entity2id.txt:1: says 4, and 1 follow"),
        (
            open_ke(),
            "valid2id.txt",
            "2\n0 1 0\n1 4 0\n",
            "valid2id.txt:3: tail '4' is not in entity2id.txt, which has the ids 0..3; or mend the line",
        ),
        (
            open_ke(),
            "valid2id.txt",
            "1\n0 1 2\n",
            "valid2id.txt:2: relation '2' is not in relation2id.txt, which",
        ),
        (open_ke(), "valid2id.txt", "1\n0 1\n", "valid2id.txt:2: "),
        (open_ke(), "valid2id.txt", "0\n", "valid2id.txt: no triples"),
        (
            libkge(),
            "test.del",
            "0\t0\t1\n0\t0\t-1\n",
            "test.del:2: tail '-1' is not in entity_ids.del, which",
        ),
        (libkge(), "test.del", "0\t0\t1\n0\t\t1\n", "test.del:2: the relation is empty"),
        (libkge(), "entity_ids.del", "0\ta\n0\tb\n", "entity_ids.del:2: id 0 stands twice; keep one"),
        (libkge(), "entity_ids.del", "0\ta\n1\ta\n", "entity_ids.del:2: 'a' stands twice; keep one"),
        (libkge(), "entity_ids.del", "1\ta\n2\tb\n", "entity_ids.del: id 0 of 0..1 is missing"),
        (
            libkge(),
            "entity_ids.del",
            "a\t0\n",
            "entity_ids.del:1: expected an id and its name, separated by a",
        ),
        (libkge(), "entity_ids.del", b"0\t\xff\n", "entity_ids.del:1: not UTF-8 text"),
        (
            rotate(),
            "train.txt",
            "b\tin\tNew York\nb\tin\tParis\n",
            "train.txt:2: tail 'Paris' is not in entities.dict",
        ),
        (
            rotate(),
            "train.txt",
            "b\tat\tb\n",
            "train.txt:1: relation 'at' is not in relations.dict, add it there",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, files, name, text, message):
    write(tmp_path, files)
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError) as error:
        read_dataset(tmp_path)
    assert str(error.value).startswith(f"{tmp_path}/{message}")


def test_ids_are_not_taken_for_names_where_the_splits_have_other_names(tmp_path):
    write(tmp_path, {name.replace(".txt", ".tsv"): text for name, text in rotate(names=False).items()})
    with pytest.raises(DataError, match=r"entities\.dict: belongs to RotatE.*whose train\.txt is not there"):
        read_dataset(tmp_path)


def test_what_a_layout_lacks_or_has_of_its_own(tmp_path):
    write(tmp_path, libkge())
    with pytest.raises(DataError, match="LibKGE has columns of its own; leave --columns out"):
        read_dataset(tmp_path, columns=("1", "2", "3"))
    (tmp_path / "relation_ids.del").unlink()
    with pytest.raises(DataError, match=r"relation_ids\.del: no such file"):
        read_dataset(tmp_path)
    write(tmp_path, libkge())
    (tmp_path / "valid.del").unlink()
    with pytest.raises(DataError, match=r"no valid\.del, which belongs to the layout of LibKGE"):
        read_dataset(tmp_path)


@pytest.mark.parametrize("end", [".jsonl", ".nt", ".csv", ".parquet"])
def test_a_folder_of_splits_in_any_format(tmp_path, end):
    for split in SPLITS:
        path, rows = tmp_path / f"{split}{end}", TRIPLES[split]
        if end == ".parquet":
            heads, relations, tails = zip(*rows, strict=True)
            parquet.write_table(pa.table({"head": heads, "relation": relations, "tail": tails}), path)
        else:
            line = {
                ".jsonl": "[{}, {}, {}]\n",
                ".nt": "<http://x/{}> <http://x/{}> <http://x/{}> .\n",
                ".csv": "{},{},{}\n",
            }[end]
            path.write_text("".join(line.format(*row) for row in rows))
    dataset = read_dataset(tmp_path)
    assert [len(dataset[split]) for split in SPLITS] == [3, 1, 2]
    assert (len(dataset.entities), len(dataset.relations)) == (3, 2)
