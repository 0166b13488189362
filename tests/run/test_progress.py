"""From Python, training shows a bar if it is asked for, and nothing otherwise; its data may be in memory."""

import pyarrow as pa
import pytest

import modulekge
from modulekge.errors import DataError

ROWS = [(f"n{i}", "next", f"n{(i + d) % 30}") for i in range(30) for d in (1, 2, 5)]
SMALL = {"train.epochs": 2, "train.eval_every": 1, "model.k": 4}


def test_training_is_shown_if_asked_for(tmp_path, capsys):
    run = modulekge.train(ROWS, "DistMult", SMALL, out=tmp_path / "quiet")
    modulekge.resume(run.folder.path, {"train.epochs": 3})
    assert capsys.readouterr() == ("", "")
    modulekge.resume(run.folder.path, {"train.epochs": 5}, progress=True)
    assert "epoch 5/5" in " ".join(capsys.readouterr().err.split())


def test_tables_are_trained_on_and_added(tmp_path):
    table = pa.table({"w": [0.5] * len(ROWS), **dict(zip("abc", zip(*ROWS, strict=True), strict=True))})
    run = modulekge.train(
        table, "DistMult", SMALL, tmp_path / "run", columns=("a", "b", "c"), labels={"n0": "Zero"}
    )
    assert run.dataset.fingerprint == modulekge.open_dataset(ROWS).fingerprint
    assert run.dataset.entities.labels == {"n0": "Zero"}
    new = pa.table({"head": ["n0", "n0"], "relation": ["next", "next"], "tail": ["far", "n1"]})
    larger = modulekge.add(run, new, tmp_path / "more")
    assert larger.dataset.entities.names[-1] == "far"
    with pytest.raises(DataError, match="is a data set already; give columns and labels to open_dataset"):
        modulekge.train(run.dataset, "DistMult", SMALL, tmp_path / "third", columns=("a", "b", "c"))


@pytest.mark.integration
def test_a_notebook_shows_one_bar_however_long_it_takes_and_whatever_is_installed(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    source = """
import modulekge
ring = [(f"town {i}", "near", f"town {(i + 1) % 30}") for i in range(30)]
settings = {"train.epochs": 30, "train.eval_every": 5, "model.k": 4}
modulekge.train(ring, "DistMult", settings, "ring", progress=True)
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source.strip())])
    nbclient.NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}).execute()
    bar, run = notebook.cells[0].outputs
    assert "ring" in bar["data"]["text/plain"]
    assert "epoch 30/30" in bar["data"]["text/plain"]
    assert len(bar["data"]["text/plain"].splitlines()) == 1
    assert "<b>Run</b>" in run["data"]["text/html"]
