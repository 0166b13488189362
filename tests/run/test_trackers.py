"""Trackers with the tools themselves where they are installed; what they wrote is read back."""

import warnings
from pathlib import Path

import pytest

import modulekge
from modulekge.errors import ModulekgeError, UnknownNameError
from modulekge.run import trackers
from modulekge.run.folder import RunFolder
from modulekge.run.plan import resolve
from modulekge.run.trackers import TRACKERS, Tracking, make_trackers, measures, send
from modulekge.run.train import continue_run, resume, train
from modulekge.training.records import EpochRecord

SMALL = {"model.k": 4, "train.epochs": 4, "train.batch": 7, "train.eval_every": 2}


@pytest.fixture
def run(family, tmp_path):
    found = train(family, "DistMult", SMALL, tmp_path / "run")
    found.folder.save_report(modulekge.evaluate(found))
    return found


class Notes:
    """A tracker that writes down what it is told, and fails when it is told to."""

    def __init__(self, fails_at=""):
        self.told, self.fails_at = [], fails_at

    def _note(self, word):
        self.told.append(word)
        if word == self.fails_at:
            raise OSError("No space left\n on device")

    def start(self, config, name):
        self._note(f"start {name} {config.model.name}")

    def record(self, record):
        self._note(f"epoch {record.epoch}")

    def finish(self, report):
        self._note(f"finish {report.split if report else None}")


def follow(folder, notes):
    """Train a run to its end as the command line does; return the warnings."""
    said = []
    with Tracking(folder, notes, said.append) as tracking:
        for event in continue_run(folder):
            tracking.feed(event)
        tracking.finish(modulekge.evaluate(folder.path))
    return said


@pytest.fixture
def begun(family, tmp_path):
    config = resolve(family, "DistMult", [{"model": {"k": 4}, "train": {"epochs": 3, "batch": 7}}])
    return RunFolder.create(tmp_path / "run", config, family)


WHOLE = ["start run DistMult", "epoch 1", "epoch 2", "epoch 3", "finish test"]


def test_a_tracker_is_told_everything_once_and_in_order(begun):
    notes = Notes()
    assert follow(begun, {"notes": notes}) == []
    assert notes.told == WHOLE


def test_a_run_that_goes_on_is_told_from_its_first_epoch(begun):
    events = continue_run(begun)
    for event in events:
        if isinstance(event, EpochRecord):
            events.close()
            break
    notes = Notes()
    assert follow(begun, {"notes": notes}) == []
    assert notes.told == WHOLE


@pytest.mark.parametrize("fails_at", ["start run DistMult", "epoch 2", "finish test"])
def test_a_tracker_that_fails_is_warned_of_once_and_stops_nothing(begun, fails_at):
    bad, good = Notes(fails_at), Notes()
    (said,) = follow(begun, {"bad": bad, "good": good})
    assert said == (
        f"warning: bad failed (No space left on device) and gets no more of this run; later, "
        f"'modulekge track {begun.path} --to bad' sends all of it"
    )
    assert good.told == WHOLE
    assert bad.told == good.told[: good.told.index(fails_at) + 1]
    assert len(begun.records()) == 3


def test_training_that_breaks_off_ends_the_trackers(begun):
    notes = Notes()
    with pytest.raises(ZeroDivisionError), Tracking(begun, {"notes": notes}, print) as tracking:
        for event in continue_run(begun):
            tracking.feed(event)
            if isinstance(event, EpochRecord):
                raise ZeroDivisionError
    assert notes.told == ["start run DistMult", "epoch 1", "finish None"]


def test_a_kept_run_is_sent_with_its_report(run, monkeypatch):
    notes = Notes()
    monkeypatch.setitem(TRACKERS, "notes", lambda path: notes)
    send(run.folder, "notes")
    assert notes.told == [*WHOLE[:-1], "epoch 4", "finish test"]
    monkeypatch.setitem(TRACKERS, "notes", lambda path: Notes("epoch 2"))
    with pytest.raises(ModulekgeError, match="notes: No space left on device; mend that"):
        send(run.folder, "notes")


def test_a_run_without_epochs_is_not_sent(begun, monkeypatch):
    monkeypatch.setitem(TRACKERS, "notes", lambda path: Notes())
    with pytest.raises(ModulekgeError, match="no epochs yet"):
        send(begun, "notes")


