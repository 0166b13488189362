"""Runs mixed into one that is loaded, moved, asked, explained, enlarged and listed like any other."""

import shutil

import pytest
import torch
from program import call

import modulekge
from modulekge.errors import ConfigError, DataError, RunError
from modulekge.explanations.values import Explanation
from modulekge.exports.hub import write_hub
from modulekge.run.listing import list_runs
from modulekge.run.run import load
from modulekge.run.tensors import read_tensors, write_tensors

SMALL = {"model.k": 8, "train.epochs": 3, "train.batch": 16}
PATHS = {"paths.layers": 2, "paths.d": 8, "train.epochs": 2, "train.batch": 6, "train.parts": 1}


@pytest.fixture(scope="module")
def members(family, tmp_path_factory):
    folder = tmp_path_factory.mktemp("members")
    return [
        modulekge.train(family, "ModulE-RC", SMALL, out=folder / "embedding"),
        modulekge.train(family, "Paths", PATHS, out=folder / "paths"),
    ]


@pytest.fixture(scope="module")
def mixed(members, tmp_path_factory):
    return modulekge.mix(members, tmp_path_factory.mktemp("mixed") / "run")


def named(run):
    """The names of the first fact of train."""
    h, r, t = run.dataset.train[0].tolist()
    entities = run.dataset.entities.names
    return entities[h], run.dataset.relations.names[r], entities[t]


def test_scores_are_those_of_the_members_weighted(mixed):
    heads, relations, _ = mixed.dataset.questions("train").unbind(1)
    parts = torch.stack([member.scorer.scores(heads, relations) for member in mixed.members], 1)
    expected = (mixed.mix.weights[relations][:, :, None] * parts).sum(1)
    torch.testing.assert_close(mixed.scorer.scores(heads, relations), expected)


def test_the_folder_is_whole(mixed, members, tmp_path):
    there = tmp_path / "elsewhere"
    shutil.copytree(mixed.folder.path, there)
    again = load(there)
    heads, relations, _ = mixed.dataset.questions("test").unbind(1)
    assert torch.equal(again.scorer.scores(heads, relations), mixed.scorer.scores(heads, relations))
    assert again.folder.calibration().fitted_to == mixed.folder.calibration().fitted_to
    assert modulekge.evaluate(again).model.startswith("Mixture of ")
    alone = modulekge.evaluate(again.members[0], "valid").both["mrr"]
    assert any(alone == modulekge.evaluate(member, "valid").both["mrr"] for member in members)


def test_it_is_asked(mixed):
    head, relation, _ = named(mixed)
    answers = modulekge.predict(mixed, head=head, relation=relation, k=3)
    assert len(answers) == 3 and any(answer.probability for answer in answers)


@pytest.mark.parametrize("place", [0, 1])
def test_the_member_that_counts_most_explains(mixed, tmp_path, place):
    shares = torch.zeros_like(mixed.mix.shares)
    shares[:, place] = 1
    folder = tmp_path / "run"
    shutil.copytree(mixed.folder.path, folder)
    write_tensors(folder / "mixture.safetensors", {"shares": shares, "scales": mixed.mix.scales})
    by_vectors = isinstance(modulekge.explain(folder, *named(mixed)), Explanation)
    assert by_vectors == (not mixed.members[place].model.spec.along_paths)


def test_facts_are_added_to_each_member(mixed, tmp_path):
    _, relation, tail = named(mixed)
    larger = modulekge.add(mixed, [("Newcomer", relation, tail)], out=tmp_path / "larger")
    assert len(larger.members) == 2 and len(larger.dataset.entities) == len(mixed.dataset.entities) + 1
    assert all(len(member.dataset.entities) == len(larger.dataset.entities) for member in larger.members)
    assert larger.folder.calibration() is not None
    assert modulekge.predict(larger, head="Newcomer", relation=relation, k=1)


def test_what_cannot_be_mixed_is_refused(mixed, members, tmp_path):
    with pytest.raises(ConfigError, match="two runs or more"):
        modulekge.mix(members[:1], tmp_path / "one")
    with pytest.raises(RunError, match="a mixture already"):
        modulekge.mix([mixed, members[0]], tmp_path / "nested")
    with pytest.raises(RunError, match="exists already"):
        modulekge.mix(members, members[0].folder.path)
    other = modulekge.train("world", "ModulE-RC", {**SMALL, "train.epochs": 1}, out=tmp_path / "other")
    with pytest.raises(RunError, match="of another graph"):
        modulekge.mix([members[0], other], tmp_path / "both")


def test_what_a_mixture_cannot_do_is_refused(mixed, tmp_path):
    with pytest.raises(RunError, match="a mixture is not trained; make another"):
        modulekge.resume(mixed.folder.path)
    with pytest.raises(RunError, match="rerank its members"):
        modulekge.rerank(mixed)
    with pytest.raises(RunError, match="share its members"):
        write_hub(mixed, tmp_path / "hub")


@pytest.mark.parametrize("damage", ["shares", "negative", "file"])
def test_weights_that_are_not_its_own_are_refused(mixed, tmp_path, damage):
    folder = tmp_path / "damaged"
    shutil.copytree(mixed.folder.path, folder)
    tensors, _ = read_tensors(folder / "mixture.safetensors")
    if damage == "shares":
        write_tensors(folder / "mixture.safetensors", {**tensors, "shares": tensors["shares"][1:]})
    elif damage == "negative":
        write_tensors(folder / "mixture.safetensors", {**tensors, "shares": -tensors["shares"]})
    else:
        (folder / "mixture.safetensors").write_bytes(b"no")
    with pytest.raises((RunError, DataError), match=r"mixture\.safetensors"):
        load(folder)


def test_the_command_says_what_it_found_and_lists_it(members, tmp_path):
    out = tmp_path / "run"
    code, shown, _ = call("mix", *(str(m.folder.path) for m in members), "--out", out, cwd=tmp_path)
    assert code == 0
    assert "all together" in shown and "of valid" in shown and f"modulekge evaluate {out}" in shown
    (line,) = list_runs(tmp_path)
    assert (line.state, line.model) == ("mixed", "Mixture of 2")
