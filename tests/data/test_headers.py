"""A first row in words of its own: a header if it stands alone, a fact if that may be chance; always said."""

import pytest

from modulekge.data.reading import read_dataset, read_facts
from modulekge.errors import DataError

FACTS = [f"p{i % 10},{('needs', 'breaks')[i % 2]},p{(3 * i + 1) % 10}" for i in range(40)]
TITLES = "package,depends,target"


def written(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def names(graph):
    return {*graph.entities.names, *graph.relations.names}


def test_a_row_whose_names_never_occur_again_is_a_header_and_that_is_said(tmp_path):
    path = written(tmp_path / "g.csv", "", TITLES, *FACTS)
    graph = read_dataset(path)
    assert not names(graph) & set(TITLES.split(","))
    found = f"{path}:2: 'package', 'depends' and 'target' never occur again"
    assert graph.notes[0] == f"{found}: taken for a header; --header no makes it a fact"
    assert graph.fingerprint == read_dataset(written(tmp_path / "bare.csv", *FACTS)).fingerprint


def test_whoever_knows_says_what_the_first_row_is(tmp_path):
    path = written(tmp_path / "g.csv", TITLES, *FACTS)
    kept = read_dataset(path, header=False)
    assert set(TITLES.split(",")) <= names(kept)
    assert not any("never occur again" in note for note in kept.notes)
    bare = written(tmp_path / "bare.csv", *FACTS)
    assert len(read_facts(bare, header=True).triples) == len(FACTS) - 1
    known = written(tmp_path / "known.csv", "tail,relation,head", *FACTS)
    assert len(read_facts(known).triples) == len(FACTS)
    assert "relation" in names(read_dataset(known, header=False))
    with pytest.raises(DataError, match="columns chosen by name need a header; choose them by number"):
        read_dataset(path, columns=("package", "depends", "target"), header=False)


@pytest.mark.parametrize(
    "first",
    [
        "package,depends,p3",  # the tail occurs again
        "p3,depends,target",
        "package,needs,target",
        "1,2,3",  # numbers and IRIs are no titles
        "http://x/package,http://x/depends,http://x/target",
    ],
)
def test_a_row_of_which_one_name_occurs_again_is_a_fact(tmp_path, first):
    graph = read_dataset(written(tmp_path / "g.csv", first, *FACTS))
    assert set(first.split(",")) <= names(graph)
    assert not any("never occur again" in note for note in graph.notes)


@pytest.mark.parametrize(
    "others",
    [
        FACTS[:10],  # few rows
        [*FACTS, "lone,once,alone"],  # another row is like it
        [f"a{i},is,b{i}" for i in range(40)],  # all entities occur once
        [f"p{i % 4},r{i},p{(i + 1) % 4}" for i in range(5)] + FACTS,  # relations that occur once are common
    ],
)
def test_what_may_be_chance_is_kept_as_a_fact_and_said(tmp_path, others):
    path = written(tmp_path / "g.csv", TITLES, *others)
    facts = read_facts(path)
    assert len(facts.triples) == len(others) + 1
    assert "never occur again, and are taken for a fact; is it a header? --header yes" in facts.notes[0]
    assert len(read_facts(path, header=True).triples) == len(others)


def test_where_every_relation_occurs_once_nothing_is_said(tmp_path):
    path = written(tmp_path / "g.csv", *(f"a{i},r{i},b{i}" for i in range(40)))
    assert read_facts(path).notes == ()


def test_of_a_folder_train_tells_and_the_others_may_have_the_same_row(tmp_path):
    written(tmp_path / "train.csv", TITLES, *FACTS)
    written(tmp_path / "valid.csv", TITLES, FACTS[0])
    written(tmp_path / "test.csv", "p1,needs,p2", *["p3,breaks,p4"] * 30)  # alone in test, known in train
    graph = read_dataset(tmp_path)
    assert (len(graph.train), len(graph.valid), len(graph.test)) == (40, 1, 31)
    assert not names(graph) & set(TITLES.split(","))


def test_columns_by_number_may_have_a_header_too(tmp_path):
    path = written(tmp_path / "g.csv", "x,package,depends,target", *(f"0,{fact}" for fact in FACTS))
    assert len(read_facts(path, ("2", "3", "4")).triples) == len(FACTS)


def test_new_facts_begin_with_a_fact_where_the_graph_knows_one_of_its_names(tmp_path):
    old = read_dataset(written(tmp_path / "old.csv", *FACTS, "x,depends,p1", "p1,depends,x"))
    new = written(tmp_path / "new.csv", TITLES, *FACTS)
    assert len(read_facts(new).triples) == len(FACTS)
    facts = read_facts(new, known=old)
    assert len(facts.triples) == len(FACTS) + 1
    assert facts.place(0) == f"{new}:1"
    assert read_facts(new).place(0) == f"{new}:2"


def test_a_few_new_facts_may_have_the_header_of_the_graph(tmp_path):
    old = read_dataset(written(tmp_path / "old.csv", TITLES, *FACTS))
    few = written(tmp_path / "few.csv", TITLES, FACTS[0], "someone,needs,p1")
    facts = read_facts(few, known=old)
    assert len(facts.triples) == 2
    assert "taken for a header; --header no makes it a fact" in facts.notes[0]
    assert facts.place(0) == f"{few}:2"
    assert len(read_facts(few, known=old, header=False).triples) == 3
    known = written(tmp_path / "known.csv", "p1,brand,new", FACTS[0], "someone,needs,p2")
    assert len(read_facts(known, known=old).triples) == 3


def test_a_path_that_is_not_there_is_told_from_its_neighbours(tmp_path):
    written(tmp_path / "stdlib.csv", *FACTS)
    with pytest.raises(DataError, match=r"stdlibb.csv: no such file or folder; did you mean .*/stdlib.csv\?"):
        read_dataset(tmp_path / "stdlibb.csv")
    with pytest.raises(DataError, match="no such file or folder; check the path"):
        read_dataset(tmp_path / "elsewhere" / "stdlib.csv")


def test_only_tables_as_text_have_a_header_to_choose(tmp_path):
    path = written(tmp_path / "g.jsonl", '["a", "r", "b"]')
    with pytest.raises(DataError, match="only tables as text have a header to choose; leave --header out"):
        read_dataset(path, header=True)


def test_a_long_file_is_read_to_its_end_before_a_row_is_a_header(tmp_path):
    many = [f"p{i % 50},needs,p{(7 * i + 1) % 50}" for i in range(2000)]
    assert len(read_facts(written(tmp_path / "a.csv", TITLES, *many)).triples) == 2000
    assert len(read_facts(written(tmp_path / "b.csv", TITLES, *many, "p1,depends,p2")).triples) == 2002
