"""Several models tried in a time and mixed: planned, trained, stopped, continued, kept."""

from dataclasses import replace

import pytest
import torch
from program import call

import modulekge
from modulekge.errors import DataError, RunError
from modulekge.run import portfolio
from modulekge.run.folder import RunFolder
from modulekge.run.load import Machine, Size, Times, load_of
from modulekge.run.mix import mix_runs
from modulekge.run.plan import Plan, resolve
from modulekge.run.portfolio import (
    PATHS,
    ROWS,
    candidates_folder,
    needs_of_mixture,
    plan_portfolio,
    run_trials,
    runs_of,
)
from modulekge.run.progress import unseen

MINUTES = 0.1


def epochs(tried):
    return {each.model: each.epochs for each in tried}


@pytest.fixture(scope="module")
def planned(family):
    return plan_portfolio(family, MINUTES)


def test_the_plan_fits_the_time(planned):
    assert [trial.model for trial in planned.trials] == [*ROWS, PATHS]
    *rows, paths = planned.trials
    assert rows[0].whole + (len(ROWS) - 1) * rows[0].first + paths.whole <= 60 * MINUTES * 0.7 + 1e-6


def test_paths_that_take_too_long_are_left_out_with_a_reason(family, monkeypatch):
    slow = replace(plan_portfolio(family, MINUTES).trials[-1].planned, pace=lambda config: Times(1e6, 1.0))

    def plan(dataset, model, seconds, pacer, seed):
        return slow if model == PATHS else Plan(slow.config, (), slow.pace)

    monkeypatch.setattr(portfolio, "_planned", plan)
    found = plan_portfolio(family, MINUTES)
    assert [trial.model for trial in found.trials] == list(ROWS)
    ((name, why),) = found.left_out
    assert name == PATHS and "there are" in why


def test_what_was_trained_is_mixed_and_the_trials_go(family, tmp_path):
    run = modulekge.train_mixture(family, tmp_path / "run", MINUTES)
    assert len(run.members) == len(ROWS) + 1 and run.folder.calibration() is not None
    told = run.folder.origin("mixed")
    assert {each["model"] for each in told["tried"]} == {*ROWS, PATHS}
    assert all(each["epochs"] > 0 and each["valid_mrr"] > 0 for each in told["tried"])
    assert not candidates_folder(tmp_path / "run").exists()
    assert modulekge.evaluate(run).both["mrr"] > 0


def test_the_best_row_goes_on(family, planned, tmp_path):
    short = replace(planned, trials=tuple(replace(t, first=1e-3, whole=1e-3) for t in planned.trials[:-1]))
    tried = run_trials(short, family, tmp_path / "run")
    assert all(each.epochs <= 2 * each.folder.config().train.eval_every for each in tried)
    best = tried[0].model
    longer = replace(short, trials=tuple(replace(t, whole=30.0) for t in short.trials))
    after = epochs(run_trials(longer, family, tmp_path / "run"))
    assert [model for model, count in after.items() if count > epochs(tried)[model]] == [best]


def test_stopped_it_mixes_what_there_is_and_the_same_call_goes_on(family, planned, tmp_path):
    out, begun = tmp_path / "run", []

    def watch(folder, events):
        begun.append(folder.path.name)
        yield from events

    tried = run_trials(planned, family, out, watch, lambda: len(begun) > 0)
    assert [each.model for each in tried] == begun == [ROWS[0]]
    mix_runs(runs_of(tried), out)
    portfolio.check_place(out)  # a mixture whose trials are kept may be made anew
    more = run_trials(planned, family, out, watch)
    assert epochs(more)[ROWS[0]] >= epochs(tried)[ROWS[0]] and len(more) == len(ROWS) + 1
    portfolio.clear_place(out)
    run, _ = mix_runs(runs_of(more[:1]), out)
    portfolio.remove_trials(out)
    with pytest.raises(RunError, match="exists already; choose another --out"):
        portfolio.check_place(out)
    assert len(run.members) == 1 and modulekge.evaluate(run).both["mrr"] > 0


def test_nothing_trained_is_nothing_to_mix(family, planned, tmp_path):
    with pytest.raises(RunError, match="the same command goes on"):
        run_trials(planned, family, tmp_path / "run", stopped=lambda: True)


def test_trials_of_another_graph_are_refused(family, planned, tmp_path):
    run_trials(
        planned,
        family,
        tmp_path / "run",
        stopped=lambda: (candidates_folder(tmp_path / "run") / ROWS[0] / "epochs.jsonl").exists(),
    )
    other = modulekge.open_dataset("world")
    with pytest.raises(RunError, match="of another graph"):
        run_trials(planned, other, tmp_path / "run")


def test_without_valid_there_is_nothing_to_choose_by(family):
    with pytest.raises(DataError, match="valid"):
        plan_portfolio(replace(family, valid=family.valid[:0]))


def test_what_a_mixture_needs_is_that_of_its_largest_member(family):
    found, machine = needs_of_mixture(family), Machine.at(torch.device("cpu"))
    assert found.fits and found.minutes == 5
    for model in (*ROWS, PATHS):
        assert load_of(Size.of(family), machine, resolve(family, model)).bytes <= found.memory


def test_the_command_shows_its_plan_and_refuses_settings(tmp_path):
    shown = call("train", "world", "--minutes", 0.5, "--dry-run", cwd=tmp_path)
    assert shown.returncode == 0 and "ModulE-HH" in shown.stderr and "in all" in shown.stderr
    (tmp_path / "graph.tsv").write_text("".join(f"e{i % 40}\tr\te{i * 7 % 41}\n" for i in range(99)))
    untold = call("train", "graph.tsv", "--dry-run", cwd=tmp_path)
    assert untold.returncode == 0 and "5 min in all" in untold.stderr  # no recipe is at hand
    (tmp_path / "graph.tsv").unlink()
    assert not any(tmp_path.iterdir())
    refused = call("train", "world", "--model", "Mixture", "--set", "model.k=8", cwd=tmp_path)
    assert refused.returncode == 2 and "--set of anything but train.seed out" in refused.stderr


def test_a_seed_is_that_of_every_model(family, tmp_path):
    assert {trial.planned.config.train.seed for trial in plan_portfolio(family, MINUTES, seed=3).trials} == {
        3
    }
    asked = ("train", "world", "--model", "Mixture", "--set", "train.seed=3", "--minutes", 0.5, "--dry-run")
    assert call(*asked, cwd=tmp_path).returncode == 0


def test_a_model_that_is_slower_than_planned_is_validated_when_its_time_is_over(family, planned, tmp_path):
    seldom = planned.trials[-1]
    config = replace(
        seldom.planned.config, train=replace(seldom.planned.config.train, epochs=9, eval_every=9)
    )
    folder = RunFolder.create(tmp_path / "paths", config, family)
    portfolio.train_for(folder, 1e-3, unseen)
    assert [bool(record.valid) for record in folder.records()] == [False, True]
    portfolio.train_for(folder, 1e-3, unseen)
    assert len(folder.records()) == 2
    portfolio.train_for(folder, 60.0, unseen)
    assert len(folder.records()) == 9
