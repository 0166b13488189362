"""Runs that were kept, as a user looks at them; and what a shell offers."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from program import call

from modulekge.cli import completion
from modulekge.models.spec import MODELS
from modulekge.render.runs import curves_plot

GRAPH = "".join(f"e{i}\tr{i % 3}\te{(5 * i + 1) % 40}\n" for i in range(240))
SMALL = [
    "--set",
    "model.k=4",
    "--set",
    "train.epochs=4",
    "--set",
    "train.eval_every=2",
    "--set",
    "train.batch=64",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a graph, two runs and a damaged one."""
    place = tmp_path_factory.mktemp("place")
    (place / "graph.tsv").write_text(GRAPH)
    for name, model in (("a", "DistMult"), ("deep/b", "ModulE-RC")):
        code, _, err = call(
            "train", "graph.tsv", "--model", model, "--out", f"runs/{name}", *SMALL, cwd=place
        )
        assert code == 0, err
    shutil.copytree(place / "runs" / "a", place / "runs" / "broken")
    (place / "runs" / "broken" / "run.json").write_text("{")
    return place


def test_runs_lists_all_of_them_with_their_state(place):
    code, out, _ = call("runs", cwd=place)
    assert code == 0
    rows = {line.split()[0]: line for line in out.splitlines()}
    assert rows.keys() == {"run", "a", "deep/b", "broken"}
    assert "DistMult" in rows["a"]
    assert "4 of 4" in rows["a"]
    assert rows["a"].rstrip().endswith("finished")
    assert "damaged: run.json: not valid JSON" in rows["broken"]


def test_runs_as_json_in_the_order_asked_for(place):
    lines = json.loads(call("runs", "runs", "--json", "--sort", "name", cwd=place)[1])
    assert [line["name"] for line in lines] == ["a", "broken", "deep/b"]
    report = json.loads((place / "runs" / "a" / "report.json").read_text())
    assert lines[0]["test_mrr"] == report["both"]["mrr"]
    assert lines[1]["test_mrr"] is None


