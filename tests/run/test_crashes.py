"""Kills, signals, full disks, folders that cannot be written: what was good stays, and training goes on."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from program import call
from safetensors import safe_open
from safetensors.torch import load_file

import modulekge
from modulekge.errors import RunError
from modulekge.run.train import train

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
SMALL = {"model.k": 4, "train.epochs": 6, "train.batch": 7, "train.eval_every": 2}


@pytest.mark.parametrize("model", ["ModulE-RC", "Paths"])
def test_killed_at_random_moments_a_training_ends_with_the_same_bits(model):
    command = [sys.executable, ROOT / "scripts" / "crashes.py", "--model", model]
    command += ["--kills", "3", "--others", "0"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    print(done.stdout)  # with the seed
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])["trainings"]
    assert found == {"killed": 3, "survived": 3}


def test_a_scheduler_that_ends_a_training_loses_no_epoch_and_a_second_one_is_refused(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "modulekge", "train", "world", "--model", "DistMult", "--out", "run",
         "--set", "model.k=4", "--set", "train.epochs=100000", "--set", "train.eval_every=50"],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    epochs = tmp_path / "run" / "epochs.jsonl"
    while process.poll() is None and (not epochs.exists() or epochs.read_bytes().count(b"\n") < 3):
        time.sleep(0.02)
    second = call("resume", "run", cwd=tmp_path)
    assert (second.returncode, second.stdout) == (2, "")
    assert second.stderr == "error: run: another process is at work on this run; wait for it\n"
    process.send_signal(signal.SIGTERM)
    _, messages = process.communicate()
    assert process.returncode == 0
    kept = len(epochs.read_text().splitlines())
    assert f"stopped after epoch {kept}; 'modulekge resume run' goes on" in messages
    with safe_open(tmp_path / "run" / "last.safetensors", framework="pt") as file:
        assert file.metadata() == {"epoch": str(kept)}


@contextmanager
def files_of_at_most(size):
    """A disk on which files get no longer than so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 250, 500, 700, 900, 1500, 2500])
def test_a_disk_that_is_full_is_one_line_and_what_was_kept_goes_on(family, tmp_path, size):
    whole = train(family, "ModulE-HH", SMALL, tmp_path / "whole").folder
    with (
        files_of_at_most(size),
        pytest.raises(RunError, match=r"cannot be .* \(File too large\); free") as error,
    ):
        train(family, "ModulE-HH", SMALL, tmp_path / "cut")
    assert "\n" not in str(error.value)
    assert not list(tmp_path.rglob(".*.part"))
    if (tmp_path / "cut").exists():
        cut = modulekge.resume(tmp_path / "cut").folder
    else:
        assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == ["whole"]
        cut = train(family, "ModulE-HH", SMALL, tmp_path / "cut").folder
    for file in ("weights.safetensors", "last.safetensors"):
        a, b = load_file(whole.path / file), load_file(cut.path / file)
        assert all(a[name].equal(b[name]) for name in a)


READ_ONLY = """
import subprocess
from pathlib import Path
from program import call
subprocess.run(["mount", "--bind", "run", "run"], check=True)
subprocess.run(["mount", "-o", "remount,bind,ro", "run"], check=True)
before = {path.name: path.read_bytes() for path in Path("run").iterdir()}
for arguments in (["resume", "run", "--set", "train.epochs=9"], ["evaluate", "run"], ["calibrate", "run"]):
    done = call(*arguments, cwd=".")
    assert done.returncode == 2, done
    assert done.stderr.count("\\n") == 1, done
    assert "cannot be written (Read-only file system)" in done.stderr, done
    assert ("MRR" in done.stdout) == (arguments[0] == "evaluate"), done
done = call("predict", "run", "--head", "ada", "--relation", "parent", cwd=".")
assert done.returncode == 0, done
assert {path.name: path.read_bytes() for path in Path("run").iterdir()} == before
"""


def test_a_run_that_cannot_be_written_answers_and_says_what_it_cannot_keep(family, tmp_path):
    alone = ["unshare", "--map-root-user", "--mount"]  # mounts are then seen by this process only
    try:
        subprocess.run([*alone, "mount", "-t", "tmpfs", "none", tmp_path], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no folder can be mounted here")
    train(family, "DistMult", SMALL, tmp_path / "run")
    paths = os.pathsep.join([str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [*alone, sys.executable, "-c", READ_ONLY],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
