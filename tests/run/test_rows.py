"""Rows as files, and the calibration that a run keeps."""

import csv
import json
from dataclasses import dataclass, replace
from typing import Literal

import pytest
import torch
from pyarrow import parquet

from modulekge.answers.predictor import predict
from modulekge.config import RerankConfig
from modulekge.errors import ModulekgeError, RunError
from modulekge.run.calibrate import calibrate, write_reliability
from modulekge.run.rows import Rows
from modulekge.run.run import load
from modulekge.run.train import resume, train

SETTINGS = {"model.k": 2, "train.epochs": 2, "train.batch": 8}


@dataclass(frozen=True)
class Thing:
    name: str
    size: int
    weight: float | None
    kind: Literal["a", "b"] | None


THINGS = [Thing('x,"y"\né', 1, None, "a"), Thing("z", 2, 0.5, None), Thing("a\rb", 3, 1.0, "b")]


@pytest.mark.parametrize("things", [THINGS, []])
def test_rows_come_back_from_every_format(things, tmp_path):
    rows = Rows.of(Thing, things)
    for ending in ("csv", "jsonl", "parquet"):
        rows.write(tmp_path / f"t.{ending}")
    lines = (tmp_path / "t.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [vars(thing) for thing in things]
    table = parquet.read_table(tmp_path / "t.parquet")
    assert table.to_pylist() == [vars(thing) for thing in things]
    assert [str(field.type) for field in table.schema] == ["string", "int64", "double", "string"]
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        read = list(csv.reader(file))
    assert read[0] == ["name", "size", "weight", "kind"]
    assert read[1:] == [["" if v is None else str(v) for v in vars(thing).values()] for thing in things]


def test_what_is_no_number_is_null():
    rows = Rows({"x": float}, [{"x": float("nan")}, {"x": float("inf")}, {"x": 1.0}])
    assert rows.json_lines() == '{"x": null}\n{"x": null}\n{"x": 1.0}\n'


def test_a_file_that_exists_is_kept_and_other_endings_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("mine")
    for name, message in (
        ("t.csv", "exists already"),
        ("t.xlsx", "expected a file that ends in .csv, .jsonl or .parquet"),
        ("no/t.csv", "there is no folder"),
    ):
        with pytest.raises(RunError, match=message):
            Rows.of(Thing, THINGS).write(tmp_path / name)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_a_calibration_is_kept_until_the_weights_change(family, tmp_path):
    run = train(family, "DistMult", SETTINGS, tmp_path / "run")
    assert run.folder.calibration() is None
    found = calibrate(tmp_path / "run")
    assert run.folder.calibration() == found
    run.folder.save_weights(run.model)
    assert run.folder.calibration() is None
    calibrate(tmp_path / "run")
    run.folder.weights.unlink()
    run.folder.save_checkpoint(run.model, torch.optim.Adagrad(run.model.parameters()), 2)
    assert run.folder.calibration() is None


def test_a_calibration_of_other_weights_is_refused(family, tmp_path):
    run = train(family, "DistMult", SETTINGS, tmp_path / "run")
    first = calibrate(run)
    question = {"head": "ada", "relation": "parent", "known": "exclude"}
    assert predict(run, **question)[0].probability is not None
    calibrate(resume(tmp_path / "run", {"train.epochs": 9}))
    with pytest.raises(RunError, match=r"calibration\.json: fitted to other weights; load the run again"):
        predict(run, **question)
    with pytest.raises(RunError, match="has changed since it was read"):
        calibrate(run)
    run.folder.save_calibration(first)
    with pytest.raises(RunError, match="makes it anew"):
        predict(tmp_path / "run", **question)
    calibrate(tmp_path / "run")
    run.folder.write_config(replace(run.folder.config(), rerank=RerankConfig(inverse=0.5)))  # as by hand
    with pytest.raises(RunError, match="makes it anew"):
        predict(tmp_path / "run", **question)


@pytest.mark.parametrize(
    "text", ["{}", "[]", "{", '{"together": {}, "own": {}, "pairs": {}, "measured": null}']
)
def test_a_damaged_calibration_is_said_to_be_one(family, tmp_path, text):
    train(family, "DistMult", SETTINGS, tmp_path / "run")
    (tmp_path / "run" / "calibration.json").write_text(text)
    with pytest.raises(RunError, match=r"calibration\.json"):
        load(tmp_path / "run").folder.calibration()


def test_reliability_is_drawn(family, tmp_path):
    pytest.importorskip("matplotlib")
    found = calibrate(train(family, "DistMult", SETTINGS, tmp_path / "run"))
    for ending in ("svg", "png"):
        write_reliability(found, tmp_path / f"r.{ending}")
        assert (tmp_path / f"r.{ending}").stat().st_size > 1000
    for name, message in (("r.svg", "exists already"), ("r.pdf", "ends in .png or .svg")):
        with pytest.raises(ModulekgeError, match=message):
            write_reliability(found, tmp_path / name)
