"""Searches on a tiny graph, with Optuna itself."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tomllib
from contextlib import closing
from dataclasses import replace

import pytest

import modulekge
from modulekge.config import make_config
from modulekge.errors import (
    ConfigError,
    DataError,
    ModulekgeError,
    RunError,
    TrainingError,
    UnknownNameError,
    one_of,
)
from modulekge.models.spec import named
from modulekge.studies import tuning
from modulekge.studies.tuning import SPACES, Between, Search, finished, open_study, ranking, tune, write_best

optuna = pytest.importorskip("optuna")

SPACE = {
    "model.name": ("DistMult", "ModulE-RC"),
    "model.k": (2, 4),
    "regularizer.weight": Between(0.001, 0.1),
}
FIXED = [{"train": {"epochs": 4, "eval_every": 2}}]


def search_in(folder, dataset, space=SPACE, fixed=FIXED):
    return Search.of(dataset, space, fixed, str(folder / "tuning.db"))


@pytest.fixture
def search(family, tmp_path):
    return search_in(tmp_path, family)


def run(search, trials, seed=0, minutes=1.0):
    study = open_study(search, seed)
    return study, list(tune(search, study, trials, minutes))


@pytest.mark.parametrize("name", SPACES)
def test_every_value_of_a_space_is_a_setting(name):
    for key, values in SPACES[name].items():
        section, setting = key.split(".")
        for value in (values.low, values.high) if isinstance(values, Between) else values:
            config = make_config([{section: {setting: value}}])
            assert getattr(getattr(config, section), setting) == value
    assert all(named(model).name == model for model in SPACES[name]["model.name"])


def test_the_best_trial_becomes_a_recipe_that_train_takes(search, family, tmp_path):
    study, events = run(search, 3)
    assert [e.state for e in events if e.state != "running"] == ["complete"] * 3
    best = write_best(study, tmp_path / "best.toml")
    assert best.mrr == max(t.mrr for t in ranking(study))
    text = (tmp_path / "best.toml").read_text()
    assert f"3 trials, trial {best.number}, valid MRR {best.mrr:.4f}" in text
    config = modulekge.run.plan.resolve(family, None, [], tmp_path / "best.toml")
    assert config == make_config([tomllib.loads(text)])
    assert {key: getattr(config.model, key) for key in ("name", "k")} == {
        "name": best.settings["model.name"],
        "k": best.settings["model.k"],
    }
    folder = modulekge.run.folder.RunFolder.create(tmp_path / "run", config, family)
    again = modulekge.resume(folder.path)
    assert max(r.valid["mrr"] for r in again.folder.records() if r.valid) == pytest.approx(best.mrr)


def test_test_is_never_touched(family, tmp_path):
    hidden = replace(family, test=family.test[:0])
    study, _ = run(search_in(tmp_path, hidden), 1)
    assert finished(study) == 1


def test_the_same_search_goes_on_and_draws_other_settings(search):
    first, _ = run(search, 2)
    assert finished(first) == 2
    study, events = run(search, 4)
    assert {e.number for e in events} == {2, 3}
    strengths = [t.settings["regularizer.weight"] for t in ranking(study)]
    assert len(set(strengths)) == 4


def test_a_trial_that_is_left_is_the_next_one(search):
    study = open_study(search, 0)
    with closing(tune(search, study, 5, 1.0)) as events:
        left = next(events)
    assert (left.state, finished(study)) == ("running", 0)
    study, events = run(search, 1)
    assert events[-1].settings == left.settings
    assert finished(study) == 1


def test_when_time_is_up_nothing_is_lost(search, tmp_path):
    study, events = run(search, 5, minutes=0.0)
    assert (events, finished(study)) == ([], 0)
    with pytest.raises(TrainingError, match="no trial came to its end"):
        write_best(study, tmp_path / "best.toml")


def test_poor_trials_are_pruned(family, tmp_path):
    # A vast weight leaves all entities alike; four good trials come first, as the pruner waits for as many
    fixed = [{"train": {"epochs": 30, "eval_every": 5, "batch": 4}, "model": {"name": "ComplEx", "k": 8}}]
    search = search_in(tmp_path, family, {"regularizer.weight": (0.0, 1000.0)}, fixed)
    study = open_study(search, 0)
    for weight in (0.0, 0.0, 0.0, 0.0, 1000.0):
        study.enqueue_trial({"regularizer.weight": weight})
    ends = [e for e in tune(search, study, 5, 60.0) if e.state != "running"]
    assert [e.state for e in ends] == ["complete"] * 4 + ["pruned"]
    assert ends[-1].epoch < 30


def test_what_settings_fix_is_not_searched(family, tmp_path):
    search = search_in(tmp_path, family, fixed=[*FIXED, {"model": {"name": "TransE"}}, {"model": {"k": 3}}])
    assert list(search.space) == ["regularizer.weight"]
    study, _ = run(search, 1)
    config = make_config([tomllib.loads(study.trials[0].user_attrs["config"])])
    assert (config.model.name, config.model.k, config.train.epochs) == ("TransE", 3, 4)
    with pytest.raises(ConfigError, match="leave one to search"):
        search_in(tmp_path, family, {"model.k": (1, 2)}, [{"model": {"k": 3}}])


def test_a_storage_of_something_else_is_refused(search, family, tmp_path):
    open_study(search, 0)
    renamed, other = replace(family, name="clan"), replace(family, train=family.train[1:])
    for dataset, space, fixed, finding in (
        (renamed, SPACE, FIXED, "on family"),
        (other, SPACE, FIXED, "on a graph of this name with other triples"),
        (family, {"model.k": (1, 2)}, FIXED, "of another space"),
        (family, SPACE, [{"train": {"epochs": 5}}], "with other settings fixed"),
    ):
        with pytest.raises(RunError, match=f"holds a search {finding}; choose another --out"):
            open_study(search_in(tmp_path, dataset, space, fixed), 0)
    (tmp_path / "letter.db").write_text("dear")
    with pytest.raises(RunError, match=r"letter.db: cannot be used") as error:
        open_study(replace(search, storage=str(tmp_path / "letter.db")), 0)
    assert "\n" not in str(error.value)


def test_the_order_in_which_settings_are_named_does_not_matter(family, tmp_path):
    layers = [{"train": {"epochs": 4}}, {"model": {"k": 3}}]
    open_study(search_in(tmp_path, family, fixed=layers), 0)
    assert open_study(search_in(tmp_path, family, fixed=layers[::-1]), 0).user_attrs["data"] == "family"


@pytest.mark.integration
def test_processes_that_help_end_with_what_interrupts_the_first(family, tmp_path):
    search = search_in(tmp_path, family, fixed=[{"train": {"epochs": 10**6, "eval_every": 1}}])
    open_study(search, 0)
    with pytest.raises(KeyboardInterrupt), tuning.more_workers(search, 1, 0, 1, 600.0):
        raise KeyboardInterrupt
    assert multiprocessing.active_children() == []


def test_when_every_trial_fails_the_reason_is_told(family, tmp_path):
    fixed = [{"regularizer": {"weight": 1e6, "p": 6}, "model": {"scalar_scale": 1e6}}]
    search = search_in(tmp_path, family, {"model.name": ("ModulE-RC",)}, fixed)
    study, events = run(search, 2)
    assert [e.state for e in events] == ["failed", "failed"]
    with pytest.raises(TrainingError, match="2 trials failed, the last so: the loss became"):
        write_best(study, tmp_path / "best.toml")


def test_without_optuna_the_extra_is_named(search, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ModulekgeError, match=r"pip install .*\[tune\]'"):
        open_study(search, 0)


def test_without_a_valid_split_or_with_an_unknown_space(family, tmp_path):
    with pytest.raises(DataError, match="valid split has no triples to compare trials by"):
        search_in(tmp_path, replace(family, valid=family.valid[:0]))
    with pytest.raises(UnknownNameError, match="did you mean paper"):
        one_of("space", "papr", tuning.SPACES)


@pytest.fixture
def place(tmp_path):
    lines = (f"e{i % 20}\tr{i % 3}\te{(7 * i + 1) % 20}\n" for i in range(200))
    (tmp_path / "graph.tsv").write_text("".join(lines))
    return tmp_path


COMMAND = [sys.executable, "-m", "modulekge", "tune", "graph.tsv", "--out", "search", "--model", "distmult",
           "--set", "train.epochs=2", "--set", "train.eval_every=1"]  # fmt: skip
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.mark.integration
def test_the_command_with_two_workers_writes_a_recipe(place):
    done = subprocess.run(
        [*COMMAND, "--workers", "2", "--trials", "4", "--json"],
        cwd=place, env=ENVIRONMENT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["trials"] >= 4
    assert found["recipe"] == "search/best.toml"
    assert "best.toml; train it: modulekge train graph.tsv" in done.stderr


@pytest.mark.integration
def test_ctrl_c_keeps_everything(place):
    process = subprocess.Popen(
        [*COMMAND, "--trials", "1000"],
        cwd=place,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # which may be ignored around here
    )
    line = next(line for line in process.stderr if b"repeated" not in line)  # of the first trial at its end
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=120)
    assert b"complete" in line
    assert process.returncode == 0, rest
    assert b"the same command goes on" in rest
    assert "valid MRR" in (place / "search" / "best.toml").read_text()
