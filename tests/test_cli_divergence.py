"""Training that diverges, as a user meets it: a message, and a run whose last good weights are kept."""

import json

import pytest
from program import call
from safetensors.torch import load_file

GRAPH = "".join(f"e{i % 60}\tr{i % 3}\te{(5 * i + 1) % 40}\n" for i in range(240))
SMALL = ("model.k=4", "train.epochs=2", "train.eval_every=1", "train.batch=64")
STEEP = ("regularizer.p=6", "regularizer.form=G", "regularizer.moved=1")  # of 1,000 it is no float


def chosen(*settings):
    return [word for setting in settings for word in ("--set", setting)]


@pytest.fixture
def place(tmp_path):
    (tmp_path / "graph.tsv").write_text(GRAPH)
    return tmp_path


def all_finite(path):
    return all(bool(values.isfinite().all()) for values in load_file(path).values())


@pytest.mark.parametrize("ema", [0, 0.9])
@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_a_run_that_diverges_keeps_what_was_good_and_can_go_on(place, loss, ema):
    options = ["--model", "ModulE-HH", "--out", "run"]
    settings = chosen(*SMALL, f"loss.kind={loss}", f"train.ema={ema}", *STEEP)
    assert call("train", "graph.tsv", *options, *settings, cwd=place).returncode == 0
    run = place / "run"
    kept = {
        name: (run / name).read_bytes() for name in ("weights.safetensors", "last.safetensors", "report.json")
    }

    failed = call("resume", "run", *chosen("train.epochs=6", "train.lr=1000"), cwd=place)
    assert failed.returncode == 2
    *_, line = failed.stderr.splitlines()
    assert "in epoch 3; what was kept before it stays" in line
    assert "lower train.lr (now 1000)" in line
    assert {name: (run / name).read_bytes() for name in kept} == kept
    assert all_finite(run / "last.safetensors")
    assert len((run / "epochs.jsonl").read_text().splitlines()) == 2

    again = json.loads(call("evaluate", "run", "--json", cwd=place).stdout)
    assert again["both"] == json.loads(kept["report.json"])["both"]
    gone_on = call("resume", "run", *chosen("train.epochs=3", "train.lr=0.01"), cwd=place)
    assert gone_on.returncode == 0, gone_on.stderr
    assert all_finite(run / "last.safetensors")


def test_squares_that_overflow_at_once_leave_no_weights_and_no_report(place):
    """Adagrad divides by their sum, so that infinite ones would leave the rows where they are for ever."""
    options = ["--model", "ModulE-HH", "--out", "run"]
    huge = chosen(
        *SMALL, "loss.kind=logistic", "train.lr=1000", "model.scalar_scale=100000", "regularizer.p=6"
    )
    failed = call("train", "graph.tsv", *options, *huge, cwd=place)
    assert failed.returncode == 2  # though the loss itself is a number
    assert "entity_scalar.sum became infinite or no number in epoch 1;" in failed.stderr
    assert not [
        path
        for path in (place / "run").iterdir()
        if "safetensors" in path.name and "triples" not in path.name
    ]
    assert "no weights yet" in call("evaluate", "run", cwd=place).stderr


def test_a_rate_beyond_all_reason_is_refused_before_training(place):
    failed = call("train", "graph.tsv", "--out", "run", *chosen("train.lr=1e9"), cwd=place)
    assert failed.returncode == 2
    assert "train.lr = 1000000000.0: expected a number from 1e-09 to 1000" in failed.stderr
    assert not (place / "run").exists()
