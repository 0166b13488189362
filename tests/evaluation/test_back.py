"""Asking back: scores are those of its formula, ranks follow them, and runs keep what it takes."""

from copy import deepcopy
from dataclasses import replace
from math import log

import pytest
import torch

import modulekge
from modulekge.answers.predictor import Predictor
from modulekge.answers.questions import Question
from modulekge.config import AskingConfig, make_config
from modulekge.errors import ConfigError, RunError
from modulekge.evaluation import scoring
from modulekge.evaluation.evaluate import rank
from modulekge.evaluation.metrics import metrics
from modulekge.evaluation.report import evaluate
from modulekge.evaluation.scoring import entity_scores, entity_scores_each
from modulekge.export.hub import write_hub
from modulekge.export.index import EntityIndex
from modulekge.models.back import Back
from modulekge.models.embedding import Model
from modulekge.models.table import MODELS
from modulekge.run.checkpoint import new_model
from modulekge.run.files import write_tensors
from modulekge.run.folder import RunFolder
from modulekge.workers import ALONE

N, R = 13, 3
KINDS = [("ModulE-HH", False, False), ("BiQUE", False, True), ("RotatE", True, False), ("HAKE", False, False)]


TRAIN = torch.tensor([(0, 1, 4), (2, 1, 4), (3, 1, 5), (4, 4, 0), (4, 4, 2), (1, 5, 12)])
WEIGHTS = AskingConfig(back=0.7, rivals=0.4, counts=0.3)


def drawn(name, tied, bias, weights=WEIGHTS):
    model = Model(MODELS[name], N, 2 * R, 4, tied, bias)
    model.draw(torch.Generator().manual_seed(1), 0.5, 1.0)
    torch.nn.init.normal_(model.entity_bias)
    model.back = Back(weights, TRAIN)
    return model


def by_hand(model, h, r, e):
    """f_r(h, e) + 0.7 f_q(e, h) - 0.4 max_c f_q(e, c) + 0.3 log(1 + n_r(e)), q the inverse of r."""

    def f(a, relation):
        return model(torch.tensor([a]), torch.tensor([relation]))[0].tolist()

    back, times = f(e, r + R if r < R else r - R), sum(row[1:] == [r, e] for row in TRAIN.tolist())
    return f(h, r)[e] + 0.7 * back[h] - 0.4 * max(back) + 0.3 * log(1 + times)


@pytest.mark.parametrize(("name", "tied", "bias"), KINDS)
@pytest.mark.parametrize(("numbers", "kept"), [(1, 0), (100, 0), (1, 1 << 20), (1 << 24, 1 << 26)])
def test_scores_are_those_of_the_formula(name, tied, bias, numbers, kept, monkeypatch, double):
    monkeypatch.setattr(scoring, "_NUMBERS", numbers)
    monkeypatch.setattr(scoring, "_KEPT", kept)
    model = drawn(name, tied, bias)
    heads, relations = torch.tensor([0, 5, 5, 12]), torch.tensor([1, 4, 1, 5])
    expected = torch.tensor(
        [
            [by_hand(model, h, r, e) for e in range(N)]
            for h, r in zip(heads.tolist(), relations.tolist(), strict=True)
        ]
    )
    with torch.no_grad():
        found = entity_scores(model, heads, relations, model.entities())
    assert torch.allclose(found, expected)
    assert len(model.back.last) == (kept > 0)
    rows = torch.tensor([[1, 0], [5, 12], [3, 3], [7, 2]])
    assert torch.allclose(entity_scores_each(model, heads, relations, rows), expected.gather(1, rows))


@pytest.mark.parametrize(("name", "tied", "bias"), KINDS)
def test_the_inverse_of_the_inverse_is_the_relation_itself(name, tied, bias):
    model, relations = drawn(name, tied, bias), torch.arange(2 * R)
    assert torch.equal(model.inverse(relations), (relations + R) % (2 * R))
    assert torch.equal(model.inverse(model.inverse(relations)), relations)


def test_without_a_weight_nobody_is_asked():
    model = drawn("ModulE-HH", False, False, AskingConfig())
    heads, relations = torch.tensor([0, 5]), torch.tensor([1, 4])
    assert torch.equal(entity_scores(model, heads, relations, model.entities()), model(heads, relations))
    assert model.back.offsets == {}
    assert model.name == "ModulE-HH"


def test_processes_that_hold_the_entities_between_them_are_told_that_one_must_hold_all(family):
    config = make_config([{"asking": {"back": 0.5}}])
    new_model(config, family, replace(ALONE, size=2))
    with pytest.raises(ConfigError, match=r"asking: .*without torchrun or with train\.shards = 1"):
        new_model(config, family, replace(ALONE, size=2, shards=2))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = {"model.k": 8, "train.epochs": 6, "train.every": 2, "train.device": "cpu"}
    settings |= {"asking.back": 0.5, "asking.rivals": 0.5, "asking.counts": 0.25}
    return modulekge.train("world", "ModulE-HH", settings, tmp_path_factory.mktemp("runs") / "back")


def test_a_report_has_the_ranks_of_questions_in_their_order(run):
    model, dataset = run.model, run.dataset
    asked = rank(model, dataset.questions("test"), dataset.known)
    report = evaluate(model, dataset, "test")
    assert report.model == "ModulE-HH, asking back"
    assert report.both["mrr"] == pytest.approx(metrics(asked.rank("bottom"))["mrr"])
    half = len(asked.above) // 2
    assert report.tail["mrr"] == pytest.approx(metrics(asked.rank("bottom")[:half])["mrr"])
    plain = modulekge.load(run.folder.path).model
    plain.back = Back()
    assert evaluate(plain, dataset, "test").both["mrr"] != report.both["mrr"]


