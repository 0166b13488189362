import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from modulekge.errors import ModulekgeError
from modulekge.studies import several
from modulekge.studies.cell import Cell, read_result
from modulekge.studies.several import run_cells
from modulekge.training.records import EpochRecord

pytestmark = pytest.mark.integration

BRIEF = (("train.epochs", 3), ("model.k", 4), ("train.eval_every", 1))
CELLS = [Cell("world", "DistMult", "", BRIEF, seed) for seed in range(3)]


def kept(folder):
    """What the cells gave, but for the time it took."""
    return [replace(read_result(cell, folder), train_seconds=0.0) for cell in CELLS]


def test_processes_give_what_one_gives(tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for workers, folder in enumerate(folders, start=1):
        news = list(run_cells(CELLS, folder / "results", folder / "runs", workers))
        assert sorted(cell.name for cell, event in news if event is None) == [cell.name for cell in CELLS]
        epochs = [(cell.seed, event.epoch) for cell, event in news if isinstance(event, EpochRecord)]
        assert sorted(epochs) == [(seed, epoch) for seed in range(3) for epoch in (1, 2, 3)]
    assert kept(folders[0] / "results") == kept(folders[1] / "results")


def test_time_that_is_over_ends_with_an_epoch_and_the_next_call_goes_on(tmp_path, monkeypatch):
    clock = iter([0.0, 1.0, 61.0])  # at the call, at the first cell, after its first epoch
    monkeypatch.setattr(several, "time", SimpleNamespace(time=lambda: next(clock)))
    news = list(run_cells(CELLS[:2], tmp_path / "results", tmp_path / "runs", minutes=1.0))
    assert [(cell.seed, event.epoch) for cell, event in news if isinstance(event, EpochRecord)] == [(0, 1)]
    monkeypatch.undo()
    news = list(run_cells(CELLS[:1], tmp_path / "results", tmp_path / "runs"))
    assert [event.epoch for _, event in news if isinstance(event, EpochRecord)] == [2, 3]


def test_an_error_in_a_process_ends_all(tmp_path):
    wrong = replace(CELLS[0], settings=(("train.epochs", 3), ("model.k", -1)))
    with pytest.raises(ModulekgeError, match=r"model\.k = -1: expected a number from 1"):
        list(run_cells([wrong, *CELLS[1:]], tmp_path / "results", tmp_path / "runs", workers=2))
    assert multiprocessing.active_children() == []


def test_a_process_that_is_killed_is_missed_and_nothing_is_lost(tmp_path):
    folders = tmp_path / "results", tmp_path / "runs"
    news = run_cells(CELLS[:2], *folders, workers=2)
    next(news)
    for process in multiprocessing.active_children():
        os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(ModulekgeError, match="a process ended without a word"):
        list(news)
    list(run_cells(CELLS[:2], *folders))
    assert all(read_result(cell, folders[0]) for cell in CELLS[:2])


def test_ctrl_c_tells_what_is_done_and_the_same_command_goes_on(tmp_path):
    folders = ["--results", tmp_path / "results", "--runs", tmp_path / "runs"]
    command = ["reproduce", "results", "--dataset", "world", "--models", "ModulE-HH", *folders]
    process = subprocess.Popen(
        [sys.executable, "-m", "modulekge", *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # which may be ignored around here
    )
    epochs = tmp_path / "runs" / "world-ModulE-HH-seed0" / "epochs.jsonl"
    while process.poll() is None and not (epochs.exists() and epochs.read_text()):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    table, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "[1 of 1] modulekge train world --model ModulE-HH" in said
    assert "0 of 1 trainings done; the same command goes on" in said
    assert "not run" in table
