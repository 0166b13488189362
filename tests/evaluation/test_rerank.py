"""Weights of reranking: their MRR is that of a ranking with them, and the best are kept."""

import json
import shutil
from dataclasses import asdict, astuple, replace

import pytest
import torch
from program import call

import modulekge
from modulekge.commands import runs
from modulekge.config import RerankConfig
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import DataError, RunError
from modulekge.evaluation.evaluate import rank
from modulekge.evaluation.metrics import metrics
from modulekge.evaluation.rerank import WEIGHTS, weigh
from modulekge.models.reranked import NOT_RERANKED, Reranked
from modulekge.run.rerank import rerank_with


def names(kind, count):
    return Vocabulary(kind, tuple(f"{kind}{i}" for i in range(count)))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = {"model.k": 8, "train.epochs": 10, "train.eval_every": 5, "train.device": "cpu"}
    return modulekge.train("world", "ModulE-HH", settings, tmp_path_factory.mktemp("runs") / "plain")


@pytest.mark.parametrize("size", [7, 1 << 20])
def test_the_mrr_of_weights_is_that_of_a_ranking_with_them(run, size):
    dataset, scorer = run.dataset, run.scorer
    few = replace(dataset, valid=dataset.valid[::9])
    found = dict(weigh(scorer, few, at_once=size).tried)
    for weights in (WEIGHTS[0], RerankConfig(0.5, 0.25, 1.0), RerankConfig(1.0, 1.0, 0.0)):
        reranked = Reranked(scorer, weights, few.questions("train"))
        ranks = rank(reranked, few.questions("valid"), few.known)
        assert found[weights] == pytest.approx(metrics(ranks.rank("bottom"))["mrr"])


def test_few_questions_of_many_are_enough(run):
    assert 25 < weigh(run.scorer, run.dataset, most=50).questions <= 50


def test_the_best_weights_are_kept_and_what_was_said_of_others_goes(run):
    folder = run.folder
    modulekge.calibrate(run)
    folder.save_report(modulekge.evaluate(run))
    found = weigh(run.scorer, run.dataset)
    weights, mrr = found.best
    assert mrr == max(each for _, each in found.tried) > found.plain
    before = folder.calibration()
    again = modulekge.rerank(run)
    assert folder.report() is None
    assert before.together != folder.calibration().together
    assert again.scorer.weights == weights
    assert again.config == replace(run.config, rerank=weights) == folder.config()
    assert not isinstance(run.scorer, Reranked)  # which is as it was
    assert modulekge.evaluate(again, "valid").both["mrr"] == pytest.approx(mrr)
    modulekge.calibrate(again)
    assert modulekge.rerank(again) is again
    assert folder.calibration() is not None  # for nothing has changed


def test_weights_of_the_run_that_are_better_than_all_others_stay(run):
    other = RerankConfig(0.3, 0.0, 0.3)
    reranked = Reranked(run.scorer, other, run.dataset.questions("train"))
    found = weigh(reranked, run.dataset, choices=WEIGHTS[:2])
    assert [weights for weights, _ in found.tried] == [*WEIGHTS[:2], other]
    assert found.best[0] == other


def test_given_weights_are_taken_whether_they_are_better_or_not(run, tmp_path):
    folder = run.folder.path
    worse = call("rerank", folder, "--weights", "9,0,0", cwd=tmp_path)
    assert "not reranked" in worse.stdout
    assert "kept" in worse.stdout
    assert modulekge.load(folder).config.rerank == RerankConfig(9.0, 0.0, 0.0)
    call("rerank", folder, "--weights", "0,0,0", cwd=tmp_path)
    assert modulekge.load(folder).config.rerank == NOT_RERANKED
    assert run.folder.calibration() is not None
    for wrong in ("1,2", "a,b,c", "-1,0,0"):
        said = call("rerank", folder, "--weights", wrong, cwd=tmp_path)
        assert said.returncode == 2
        assert said.stderr.startswith("error: --weights")


def test_the_command_says_what_is_kept(run, tmp_path):
    folder = str(run.folder.path)
    done = call("rerank", folder, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    tried = found["tried"]
    assert {tuple(weights.values()) for weights, _ in tried} >= {astuple(weights) for weights in WEIGHTS}
    assert found["kept"] == max(tried, key=lambda one: one[1])[0]
    assert tried[0][0] == asdict(RerankConfig())
    done = call("rerank", folder, cwd=tmp_path)
    assert "not reranked" in done.stdout
    assert "the settings of the run stay as they are" in done.stdout


def test_what_was_found_before_a_run_was_trained_on_is_not_kept(run, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(run.folder.path, path)
    old = modulekge.load(path)
    modulekge.resume(path, {"train.epochs": 12, "train.lr": 0.05})
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    for late in (
        modulekge.calibrate,
        lambda run: rerank_with(run, RerankConfig(1.0)),
        lambda run: modulekge.export(run, tmp_path / "hub", to="hub"),
        lambda run: modulekge.add(run, [("Atlantis", "borders", "France")]),
    ):
        with pytest.raises(RunError, match="has changed since it was read; load it and do this again"):
            late(old)
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    assert list(tmp_path.iterdir()) == [path]
    assert modulekge.rerank(path).config.train.epochs == 12


def test_a_report_of_weights_that_are_gone_is_shown_but_not_kept(run, tmp_path, monkeypatch):
    path = tmp_path / "run"
    shutil.copytree(run.folder.path, path)
    view = runs.render.report_view

    def trained_on(report, every):
        loaded = modulekge.load(path)
        loaded.folder.save_weights(loaded.model)
        return view(report, every)

    monkeypatch.setattr(runs.render, "report_view", trained_on)
    said = call("evaluate", path, "--split", "valid", cwd=tmp_path)
    assert said.returncode == 2
    assert "MRR" in said.stdout
    assert said.stderr == f"error: {path}: has changed since it was read; load it and do this again\n"
    assert not (path / "report-valid.json").exists()


def test_a_checkpoint_beside_the_best_weights_changes_nothing(run, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(run.folder.path, path)
    old = modulekge.load(path)
    checkpoint = old.folder.checkpoint
    checkpoint.write_bytes(checkpoint.read_bytes())
    old.folder.calibration_file.unlink(missing_ok=True)
    found = modulekge.calibrate(old)
    assert modulekge.load(path).folder.calibration() == found


def test_without_valid_there_is_nothing_to_compare_on(drawn_run):
    triples = torch.tensor([(0, 0, 1), (1, 0, 2)])
    dataset = Dataset("bare", names("entity", 3), names("relation", 1), triples, triples[:0], triples[:0])
    with pytest.raises(DataError, match="bare: the valid split has no triples to compare weights on"):
        modulekge.rerank(run := drawn_run(dataset, "ModulE-HH"))
    done = call("rerank", run.folder.path, "--weights", "0.5,0.25,0", cwd=run.folder.path.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert "kept; there is no valid split" in done.stdout
    assert modulekge.load(run.folder.path).scorer.weights == RerankConfig(0.5, 0.25, 0.0)
    done = call("rerank", run.folder.path, "--weights", "", cwd=run.folder.path.parent)
    assert "--weights : expected three numbers" in done.stderr
