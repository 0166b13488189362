"""The index against exact scoring."""

import json
import resource

import pytest
import torch
from rows import ONE_OF_EACH

import modulekge
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import ModulekgeError
from modulekge.exports import index as module
from modulekge.exports.formats import export
from modulekge.exports.index import EntityIndex
from modulekge.models.spec import MODELS


@pytest.fixture(scope="module")
def larger() -> Dataset:
    """Three hundred entities in rings."""
    names = tuple(f"e{i}" for i in range(300))
    triples = torch.tensor([(i, r, (i + 7 * r + 1) % 300) for r in range(3) for i in range(300)])
    valid = torch.arange(len(triples)) % 20 == 0
    relations = Vocabulary("relation", ("a", "b", "c"))
    return Dataset(
        "rings", Vocabulary("entity", names), relations, triples[~valid], triples[valid], triples[valid][:3]
    )


def questions(dataset):
    heads, relations, _ = dataset.questions("valid").unbind(1)
    return heads, relations


def test_an_index_that_does_not_fit_on_the_disk_is_said_to(larger, drawn_run, tmp_path):
    run, before = drawn_run(larger, "ModulE-HH"), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, before[1]))
    try:
        with pytest.raises(ModulekgeError, match="free space"):
            export(run, tmp_path / "index", to="index")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.glob("*index*"))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_with_all_entities_as_candidates_it_is_exact(family, drawn_run, name, bias):
    run = drawn_run(family, name, bias=bias)
    index = EntityIndex.build(run)
    heads, relations, _ = family.questions("train").unbind(1)
    found, wanted = index.search(heads, relations, k=8), index.exact(heads, relations, k=8)
    near = {"rtol": 1e-4, "atol": 1e-3}  # all pairs of HAKE's moduli are scored by their squares
    torch.testing.assert_close(found.scores, wanted.scores, **near)
    torch.testing.assert_close(run.model(heads, relations).gather(1, found.ids), wanted.scores, **near)
    assert index.recall(8) == 1.0


@pytest.mark.parametrize("name", [name for name in ONE_OF_EACH if MODELS[name].score.name != "inner"])
def test_candidates_are_near_in_the_models_own_sense(larger, drawn_run, name):
    index = EntityIndex.build(drawn_run(larger, name, k=4))
    by_chance = 60 / 300
    assert index.recall(5, expansion=60) > 2 * by_chance
    assert index.recall(5, expansion=300) == 1.0


@pytest.mark.parametrize("name", ["TransE-L2", "RotE", "ModulE-HH", "BiQUE"])
def test_where_the_metric_is_the_score_few_candidates_do(larger, drawn_run, name):
    bias = MODELS[name].score.name == "inner"
    index = EntityIndex.build(drawn_run(larger, name, k=4, bias=bias))
    assert index.recall(5, expansion=60) > 0.95


def test_one_question_and_many_give_the_same(larger, drawn_run, monkeypatch):
    index = EntityIndex.build(drawn_run(larger, "ModulE-RC"))
    heads, relations = questions(larger)
    whole = index.search(heads, relations, k=3)
    assert whole.ids.shape == (len(heads), 3)
    assert (whole.scores.diff(dim=1) <= 0).all()
    monkeypatch.setattr(module, "_NUMBERS", 1)
    assert torch.equal(index.search(heads, relations, k=3).ids, whole.ids)
    one = index.search(heads[:1], relations[:1], k=3)
    assert torch.equal(one.ids, whole.ids[:1])


def test_more_answers_than_entities_are_not_made_up(family, drawn_run):
    index = EntityIndex.build(drawn_run(family, "DistMult"))
    found = index.search(torch.tensor([0]), torch.tensor([1]), k=50)
    assert sorted(found.ids[0].tolist()) == list(range(8))


def test_what_the_index_does_not_find_is_marked(family, drawn_run):
    run = drawn_run(family, "DistMult")
    index = EntityIndex.build(run)
    index.index.remove(3)
    found = index.search(torch.tensor([0, 1]), torch.tensor([1, 1]), k=8)
    assert found.ids[:, -1].tolist() == [-1, -1]
    assert found.scores[:, -1].tolist() == [-torch.inf, -torch.inf]
    assert 3 not in found.ids
    assert torch.equal(index.search(torch.tensor([0]), torch.tensor([1]), k=8).ids, found.ids[:1])


def test_it_is_kept_with_the_weights_it_is_of(larger, drawn_run, tmp_path):
    run = drawn_run(larger, "ModulE-HH", bias=True)
    written = export(run, tmp_path / "index", to="index", expansion=50)
    assert written.note.startswith("300 entities, metric ip; recall@10 ")
    again = EntityIndex.load(written.path, modulekge.load(run.folder.path))
    assert again.expansion == 50
    built = EntityIndex.build(run, 50)
    assert torch.equal(again.search(*questions(larger)).ids, built.search(*questions(larger)).ids)
    with torch.no_grad():
        run.model.relation_scaling[0, 0, 0] += 1e-3
    with pytest.raises(ModulekgeError, match=r"not an index of the weights of .*export .* --to index"):
        EntityIndex.load(written.path, run)


@pytest.mark.parametrize("content", [None, b"nonsense" * 99])
def test_a_damaged_index_is_refused(family, drawn_run, tmp_path, content):
    run = drawn_run(family, "DistMult")
    path = export(run, tmp_path / "index", to="index").path
    assert json.loads((path / "index.json").read_text())["metric"] == "ip"
    (path / "entities.usearch").unlink()
    if content:
        (path / "entities.usearch").write_bytes(content)
    with pytest.raises(ModulekgeError, match=r"entities\.usearch: .* build it anew"):
        EntityIndex.load(path, run)


def test_questions_that_are_none(family, drawn_run):
    index = EntityIndex.build(drawn_run(family, "DistMult"))
    with pytest.raises(ModulekgeError, match="at least one answer"):
        index.search(torch.tensor([0]), torch.tensor([0]), k=0)
    with pytest.raises(ModulekgeError, match="0 questions"):
        index.search(torch.tensor([], dtype=torch.long), torch.tensor([], dtype=torch.long))
