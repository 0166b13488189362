"""A job under torchrun keeps one run folder, whatever happens to its processes."""

import json
import os
import resource
import signal
import time
from pathlib import Path

import pytest
from program import call, launch, launched

from modulekge.run.run import load

pytestmark = pytest.mark.integration

SETTINGS = {
    "train.epochs": 24,
    "train.eval_every": 3,
    "train.patience": 0,  # nothing but faults and its last epoch ends a training here
    "train.batch": 30,
    "train.ema": 0.5,
    "model.k": 4,
}


def words(settings):
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def train(ring, out, **settings):
    settings = words({**SETTINGS, **settings})
    return ["-m", "modulekge", "train", ring, "--model", "ModulE-HH", *settings, "--out", out]


def records(run):
    path = Path(run) / "epochs.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def complaints(stderr):
    return [line for line in stderr.splitlines() if line.startswith("error:")]


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    """Places on a ring, each joined to those some steps on."""
    folder = tmp_path_factory.mktemp("ring") / "ring"
    folder.mkdir()
    facts = [f"p{i}\tstep{r}\tp{(i + r) % 41}\n" for i in range(41) for r in range(1, 8)]
    for split, part in {"train": facts[::2] + facts[1::4], "valid": facts[3::8], "test": facts[7::8]}.items():
        (folder / f"{split}.tsv").write_text("".join(part))
    return folder


@pytest.fixture(scope="module")
def alone(ring, tmp_path_factory):
    """The run of one process."""
    folder = tmp_path_factory.mktemp("alone")
    done = call(*train(ring, folder / "run")[2:], cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "run"


def same(run, other):
    """Whether two runs went alike and rank alike."""
    losses, others = ([r["loss"] for r in records(path)] for path in (run, other))
    assert losses == pytest.approx(others, rel=1e-4)
    mrr, others = ([r["valid"]["mrr"] for r in records(path) if r["valid"]] for path in (run, other))
    assert mrr == pytest.approx(others, rel=2e-2)
    return len(losses) == SETTINGS["train.epochs"]


def workers_of(job):
    """Return the processes that torchrun started."""
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children")
    return [int(pid) for pid in children.read_text().split()]


def until(job, run, epochs):
    """Wait for so many epochs."""
    while len(records(run)) < epochs:
        assert job.poll() is None, job.communicate()[1]
        time.sleep(0.05)


def test_two_train_what_one_goes_on_with(ring, alone, tmp_path):
    """One folder: made by two, continued by one, ranked and asked by one."""
    run = tmp_path / "run"
    done = launch(2, *train(ring, run, **{"train.epochs": 12}))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ModulE-HH on ring, test") == 1  # one of them speaks
    found = load(run)
    assert found.model.entity_scalar.shape == load(alone).model.entity_scalar.shape
    done = call("resume", run, *words({"train.epochs": 24}), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert same(run, alone)
    done = call("predict", run, "--head", "p3", "--relation", "step2", cwd=tmp_path)
    assert done.returncode == 0
    assert "p5" in done.stdout


def test_late_and_killed_processes_cost_nothing_but_time(ring, alone, tmp_path):
    """Torchrun begins anew from the last checkpoint, and the run ends as if nothing had happened."""
    run = tmp_path / "run"
    with launched(2, *train(ring, run), restarts=2) as job:
        until(job, run, 2)
        late = workers_of(job)[1]
        os.kill(late, signal.SIGSTOP)
        time.sleep(1)
        assert job.poll() is None
        os.kill(late, signal.SIGCONT)
        until(job, run, 6)
        os.kill(late, signal.SIGKILL)
        while late in workers_of(job) or len(workers_of(job)) < 2:
            time.sleep(0.05)
        until(job, run, 14)
        os.kill(workers_of(job)[0], signal.SIGKILL)
        _, err = job.communicate(timeout=600)
    assert job.returncode == 0, err
    assert same(run, alone)
    assert 0 < len(complaints(err)) <= 2


def test_without_restarts_a_killed_process_ends_the_job_with_one_line(ring, alone, tmp_path):
    run = tmp_path / "run"
    with launched(2, *train(ring, run, **{"train.epochs": 4000})) as job:
        until(job, run, 5)
        second = launch(2, "-m", "modulekge", "resume", run)
        os.kill(workers_of(job)[1], signal.SIGKILL)
        _, err = job.communicate(timeout=600)
    (said,) = complaints(second.stderr)
    assert "another process is at work on this run" in said
    assert job.returncode != 0
    (said,) = complaints(err)
    assert "a process of this job ended" in said
    assert "modulekge resume" in said
    kept = records(run)
    done = call("resume", run, *words({"train.epochs": len(kept) + 1}), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(records(run)) == len(kept) + 1


def test_a_process_that_torchrun_ends_says_why(ring, tmp_path):
    """Its signal may come before the process has missed the one that is gone."""
    run = tmp_path / "run"
    with launched(2, *train(ring, run, **{"train.epochs": 4000})) as job:
        until(job, run, 2)
        first, second = workers_of(job)
        os.kill(second, signal.SIGKILL)
        os.kill(first, signal.SIGTERM)
        _, err = job.communicate(timeout=600)
    (said,) = complaints(err)
    assert "a process of this job ended" in said


def test_a_full_disk_ends_all_with_one_line_and_the_last_good_state(ring, tmp_path):
    """The limit on the size of files stands for a disk without room for the larger checkpoint."""
    run = tmp_path / "run"
    small = 20_000  # bytes: room for what a run starts with

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (small, small))

    done = launch(2, *train(ring, run, **{"model.k": 16}), preexec_fn=limit)
    assert done.returncode != 0
    (said,) = complaints(done.stderr)
    assert "cannot be written" in said
    assert "what was there is kept" in said
    assert not list(run.glob(".*part"))


def test_a_job_names_its_folder(ring, tmp_path, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "0")
    done = call(*train(ring, tmp_path / "run")[2:-2], cwd=tmp_path)
    assert done.returncode == 2
    assert "--out is missing" in done.stderr
