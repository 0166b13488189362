"""Reranked scores are those of the formula, ranks follow them, and runs keep what they take."""

from dataclasses import replace
from math import log

import pytest
import torch

import modulekge
from modulekge.answers.predictor import Predictor
from modulekge.answers.questions import Question
from modulekge.config import RerankConfig, make_config
from modulekge.errors import ConfigError, RunError
from modulekge.evaluation.evaluate import evaluate, rank
from modulekge.evaluation.metrics import metrics
from modulekge.exports.hub import write_hub
from modulekge.exports.index import EntityIndex
from modulekge.models.embedding import Embedding, EmbeddingScorer
from modulekge.models.reranked import Reranked
from modulekge.models.scorer import Scorer
from modulekge.models.spec import MODELS
from modulekge.run.checkpoint import new_model, weights_hash
from modulekge.run.folder import RunFolder
from modulekge.run.tensors import write_tensors
from modulekge.workers import ALONE

N, R = 13, 3
KINDS = [("ModulE-HH", False, False), ("BiQUE", False, True), ("RotatE", True, False), ("HAKE", False, False)]


TRAIN = torch.tensor([(0, 1, 4), (2, 1, 4), (3, 1, 5), (4, 4, 0), (4, 4, 2), (1, 5, 12)])
WEIGHTS = RerankConfig(inverse=0.7, hubness=0.4, prior=0.3)


def drawn(name, tied, bias):
    model = Embedding(MODELS[name], N, 2 * R, 4, tied, bias)
    model.draw(torch.Generator().manual_seed(1), 0.5, 1.0)
    torch.nn.init.normal_(model.entity_bias)
    return model


class Slow(Scorer):
    """A scorer that has nothing but scores and scores of candidates."""

    def __init__(self, model):
        self.model = model

    name, device = "slow", torch.device("cpu")
    n_entities, n_relations = N, 2 * R

    def scores(self, heads, relations):
        with torch.no_grad():
            return self.model(heads, relations)

    def scores_of(self, heads, relations, candidates):
        return self.scores(heads, relations).gather(1, candidates)


def by_hand(model, h, r, e):
    """f_r(h, e) + 0.7 f_q(e, h) - 0.4 max_c f_q(e, c) + 0.3 log(1 + n_r(e)), q the inverse of r."""

    def f(a, relation):
        return model(torch.tensor([a]), torch.tensor([relation]))[0].tolist()

    back, times = f(e, r + R if r < R else r - R), sum(row[1:] == [r, e] for row in TRAIN.tolist())
    return f(h, r)[e] + 0.7 * back[h] - 0.4 * max(back) + 0.3 * log(1 + times)


HEADS, RELATIONS = torch.tensor([0, 5, 5, 12]), torch.tensor([1, 4, 1, 5])


def expected(model):
    pairs = zip(HEADS.tolist(), RELATIONS.tolist(), strict=True)
    return torch.tensor([[by_hand(model, h, r, e) for e in range(N)] for h, r in pairs])


@pytest.mark.parametrize(("name", "tied", "bias"), KINDS)
@pytest.mark.parametrize(("numbers", "kept"), [(1, 0), (100, 0), (1, 1 << 20), (1 << 24, 1 << 26)])
def test_scores_are_those_of_the_formula(name, tied, bias, numbers, kept, double):
    model = drawn(name, tied, bias)
    reranked = Reranked(EmbeddingScorer(model, numbers, kept), WEIGHTS, TRAIN)
    wanted = expected(model)
    assert torch.allclose(reranked.scores(HEADS, RELATIONS), wanted)
    rows = torch.tensor([[1, 0], [5, 12], [3, 3], [7, 2]])
    assert torch.allclose(reranked.scores_of(HEADS, RELATIONS, rows), wanted.gather(1, rows))


@pytest.mark.parametrize(("name", "tied", "bias"), KINDS)
def test_any_scorer_can_be_reranked(name, tied, bias, double):
    model = drawn(name, tied, bias)
    reranked = Reranked(Slow(model), WEIGHTS, TRAIN)
    assert torch.allclose(reranked.scores(HEADS, RELATIONS), expected(model))
    fast = EmbeddingScorer(model)
    assert torch.allclose(fast.inverse_scores(HEADS, 4), Slow(model).inverse_scores(HEADS, 4))
    assert torch.allclose(fast.best_scores(2), Slow(model).best_scores(2))


def test_asking_for_one_relation_leaves_no_trace_in_the_answers_for_another():
    scorer, fresh = (EmbeddingScorer(drawn("ModulE-HH", False, False)) for _ in range(2))
    scorer.inverse_scores(HEADS, 1)
    assert torch.equal(scorer.inverse_scores(HEADS, 4), fresh.inverse_scores(HEADS, 4))


@pytest.mark.parametrize(("name", "tied", "bias"), KINDS)
def test_the_inverse_of_the_inverse_is_the_relation_itself(name, tied, bias):
    scorer, relations = EmbeddingScorer(drawn(name, tied, bias)), torch.arange(2 * R)
    assert torch.equal(scorer.inverse(relations), (relations + R) % (2 * R))
    assert torch.equal(scorer.inverse(scorer.inverse(relations)), relations)


def test_without_weights_scores_are_the_models_own():
    model = drawn("ModulE-HH", False, False)
    reranked = Reranked(EmbeddingScorer(model), RerankConfig(), TRAIN)
    assert torch.equal(reranked.scores(HEADS, RELATIONS), model(HEADS, RELATIONS))
    assert reranked.offsets == {}
    assert reranked.name == "ModulE-HH"


