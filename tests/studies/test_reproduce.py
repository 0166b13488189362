"""The command says of each figure whether it was made now or read, and writes nothing unasked."""

import json

import pytest
from program import call

from modulekge.run import plan
from modulekge.studies import cell as cells
from modulekge.studies import study

COMMAND = ("reproduce", "results", "--dataset", "world", "--models", "DistMult", "--seeds", "2")


@pytest.fixture
def brief(tmp_path, monkeypatch):
    """A recipe of two epochs."""
    recipe = tmp_path / "brief.toml"
    recipe.write_text('data = "world"\n[model]\nname = "DistMult"\nk = 4\n[train]\nepochs = 2\n')
    for module in (cells, plan, study):
        monkeypatch.setattr(module, "find_recipe", lambda *_: recipe)
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_what_is_read_is_told_from_what_is_trained_now(brief):
    done = call(*COMMAND, cwd=brief)
    assert done.returncode == 0, done.stderr
    first, _, *rows = done.stdout.splitlines()
    assert first == "2 trainings: 0 read from results/studies, 2 trained now"
    assert len(rows) == 4 and all("now: 20" in row and "cpu" in row for row in rows)
    before = files(brief)
    stored = brief / "results" / "studies" / "world-DistMult-seed1.json"
    fields = json.loads(stored.read_text()) | {"date": "2020-01-02", "commit": "abc"}
    stored.write_text(json.dumps(fields))
    done = call(*COMMAND, cwd=brief)
    first, _, *rows = done.stdout.splitlines()
    assert first.startswith("2 trainings: 2 read from results/studies (2020-01-02 .. 20")
    assert "abc" in first and first.endswith("0 trained now; --retrain FOLDER trains them anew and compares")
    assert all("now:" not in row and "2020-01-02 .. " in row for row in rows)
    assert files(brief) == before
    done = call(*COMMAND, "--out", "tables", cwd=brief)
    assert files(brief) - before == {f"tables/results.{end}" for end in ("md", "csv", "svg", "png")}
    done = call(*COMMAND[:-1], "3", "--render", cwd=brief)
    assert "3 trainings: 2 read from" in done.stdout and "0 trained now, 1 not run" in done.stdout


def test_training_anew_compares_with_what_was_stored(brief):
    call(*COMMAND, cwd=brief)
    stored = brief / "results" / "studies" / "world-DistMult-seed0.json"
    fields = json.loads(stored.read_text())
    fields["both"]["mrr"] += 0.02
    stored.write_text(json.dumps(fields))
    kept = stored.read_bytes()
    done = call(*COMMAND, "--retrain", "anew", cwd=brief)
    first, _, mrr, hits, *_ = done.stdout.splitlines()
    assert first == "2 trainings: 0 read from anew/results, 2 trained now"
    assert mrr.split()[-1] == "-0.0100" and hits.split()[-1] == "+0.0000"
    assert stored.read_bytes() == kept
    done = call(*COMMAND, "--retrain", "anew", cwd=brief)  # goes on, which here means that all is done
    assert done.stdout.startswith("2 trainings: 2 read from anew/results (")
    done = call(*COMMAND, "--retrain", "results", cwd=brief)
    assert done.returncode == 2 and "results: is not empty; name a new folder" in done.stderr