@pytest.mark.parametrize("lost", ["report.json", "calibration.json"])
def test_a_last_report_that_was_cut_off_is_made_by_resume(place, tmp_path, lost):
    run = shutil.copytree(place / "runs" / "a", tmp_path / "run")
    before = {name: json.loads((run / name).read_text()) for name in ("report.json", "calibration.json")}
    assert "has had its 4 epochs" in call("resume", "run", cwd=tmp_path).stderr
    (run / lost).unlink()
    assert "has had its 4 epochs" in call("resume", "run", "--set", "train.epochs=4", cwd=tmp_path).stderr
    done = call("resume", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    after = {name: json.loads((run / name).read_text()) for name in before}
    assert before["report.json"].pop("seconds")
    assert after["report.json"].pop("seconds")
    assert after == before


def test_names_of_runs_that_are_no_text_can_be_written(place, tmp_path):
    odd = os.fsdecode(b"run-\xff")
    shutil.copytree(place / "runs" / "a", tmp_path / odd)
    done = call("compare", odd, odd, "--out", "table.md", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "run-\ufffd" in (tmp_path / "table.md").read_text("utf-8")


def test_compare_shows_what_differs_the_metrics_and_the_curves(place):
    code, out, _ = call("compare", "runs/a", "runs/deep/b", "--out", "table.md", cwd=place)
    assert code == 0
    assert "model.name" in out
    assert "train.batch" not in out
    assert "test hits@10" in out
    assert "● runs/a" in out
    assert "○ runs/deep/b" in out
    assert "| model.name | DistMult | ModulE-RC |" in (place / "table.md").read_text()
    found = json.loads(call("compare", "runs/a", "runs/deep/b", "--json", cwd=place)[1])
    assert [epoch for epoch, _ in found["curves"][0]] == [2, 4]


def test_a_plot_begins_and_ends_where_its_curves_do():
    lines = curves_plot([((1, 0.1), (9, 0.5)), ((5, 0.3),), ()]).plain.splitlines()
    top, bottom = lines[1], lines[12]
    assert top.startswith("   0.5000 │")
    assert top.endswith("●")
    assert bottom.startswith("   0.1000 │●")
    assert sum(line.count("○") for line in lines) == 1
    assert lines[-1].split() == ["epoch", "1", "9"]
    flat = curves_plot([((3, 0.25),)]).plain
    assert flat.count("●") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["runs", "nowhere"], "nowhere: no such folder"),
        (["runs", "--sort", "speed"], "see 'modulekge runs --help'"),
        (["compare", "runs/a", "nowhere"], "nowhere: not a run folder"),
        (["compare", "runs/a", "runs/broken"], "run.json: not valid JSON"),
        (["compare", "runs/a", "--out", "c.pdf"], "c.pdf: expected a file that ends in .md"),
        (["compare"], "see 'modulekge compare --help'"),
        (["track", "runs/a", "--to", "tensorbord"], "did you mean tensorboard"),
        (["track", "runs/a"], "see 'modulekge track --help'"),
        (["train", "graph.tsv", "--out", "new", "--track", "board"], "unknown tracker 'board'"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(place, arguments, message):
    code, out, err = call(*arguments, cwd=place)
    assert code == 2
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1
    assert not (place / "new").exists()


def test_an_empty_folder_is_no_failure(tmp_path):
    code, out, err = call("runs", ".", cwd=tmp_path)
    assert (code, out) == (0, "")
    assert "no runs in ." in err
    assert call("runs", ".", "--json", cwd=tmp_path)[1] == "[]\n"


@pytest.mark.parametrize("command", ["runs", "compare", "track"])
def test_help_has_an_example(command, tmp_path):
    code, out, _ = call(command, "--help", cwd=tmp_path)
    assert code == 0
    assert "Example: modulekge" in " ".join(out.split())


def test_train_and_track_with_tensorboard(place):
    pytest.importorskip("tensorboard")
    code, out, err = call(
        "train", "graph.tsv", "--out", "runs/live", "--track", "tensorboard", "--json", *SMALL, cwd=place
    )
    assert code == 0, err
    assert [json.loads(line)["epoch"] for line in out.splitlines()[:4]] == [1, 2, 3, 4]
    (place / "runs" / "live").rename(place / "live")  # away from the list of runs
    assert list((place / "live" / "tensorboard").glob("events.*"))
    code, _, err = call("track", "live", "--to", "tensorboard", cwd=place)
    assert (code, err) == (0, "sent to tensorboard\n")


def test_a_tracker_in_trouble_is_a_line_and_training_goes_on(place):
    pytest.importorskip("tensorboard")
    run = Path(shutil.copytree(place / "runs" / "a", place / "trouble"))
    (run / "tensorboard").write_text("a file in the way")
    code, _, err = call("resume", run, "--set", "train.epochs=6", "--track", "tensorboard", cwd=place)
    assert code == 0, err
    assert err.count("warning: tensorboard failed") == 1
    assert len((run / "epochs.jsonl").read_text().splitlines()) == 6
    code, _, err = call("track", run, "--to", "tensorboard", cwd=place)
    assert code == 2
    assert err.startswith("error: tensorboard: ")


def offered(line, cwd) -> list[str]:
    """Ask as bash does what may stand for the last word of a line."""
    words = line.split(" ")
    done = subprocess.run(
        [sys.executable, "-m", "modulekge"],
        cwd=cwd, capture_output=True, text=True, check=True,
        env={
            **os.environ, "_MODULEKGE_COMPLETE": "complete_bash",
            "COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1),
        },
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.integration
def test_a_shell_offers_names(place):
    assert offered("modulekge train graph.tsv --model ModulE-R", place) == [
        name for name in MODELS if name.startswith("ModulE-R")
    ]


def test_what_is_offered(place, tmp_path, monkeypatch):
    monkeypatch.chdir(place)
    assert {"world", "WN18RR", "graph.tsv", "runs"} <= set(completion.datasets(""))
    assert "runs/a" in completion.datasets("runs/")
    assert not any("/" in name for name in completion.datasets("nowhere/"))
    assert {"runs/a", "runs/deep/b"} <= set(completion.run_folders())
    assert "results" in completion.studies()
    assert completion.splits() == ["train", "valid", "test"]
    monkeypatch.chdir(tmp_path)
    assert completion.run_folders() == []
