"""A run of paths: trained, kept, continued, asked, enlarged and taken to another graph."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest
import torch
from program import call

import modulekge
from modulekge.answers.predictor import Predictor
from modulekge.config import make_config, nested
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import ConfigError, DataError, RunError
from modulekge.exports.hub import write_hub as share
from modulekge.models import paths
from modulekge.run.load import Machine, Size, load_of
from modulekge.run.path_defaults import left_out
from modulekge.run.plan import NO_RECIPE, plan, resolve
from modulekge.run.run import load

SMALL = {
    "paths.layers": 2,
    "paths.d": 8,
    "train.epochs": 4,
    "train.batch": 6,
    "train.eval_every": 1,
    "train.parts": 1,
}


@pytest.fixture(scope="module")
def run(family, tmp_path_factory):
    return modulekge.train(family, "Paths", SMALL, out=tmp_path_factory.mktemp("paths") / "run")


def bits(folder):
    return {name: (folder / name).read_bytes() for name in ("weights.safetensors", "last.safetensors")}


def test_training_learns(family, tmp_path):
    settings = {**SMALL, "train.epochs": 30, "train.lr": 0.01, "train.eval_every": 30}
    run = modulekge.train(family, "Paths-ModulE-RC", settings, out=tmp_path / "run")
    losses = [record.loss for record in run.folder.records()]
    assert losses[-1] < losses[0] - 0.3
    assert run.model.entity_numbers == 0


def test_the_same_seed_gives_the_same_bits_resumed_or_not(family, run, tmp_path):
    again = modulekge.train(family, "Paths", SMALL, out=tmp_path / "again")
    assert bits(again.folder.path) == bits(run.folder.path)
    folder = modulekge.train(family, "Paths", SMALL, out=tmp_path / "other").folder
    other = modulekge.train(family, "Paths", {**SMALL, "train.seed": 1}, out=tmp_path / "seed").folder
    assert bits(other.path) != bits(folder.path)


def test_a_training_that_was_left_goes_on_as_if_it_had_not_been(family, run, tmp_path):
    from modulekge.run.folder import RunFolder
    from modulekge.run.train import continue_run
    from modulekge.training.records import EpochRecord

    folder = RunFolder.create(tmp_path / "run", run.config, family)
    events = continue_run(folder)
    for event in events:
        if isinstance(event, EpochRecord) and event.epoch == 2:
            events.close()
    modulekge.resume(folder.path)
    assert bits(folder.path) == bits(run.folder.path)


def test_memory_is_bounded_by_asking_fewer_at_a_time(family, run, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "MOST_NUMBERS", 1)
    one = modulekge.train(family, "Paths", SMALL, out=tmp_path / "run")
    assert one.model.most_questions == 1
    for ours, theirs in zip(one.folder.records(), run.folder.records(), strict=True):
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-4)


def test_edges_that_are_dropped_are_drawn_by_the_seed(family, tmp_path):
    runs = [
        modulekge.train(family, "Paths", {**SMALL, "paths.dropout": 0.3}, out=tmp_path / name)
        for name in ("a", "b")
    ]
    assert bits(runs[0].folder.path) == bits(runs[1].folder.path)


def test_it_is_asked_like_any_other(run):
    modulekge.calibrate(run)
    asked = Predictor(load(run.folder.path))
    answers = asked.predict(head="ada", relation="parent", k=8)
    assert len(answers) == 8 and answers[0].score >= answers[-1].score
    assert any(answer.probability is not None for answer in answers)
    assert asked.predict(head="ada", tail="bob", k=1)[0].name in run.dataset.relations.names
    assert len(asked.links(k=2)) == 2
    assert modulekge.evaluate(run).both["mrr"] > 0


def test_a_new_entity_is_answered_without_training(run, tmp_path):
    larger = modulekge.add(run, [("ada", "parent", "zoe"), ("zoe", "sibling", "bob")], out=tmp_path / "more")
    assert "zoe" in larger.dataset.entities.names
    for name, table in run.model.named_parameters():
        if name != "log_degree":
            assert torch.equal(table, larger.model.get_parameter(name))
    found = {answer.name for answer in Predictor(larger).predict(head="bob", relation="parent", k=9)}
    assert "zoe" in found


def test_a_new_relation_is_refused(run, tmp_path):
    with pytest.raises(RunError, match="'cousin' is new"):
        modulekge.add(run, [("ada", "cousin", "bob")], out=tmp_path / "more")


@pytest.fixture
def village():
    """People nobody has met, and two of the relations."""
    people, relations = ("una", "vic", "wim", "xia"), ("sibling", "parent")
    triples = torch.tensor([(0, 1, 1), (0, 1, 2), (1, 0, 2), (2, 0, 1), (1, 1, 3)])
    return Dataset(
        "village",
        Vocabulary("entity", people),
        Vocabulary("relation", relations),
        triples[:4],
        triples[:0],
        triples[4:],
    )


def test_another_graph_is_answered_without_training(run, village):
    there = run.along(village)
    assert there.dataset.relations is run.dataset.relations
    assert modulekge.evaluate(there).triples == 1
    found = Predictor(there).predict(head="vic", relation="parent", k=4)
    assert {answer.name for answer in found} == {"una", "vic", "wim", "xia"}
    assert all(answer.probability is None for answer in found)


@pytest.mark.parametrize("kind", ["list", "file", "table"])
def test_all_of_a_table_or_file_are_facts_to_answer_by(run, tmp_path, kind):
    facts = [("una", "parent", "vic"), ("una", "parent", "wim"), ("vic", "sibling", "wim")]
    (tmp_path / "village.tsv").write_text("".join("\t".join(fact) + "\n" for fact in facts), "utf-8")
    columns = dict(zip(("head", "relation", "tail"), zip(*facts, strict=True), strict=True))
    given = {"list": facts, "file": tmp_path / "village.tsv", "table": pa.table(columns)}[kind]
    there = run.along(given)
    assert [len(there.dataset[split]) for split in ("train", "valid", "test")] == [3, 0, 0]
    splits = {answer.name: answer.split for answer in Predictor(there).predict(head="una", relation="parent")}
    assert splits == {"una": None, "vic": "train", "wim": "train"}


def test_a_graph_in_the_same_words_is_answered_as_its_own(run):
    same = run.along(run.dataset)
    assert modulekge.evaluate(same).both == modulekge.evaluate(run).both


def test_a_graph_with_other_relations_is_refused_by_name(run, odd):
    with pytest.raises(DataError, match="'lies in' is not known"):
        run.along(odd)


def test_an_embedding_is_not_taken_elsewhere(drawn_run, family, village):
    with pytest.raises(RunError, match="train a model of paths"):
        drawn_run(family, "DistMult").along(village)


def test_what_is_made_of_vectors_is_refused_with_the_reason(run, tmp_path):
    with pytest.raises(RunError, match="has no vectors of entities"):
        modulekge.relation_patterns(run)
    with pytest.raises(RunError, match="ask every entity back"):
        modulekge.rerank(run)
    result = call("export", run.folder.path, "v.parquet", cwd=tmp_path)
    assert result.returncode == 2 and "has no vectors of entities" in result.stderr


def test_it_can_be_shared(run, tmp_path):
    share(run, tmp_path / "shared")
    shared = load(tmp_path / "shared")
    assert modulekge.evaluate(shared).both == modulekge.evaluate(run).both


def test_the_command_takes_another_graph(run, tmp_path):
    file = tmp_path / "graph.tsv"
    file.write_text("una\tparent\tvic\nuna\tparent\twim\nvic\tsibling\twim\n")
    ask = ["predict", str(run.folder.path), "--graph", str(file), "--head", "una", "--relation", "parent"]
    result = call(*ask, "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert {json.loads(line)["name"] for line in result.stdout.splitlines()} == {"una", "vic", "wim"}


@pytest.mark.parametrize(
    ("key", "value"),
    [("loss.kind", "logistic"), ("regularizer.weight", 0.1), ("rerank.prior", 1.0), ("loss.targets", "all")],
)
def test_settings_of_embeddings_are_refused(family, key, value):
    with pytest.raises(ConfigError, match=key):
        plan(family, "Paths", [nested(key, value)], NO_RECIPE)


def test_rows_that_are_no_messages_are_refused_before_training(family):
    with pytest.raises(ConfigError, match="Paths-HAKE"):
        plan(family, "Paths-HAKE", [], NO_RECIPE)


def test_rules_choose_for_paths(family):
    config = resolve(family, "paths-module-hh", [], NO_RECIPE)
    assert config.model.name == "Paths-ModulE-HH"
    assert (config.train.optimizer, config.train.schedule, config.regularizer.weight) == (
        "adam",
        "cosine",
        0.0,
    )


def test_what_is_left_out_follows_what_valid_asks(family):
    assert left_out(family).value == "triple"  # the inverse of what valid asks for is in train
    apart = replace(family, valid=torch.tensor([[3, 2, 4]]))
    assert left_out(apart).value == "pair"
    assert left_out(replace(family, valid=family.valid[:0])).value == "triple"


def test_more_memory_and_time_for_larger_graphs():
    config = make_config([{"model": {"name": "Paths"}}])
    for machine in (Machine("cpu", 2, 1 << 34), Machine("cuda", 16, 1 << 37)):
        small, large = (load_of(Size(n, 10 * n, n // 10), machine, config) for n in (1000, 100_000))
        assert small.bytes <= large.bytes and small.times.a_pass < large.times.a_pass