def test_processes_that_hold_the_entities_between_them_are_told_that_one_must_hold_all(family):
    config = make_config([{"rerank": {"inverse": 0.5}}])
    new_model(config, family, replace(ALONE, size=2))
    with pytest.raises(ConfigError, match=r"rerank: .*without torchrun or with train\.shards = 1"):
        new_model(config, family, replace(ALONE, size=2, shards=2))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = {"model.k": 8, "train.epochs": 6, "train.eval_every": 2, "train.device": "cpu"}
    settings |= {"rerank.inverse": 0.5, "rerank.hubness": 0.5, "rerank.prior": 0.25}
    return modulekge.train("world", "ModulE-HH", settings, tmp_path_factory.mktemp("runs") / "back")


def test_a_report_has_the_ranks_of_questions_in_their_order(run):
    scorer, dataset = run.scorer, run.dataset
    asked = rank(scorer, dataset.questions("test"), dataset.known)
    report = evaluate(scorer, dataset, "test")
    assert report.model == run.name == "ModulE-HH, reranked"
    assert report.both["mrr"] == pytest.approx(metrics(asked.rank("bottom"))["mrr"])
    half = len(asked.above) // 2
    assert report.tail["mrr"] == pytest.approx(metrics(asked.rank("bottom")[:half])["mrr"])
    assert evaluate(scorer.plain, dataset, "test").both["mrr"] != report.both["mrr"]


def test_training_is_validated_without_reranking(run):
    best = max(record.valid["mrr"] for record in run.folder.records() if record.valid)
    assert evaluate(run.scorer.plain, run.dataset, "valid").both["mrr"] == pytest.approx(best)


def test_answers_have_the_order_of_the_ranking(run):
    question = run.dataset.questions("test")[0]
    heads, relations, _ = question[None].unbind(1)
    scores = run.scorer.scores(heads, relations)[0]
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
    file = run.folder.offsets_file
    modulekge.calibrate(run)
    kept = modulekge.load(run.folder.path).scorer
    assert kept.weights == run.config.rerank
    assert kept.offsets.keys() == run.scorer.offsets.keys() != set()
    assert all(torch.equal(kept.offsets[r], run.scorer.offsets[r]) for r in kept.offsets)
    write_hub(run, tmp_path / "shared")
    shared = modulekge.load(tmp_path / "shared").scorer.offsets
    assert all(torch.equal(kept.offsets[r], shared[r]) for r in kept.offsets)
    assert "# ModulE-HH, reranked on world" in (tmp_path / "shared" / "README.md").read_text()
    whole = file.read_bytes()
    file.write_bytes(b"nothing")
    with pytest.raises(RunError, match=r"rerank\.safetensors: .*; remove it, it is made anew"):
        _ = modulekge.load(run.folder.path).scorer
    file.write_bytes(whole)
    modulekge.resume(run.folder.path, {"train.epochs": 12})
    assert not file.exists()


def test_counts_give_no_facts_away(run, tmp_path):
    shared = modulekge.load(run.folder.path)
    with pytest.raises(ConfigError, match="is reranked with counts of its facts, which would give them away"):
        write_hub(shared, tmp_path / "bare", without_facts=True)
    plainer = replace(shared, config=replace(run.config, rerank=RerankConfig(0.5)))
    write_hub(plainer, tmp_path / "bare", without_facts=True)
    assert modulekge.load(tmp_path / "bare").name == "ModulE-HH, reranked"
    RunFolder(tmp_path / "bare").write_config(run.config)
    with pytest.raises(RunError, match=r"rerank\.prior: there are no facts to count; set it to 0"):
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


def test_what_is_kept_is_bounded():
    scorer = EmbeddingScorer(drawn("ModulE-HH", False, False))
    reranked = Reranked(scorer, WEIGHTS, TRAIN, most_offsets=2 * N)
    reranked.scores(torch.zeros(4, dtype=torch.long), torch.arange(4))
    assert list(reranked.offsets) == [2, 3]


def test_what_was_worked_out_with_other_weights_is_not_used(run):
    modulekge.calibrate(modulekge.load(run.folder.path))
    assert modulekge.load(run.folder.path).scorer.offsets
    run.folder.write_config(replace(run.config, rerank=RerankConfig(0.5, 0.25, 0.25)))
    assert modulekge.load(run.folder.path).scorer.offsets == {}
    run.folder.write_config(run.config)


def test_what_was_worked_out_by_a_model_that_is_gone_is_not_used(run):
    modulekge.calibrate(modulekge.load(run.folder.path))
    other = modulekge.load(run.folder.path)
    assert other.scorer.offsets
    with torch.no_grad():
        other.model.entity_scalar.mul_(2)
    other.folder.save_offsets(other.scorer, other.model)
    assert modulekge.load(run.folder.path).scorer.offsets == {}


def test_what_belongs_to_another_graph_is_refused(run):
    own = weights_hash(modulekge.load(run.folder.path).model)
    about = {"rerank": repr(run.config.rerank), "weights": own}
    write_tensors(run.folder.offsets_file, {"offset:0": torch.zeros(N)}, about)
    with pytest.raises(RunError, match="offset:0 is not of this run; remove the file, it is made anew"):
        _ = modulekge.load(run.folder.path).scorer
    run.folder.offsets_file.unlink()
