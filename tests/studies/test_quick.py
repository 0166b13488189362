"""Results on small benchmarks are reproduced: make slow, with their folder in MODULEKGE_DATA."""

import os
from pathlib import Path

import pytest

from modulekge.data.benchmarks import DATA_VARIABLE, benchmarks, local_folder
from modulekge.studies.catalogue import STUDIES
from modulekge.studies.cell import read_result, run_cell

PLACE = os.environ.get(DATA_VARIABLE, "")
KEPT = Path(__file__).parents[2] / "results" / "studies"
CELLS = [group[0] for group in STUDIES["results"].cells(quick=True)]


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_a_result_is_made_again(cell, tmp_path, monkeypatch):
    """The same seed gives the same result up to rounding, which other machines do in another order."""
    monkeypatch.setenv(DATA_VARIABLE, PLACE)
    if local_folder(benchmarks()[cell.dataset]) is None:
        pytest.skip(f"no folder {cell.dataset} where {DATA_VARIABLE} says")
    for _ in run_cell(cell, tmp_path / "results", tmp_path / "runs"):
        pass
    ours, kept = (read_result(cell, results) for results in (tmp_path / "results", KEPT))
    assert ours.fingerprint == kept.fingerprint
    low, high = kept.intervals["mrr"]
    assert ours.both["mrr"] == pytest.approx(kept.both["mrr"], abs=(high - low) / 4)