def test_training_is_validated_without_asking_back(run):
    plain = modulekge.load(run.folder.path).model
    plain.back = Back()
    best = max(record.valid["mrr"] for record in run.folder.records() if record.valid)
    assert evaluate(plain, run.dataset, "valid").both["mrr"] == pytest.approx(best)


def test_answers_have_the_order_of_the_ranking(run):
    question = run.dataset.questions("test")[0]
    heads, relations, _ = question[None].unbind(1)
    scores = entity_scores(run.model, heads, relations, run.model.entities())[0]
    names = run.dataset.entities.names
    answers = modulekge.predict(
        run, head=names[question[0]], relation=run.dataset.relations.names[question[1]]
    )
    shown = {answer.name: answer.score for answer in answers}
    assert shown == {name: pytest.approx(float(scores[names.index(name)]), abs=1e-4) for name in shown}
    index = EntityIndex.build(run)
    found = index.search(heads, relations, k=5, expansion=len(names))
    assert torch.allclose(found.scores, index.exact(heads, relations, k=5).scores, atol=1e-4)


def test_what_it_takes_is_kept_with_the_calibration_and_dropped_with_the_weights(run, tmp_path):
    file = run.folder.back_file
    modulekge.calibrate(run)
    kept = modulekge.load(run.folder.path).model.back
    assert kept.weights == run.config.asking
    assert kept.offsets.keys() == run.model.back.offsets.keys() != set()
    assert all(torch.equal(kept.offsets[r], run.model.back.offsets[r]) for r in kept.offsets)
    write_hub(run, tmp_path / "shared")
    shared = modulekge.load(tmp_path / "shared").model.back.offsets
    assert all(torch.equal(kept.offsets[r], shared[r]) for r in kept.offsets)
    assert "# ModulE-HH, asking back on world" in (tmp_path / "shared" / "README.md").read_text()
    whole = file.read_bytes()
    file.write_bytes(b"nothing")
    with pytest.raises(RunError, match=r"back\.safetensors: .*; remove it, it is made anew"):
        modulekge.load(run.folder.path)
    file.write_bytes(whole)
    modulekge.resume(run.folder.path, {"train.epochs": 12})
    assert not file.exists()


def test_counts_give_no_facts_away(run, tmp_path):
    shared = modulekge.load(run.folder.path)
    with pytest.raises(ConfigError, match="asks back with counts of its facts, which would give them away"):
        write_hub(shared, tmp_path / "bare", without_facts=True)
    shared.model.back = Back(AskingConfig(0.5))
    write_hub(
        replace(shared, config=replace(run.config, asking=AskingConfig(0.5))),
        tmp_path / "bare",
        without_facts=True,
    )
    assert modulekge.load(tmp_path / "bare").model.name == "ModulE-HH, asking back"
    RunFolder(tmp_path / "bare").write_config(run.config)
    with pytest.raises(RunError, match=r"asking\.counts: there are no facts to count; set it to 0"):
        modulekge.load(tmp_path / "bare")


def test_many_questions_are_answered_in_their_order(run):
    asked, names = Predictor(run), run.dataset.entities.names
    triples = run.dataset.test[[5, 60, 7, 40]].tolist()
    relations = run.dataset.relations.names
    questions = [Question(names[h], relations[r], None) for h, r, _ in triples]
    together = asked.predict_many([*questions, Question(names[0], None, names[1])], k=2)
    for question, answers in zip(questions, together, strict=False):
        alone = asked.predict(head=question.head, relation=question.relation, k=2)
        assert [answer.name for answer in answers] == [answer.name for answer in alone]
    scored = asked.score([(names[h], relations[r], names[t]) for h, r, t in triples])
    assert [(link.head, link.relation, link.tail) for link in scored] == [
        (names[h], relations[r], names[t]) for h, r, t in triples
    ]


def test_what_is_kept_is_bounded_and_copied_without_what_is_at_work(monkeypatch):
    monkeypatch.setattr(scoring, "_MOST_OFFSETS", 2 * N)
    model = drawn("ModulE-HH", False, False)
    heads = torch.zeros(4, dtype=torch.long)
    entity_scores(model, heads, torch.arange(4), model.entities())
    assert list(model.back.offsets) == [2, 3]
    other = deepcopy(model).back
    assert other.offsets.keys() == {2, 3}
    assert other.weights == WEIGHTS
    assert other.last == {}


def test_what_was_reckoned_with_other_weights_is_not_used(run):
    modulekge.calibrate(modulekge.load(run.folder.path))
    assert modulekge.load(run.folder.path).model.back.offsets
    run.folder.write_config(replace(run.config, asking=AskingConfig(0.5, 0.25, 0.25)))
    assert modulekge.load(run.folder.path).model.back.offsets == {}
    run.folder.write_config(run.config)


def test_what_was_reckoned_by_a_model_that_is_gone_is_not_used(run):
    modulekge.calibrate(modulekge.load(run.folder.path))
    other = modulekge.load(run.folder.path)
    with torch.no_grad():
        other.model.entity_scalar.mul_(2)
    other.folder.save_back(other.model)
    assert modulekge.load(run.folder.path).model.back.offsets == {}


def test_what_belongs_to_another_graph_is_refused(run):
    model = drawn("ModulE-HH", False, False, run.config.asking)
    model.back.offsets[0] = torch.zeros(N)
    run.folder.save_back(model)
    assert modulekge.load(run.folder.path).model.back.offsets == {}
    unmarked = {"asking": repr(run.config.asking)}
    write_tensors(run.folder.back_file, {"offset:0": torch.zeros(N)}, unmarked)
    with pytest.raises(RunError, match="offset:0 is not of this run; remove the file, it is made anew"):
        modulekge.load(run.folder.path)
    run.folder.back_file.unlink()