def test_an_unknown_tracker_and_one_that_is_not_installed(family, tmp_path, monkeypatch):
    with pytest.raises(UnknownNameError, match="did you mean tensorboard"):
        make_trackers(["tensorbord"], tmp_path)

    def absent(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(trackers.importlib, "import_module", absent)
    for name in TRACKERS:
        with pytest.raises(ModulekgeError, match=f"{name} is not installed: .*pip install "):
            train(family, "DistMult", SMALL, tmp_path / "run", track=[name])
    assert list(tmp_path.iterdir()) == []


def test_the_names_of_figures():
    record = EpochRecord(3, 1.5, 0.1, 2.0, 50.0, {"mrr": 0.3, "hits@10": 0.6})
    assert measures(record) == {
        "train/loss": 1.5,
        "train/lr": 0.1,
        "train/seconds": 2.0,
        "train/triples_per_second": 50.0,
        "valid/mrr": 0.3,
        "valid/hits_at_10": 0.6,
    }


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_tensorboard_shows_every_epoch_and_the_report(run):
    pytest.importorskip("tensorboard")
    send(run.folder, "tensorboard")
    send(run.folder, "tensorboard")  # a second time shows nothing twice
    found, records = scalars(run.folder.path / "tensorboard"), run.folder.records()
    assert found["train/loss"] == [(r.epoch, pytest.approx(r.loss)) for r in records]
    assert found["valid/mrr"] == [(r.epoch, pytest.approx(r.valid["mrr"])) for r in records if r.valid]
    assert found["test/hits_at_10"][-1] == (4, pytest.approx(run.folder.report().both["hits@10"]))


def test_tensorboard_live_and_over_a_resumption(family, tmp_path):
    pytest.importorskip("tensorboard")
    run = train(family, "DistMult", SMALL, tmp_path / "run", track=["tensorboard"])
    for epochs in (6, 8):  # what comes in the same second is told apart all the same
        resume(run.folder.path, {"train.epochs": epochs}, track=["tensorboard"])
        found = scalars(run.folder.path / "tensorboard")
        assert [step for step, _ in found["train/loss"]] == list(range(1, epochs + 1))
    seconds = [path.name.split(".")[3] for path in (run.folder.path / "tensorboard").glob("events.*")]
    assert len(set(seconds)) >= 3


def test_tensorboard_that_cannot_write_does_not_stop_training(family, tmp_path):
    pytest.importorskip("tensorboard")
    run = train(family, "DistMult", SMALL, tmp_path / "run")
    (run.folder.path / "tensorboard").write_text("a file in the way")
    with pytest.warns(UserWarning, match="tensorboard failed"):
        resume(run.folder.path, {"train.epochs": 6}, track=["tensorboard"])
    assert len(run.folder.records()) == 6


def test_mlflow_keeps_parameters_and_every_epoch(run, tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, on import
        mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    send(run.folder, "mlflow")
    client = mlflow.MlflowClient()
    (kept,) = client.search_runs(["0"])
    assert kept.info.run_name == "run"
    assert kept.info.status == "FINISHED"
    assert kept.data.params["model.name"] == "DistMult"
    history = client.get_metric_history(kept.info.run_id, "valid/hits_at_10")
    records = run.folder.records()
    assert [(m.step, m.value) for m in history] == [(r.epoch, r.valid["hits@10"]) for r in records if r.valid]
    assert kept.data.metrics["test/mrr"] == run.folder.report().both["mrr"]


def test_a_server_that_is_gone_does_not_stop_training(family, tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")  # where nothing listens
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with pytest.warns(UserWarning, match="mlflow failed"):
        run = train(family, "DistMult", SMALL, tmp_path / "run", track=["mlflow"])
    assert len(run.folder.records()) == 4


def test_wandb_keeps_a_run_offline(run, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    send(run.folder, "wandb")
    assert wandb.run is None  # it has ended
    (kept,) = run.folder.path.glob("wandb/offline-run-*/run-*.wandb")
    content = kept.read_bytes()
    assert all(word in content for word in (b"valid/hits_at_10", b"model.name", b"test/mrr"))
