import json
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import modulekge
from modulekge.algebra.parametrizations import EXPONENTIAL
from modulekge.config import RerankConfig, make_config, read_config
from modulekge.errors import ConfigError, ModulekgeError, RunError
from modulekge.run.defaults import DEFAULT_MODEL
from modulekge.run.files import write_file
from modulekge.run.folder import RunFolder
from modulekge.run.plan import resolve
from modulekge.run.recipes import find_recipe
from modulekge.run.run import load
from modulekge.run.train import continue_run, train
from modulekge.training.records import EpochRecord, stalled

SMALL = {"model.k": 4, "train.epochs": 6, "train.batch": 7, "train.eval_every": 2}


@pytest.fixture
def run(family, tmp_path):
    return train(family, "ModulE-HH", SMALL, tmp_path / "run")


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_a_run_loads_without_its_data_set_and_answers_the_same(run):
    again = load(run.folder.path)
    assert again.dataset.fingerprint == run.dataset.fingerprint
    assert again.dataset.entities.label(0) == "Ada Lovelace"
    assert again.dataset.entities.descriptions == {"ada": "Wrote a program."}  # of what the graph has
    assert again.config == run.config
    assert modulekge.evaluate(again).both == modulekge.evaluate(run).both
    provenance = json.loads((run.folder.path / "run.json").read_text())
    assert provenance["fingerprint"] == run.dataset.fingerprint
    assert provenance["versions"]["torch"] == torch.__version__


def test_weights_that_may_not_be_read_are_not_called_missing(run, monkeypatch):
    opened = Path.open

    def guarded(path, *args, **how):
        if path.name == "weights.safetensors":
            raise PermissionError(13, "Permission denied")
        return opened(path, *args, **how)

    monkeypatch.setattr(Path, "open", guarded)
    with pytest.raises(RunError, match=r"weights\.safetensors: may not be read; change its permissions"):
        load(run.folder.path)


def test_an_older_run_without_descriptions_loads(run):
    path = run.folder.path / "vocabulary.json"
    fields = json.loads(path.read_text())
    del fields["entity_descriptions"]
    path.write_text(json.dumps(fields))
    again = load(run.folder.path)
    assert again.dataset.fingerprint == run.dataset.fingerprint
    assert again.dataset.entities.description(0) is None


def test_a_run_says_on_what_each_part_of_it_was_trained(run):
    modulekge.resume(run.folder.path, {"train.epochs": 8})
    sessions = json.loads((run.folder.path / "run.json").read_text())["sessions"]
    assert [session["first_epoch"] for session in sessions] == [1, 7]
    for session in sessions:
        assert session["device"].startswith("cpu (")
        assert session["threads"] == torch.get_num_threads()
        assert session["versions"]["torch"] == torch.__version__
        assert session.keys() > {"started", "command", "platform"}


@pytest.mark.parametrize("umask", [0o002, 0o077])
def test_a_run_is_open_to_whom_the_umask_says(family, tmp_path, umask):
    before = os.umask(umask)
    try:
        run = train(family, "DistMult", SMALL, tmp_path / "run")
    finally:
        os.umask(before)
    assert run.folder.path.stat().st_mode & 0o777 == 0o777 & ~umask
    assert run.folder.weights.stat().st_mode & 0o777 == 0o666 & ~umask


def test_the_best_weights_are_kept_beside_the_last(run):
    curve = {r.epoch: r.valid["mrr"] for r in run.folder.records() if r.valid}
    assert list(curve) == [2, 4, 6]
    assert modulekge.evaluate(run, "valid").both["mrr"] == pytest.approx(max(curve.values()))


def test_mean_weights_are_kept_with_and_without_a_valid_split(family, tmp_path):
    settings = {**SMALL, "train.ema": 0.7}
    run = train(family, "ModulE-HH", settings, tmp_path / "with")
    curve = [r.valid["mrr"] for r in run.folder.records() if r.valid]
    assert modulekge.evaluate(run, "valid").both["mrr"] == pytest.approx(max(curve))
    alone = replace(family, valid=family.valid[:0])
    run = train(alone, "ModulE-HH", settings, tmp_path / "without")
    checkpoint = load_file(run.folder.checkpoint)
    assert torch.equal(run.model.entity_scalar, checkpoint["optimizer:entity_scalar.mean"])


def test_a_report_goes_with_the_weights_it_was_made_with(run):
    run.folder.save_report(modulekge.evaluate(run))
    assert run.folder.report()
    run.folder.save_weights(run.model)
    assert run.folder.report() is None


def test_a_run_that_lost_its_epochs_is_left_as_it_is(run):
    run.folder.epochs.unlink()
    before = {p.name: p.read_bytes() for p in run.folder.path.iterdir()}
    for epochs in (6, 12):
        with pytest.raises(RunError, match=r"has 0 of the 6 epochs of last\.safetensors"):
            modulekge.resume(run.folder.path, {"train.epochs": epochs})
    assert {p.name: p.read_bytes() for p in run.folder.path.iterdir()} == before


def interrupted(family, path, after, **settings):
    """Train until an epoch and leave the loop there."""
    config = resolve(family, "ModulE-HH", [{"model": {"k": 4}, "train": {**TRAIN, **settings}}])
    folder = RunFolder.create(path, config, family)
    events = continue_run(folder)
    for event in events:
        if isinstance(event, EpochRecord) and event.epoch == after:
            events.close()
            break
    return folder


TRAIN = {"epochs": 6, "batch": 7, "eval_every": 2}


@pytest.mark.parametrize("after", [1, 2, 3, 5])
@pytest.mark.parametrize("optimizer", ["adagrad", "adam"])
@pytest.mark.parametrize("ema", [0.0, 0.7])
def test_a_run_left_after_any_epoch_goes_on_bit_for_bit(family, tmp_path, after, optimizer, ema):
    settings = {"optimizer": optimizer, "ema": ema, "plateau_steps": 2}
    whole = interrupted(family, tmp_path / "whole", 6, **settings)
    cut = interrupted(family, tmp_path / "cut", after, **settings)
    assert [r.epoch for r in cut.records()] == list(range(1, after + 1))
    assert load(cut.path).model  # usable as it is
    for _ in continue_run(cut):
        pass
    assert [r.epoch for r in cut.records()] == list(range(1, 7))
    assert same(load_file(whole.weights), load_file(cut.weights))
    assert same(load_file(whole.checkpoint), load_file(cut.checkpoint))
    assert [r.loss for r in whole.records()] == [r.loss for r in cut.records()]


def test_a_killed_run_goes_on_from_its_last_checkpoint(family, tmp_path):
    whole = interrupted(family, tmp_path / "whole", 6)
    cut = interrupted(family, tmp_path / "cut", 3)
    with cut.epochs.open("a") as file:
        file.write('{"epoch": 4, "lo')  # a record cut short
    for _ in continue_run(cut):
        pass
    assert same(load_file(whole.checkpoint), load_file(cut.checkpoint))


def test_a_run_killed_before_its_first_checkpoint_begins_anew(family, tmp_path):
    whole = interrupted(family, tmp_path / "whole", 6)
    cut = interrupted(family, tmp_path / "cut", 1)
    cut.checkpoint.unlink()
    modulekge.resume(cut.path)
    assert same(load_file(whole.weights), load_file(cut.weights))
    assert same(load_file(whole.checkpoint), load_file(cut.checkpoint))
    assert [r.loss for r in whole.records()] == [r.loss for r in cut.records()]


@pytest.mark.parametrize("epochs", [2, 6])
@pytest.mark.parametrize("ema", [0.0, 0.7])
def test_weights_that_a_kill_cut_off_after_the_first_checkpoint_are_kept_later(family, tmp_path, epochs, ema):
    whole = interrupted(family, tmp_path / "whole", 6, epochs=epochs, ema=ema)
    cut = interrupted(family, tmp_path / "cut", 2, epochs=epochs, ema=ema)
    cut.weights.unlink()
    with pytest.raises(ConfigError, match="has had its 2") if epochs == 2 else nullcontext():
        modulekge.resume(cut.path)
    assert same(load_file(whole.weights), load_file(cut.weights))


def test_more_epochs_can_be_asked_for_and_nothing_else_changes(run):
    modulekge.resume(run.folder.path, {"train.epochs": 8})
    assert [r.epoch for r in run.folder.records()] == list(range(1, 9))
    assert run.folder.config().train.epochs == 8


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train.epochs": 12, "model.k": 5}, "only \\[train\\] settings can change"),
        ({"train.epochs": 12, "train.optimizer": "adam"}, "only \\[train\\] settings can change"),
        ({"train.epochs": 6}, "has had its 6 epochs"),
        ({"train.epochs": 12, "train.device": "cuda:9"}, "CUDA devices"),
        ({"train.epochs": 12, "train.patience": 1, "train.eval_every": 2}, "no better for 1 validations"),
    ],
)
def test_what_cannot_go_on_changes_nothing(run, settings, message):
    if "train.patience" in settings:
        records = run.folder.records()
        worse = {**records[-1].valid, "mrr": 0.0}
        run.folder.write_records([*records[:-1], replace(records[-1], valid=worse)])
    before = {p.name: p.read_bytes() for p in run.folder.path.iterdir()}
    with pytest.raises(ConfigError, match=message):
        modulekge.resume(run.folder.path, settings)
    assert {p.name: p.read_bytes() for p in run.folder.path.iterdir()} == before


def test_a_run_without_its_checkpoint_is_not_trained_anew_over_its_weights(run):
    run.folder.checkpoint.unlink()
    weights = run.folder.weights.read_bytes()
    with pytest.raises(RunError, match="training cannot go on"):
        modulekge.resume(run.folder.path, {"train.epochs": 12})
    assert run.folder.weights.read_bytes() == weights


def test_a_run_killed_between_its_last_record_and_checkpoint_can_be_finished(family, tmp_path):
    whole = interrupted(family, tmp_path / "whole", 6)
    cut = interrupted(family, tmp_path / "cut", 4)
    cut.add_record(replace(cut.records()[-1], epoch=5))
    cut.add_record(replace(cut.records()[-1], epoch=6))
    modulekge.resume(cut.path)
    assert same(load_file(whole.checkpoint), load_file(cut.checkpoint))


def test_early_stopping(family, tmp_path):
    found = train(family, "ModulE-RC", {**SMALL, "train.epochs": 200, "train.patience": 3}, tmp_path / "r")
    curve = [r.valid["mrr"] for r in found.folder.records() if r.valid]
    assert len(curve) < 100
    assert max(curve[-3:]) <= max(curve[:-3])


def test_stalled():
    def curve(*values):
        return [EpochRecord(i, 0.0, 0.1, 1.0, 1.0, {"mrr": v}) for i, v in enumerate(values)]

    assert not stalled(curve(0.1, 0.2, 0.3), 2)
    assert stalled(curve(0.3, 0.2, 0.3), 2)
    assert not stalled(curve(0.3, 0.2), 2)
    assert not stalled(curve(0.3, 0.2, 0.1, 0.1), 0)


def test_two_trainings_of_one_run_are_not_allowed(family, tmp_path):
    folder = interrupted(family, tmp_path / "r", 1)
    first = continue_run(folder)
    next(first)
    with pytest.raises(RunError, match="another process"):
        next(continue_run(folder))
    first.close()


def test_a_folder_in_use_is_not_overwritten(run, family):
    before = (run.folder.path / "weights.safetensors").read_bytes()
    with pytest.raises(RunError, match="exists already"):
        train(family, "ModulE-HH", SMALL, run.folder.path)
    assert (run.folder.path / "weights.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("weights.safetensors", b"", "weights.safetensors: not a readable safetensors file"),
        ("weights.safetensors", b"\x80\x04pickle", "weights.safetensors: not a readable safetensors file"),
        ("vocabulary.json", b"{", "vocabulary.json: not valid JSON"),
        ("vocabulary.json", b"[]", "vocabulary.json: expected an object"),
        ("vocabulary.json", b"{}", "do not make a graph (the whole: expected an object with the keys name"),
        (
            "vocabulary.json",
            b'{"name": "x", "entities": [1], "entity_labels": [], "relations": null}',
            "do not make",
        ),
        (
            "vocabulary.json",
            b'{"name": "x", "relations": ["r"], "relation_labels": {}, "entities": ["a"], '
            b'"entity_labels": {}, "entity_descriptions": {"a": 1}}',
            "entity_descriptions: expected nothing but text",
        ),
        ("run.json", b"{}", "is not what run.json was written with"),
        ("triples.safetensors", b"junk", "triples.safetensors: not a readable"),
        ("triples.safetensors", None, "triples.safetensors: no such file"),
        ("config.toml", b"= 3", "config.toml: not valid TOML"),
        ("config.toml", b"[train]\nbatchs = 3", "did you mean train.batch"),
        ("config.toml", b"\xff", "config.toml: not valid TOML"),
        ("config.toml", None, "not a run folder"),
        ("epochs.jsonl", b"nonsense\n", "epochs.jsonl:1: not the record of epoch 1"),
        ("epochs.jsonl", b"\xff\n", "epochs.jsonl:1: not the record of epoch 1"),
        ("epochs.jsonl", b"[]\n", "epochs.jsonl:1: not the record of epoch 1"),
    ],
)
def test_a_damaged_run_says_which_file_and_what_to_do(run, name, content, message):
    path = run.folder.path / name
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(ModulekgeError) as error:
        load(run.folder.path).folder.records()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_weights_of_another_shape_or_graph_are_refused(run):
    tensors = load_file(run.folder.weights)
    save_file({**tensors, "entity_scalar": tensors["entity_scalar"][:3].contiguous()}, run.folder.weights)
    with pytest.raises(RunError, match="do not belong together"):
        load(run.folder.path)
    triples = load_file(run.folder.path / "triples.safetensors")
    save_file({**triples, "test": triples["test"] + 100}, run.folder.path / "triples.safetensors")
    with pytest.raises(ModulekgeError, match="out of range"):
        load(run.folder.path)


def test_names_in_another_order_are_noticed(run):
    path = run.folder.path / "vocabulary.json"
    fields = json.loads(path.read_text())
    path.write_text(json.dumps({**fields, "entities": fields["entities"][::-1]}))
    with pytest.raises(RunError, match=r"is not what run\.json was written with"):
        load(run.folder.path)


def test_a_checkpoint_of_something_else_is_refused(run):
    tensors = load_file(run.folder.checkpoint)
    key = "optimizer:entity_scalar.sum"
    other = {**tensors, key: tensors[key][:2].contiguous()}
    for changed, metadata in ((tensors, None), (tensors, {"epoch": "²"}), (other, {"epoch": "6"})):
        save_file(changed, run.folder.checkpoint, metadata)
        with pytest.raises(RunError, match="not a checkpoint of this run"):
            next(continue_run(run.folder))


def test_files_are_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    write_file(path, "old")
    path.chmod(0o600)
    with pytest.raises(RunError, match="cannot be written"):
        write_file(tmp_path / "absent" / "file", "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_is_no_run_is_left_alone(family, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(RunError, match="exists already and is no run"):
        train(family, "DistMult", SMALL, tmp_path / "mine")
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_settings_come_in_layers(family, tmp_path):
    recipe = tmp_path / "r.toml"
    recipe.write_text('[model]\nname = "DistMult"\nk = 9\n[train]\nlr = 0.2\n')
    config = resolve(family, None, [{"train": {"lr": 0.3}}], recipe)
    assert (config.model.name, config.model.k, config.train.lr) == ("DistMult", 9, 0.3)
    assert config.data == "family"
    other = resolve(family, "rotate", [], recipe)
    assert (other.model.name, other.model.score, other.model.k) == ("RotatE", "distance", 9)
    assert resolve(family) == resolve(family, DEFAULT_MODEL)
    renamed = resolve(family, None, [{"model": {"name": "quate"}}], recipe)
    assert (renamed.model.name, renamed.model.vector) == ("QuatE", "H")
    with pytest.raises(ConfigError, match="name the graph as DATA"):
        resolve(family, None, [{"data": "other"}])


def test_a_resolved_configuration_is_a_recipe_for_the_same(run):
    assert resolve(run.dataset, None, [], run.folder.config_file) == run.config


def test_a_user_made_row_trains_is_kept_and_loads_by_its_words(family, tmp_path):
    spec = modulekge.row("ModulE-CH", "C", "H", "GL(1,C)", "U_H(1)", "inner")
    run = train(family, spec, {**SMALL, "model.parametrization": "exponential"}, tmp_path / "ch")
    again = load(run.folder.path).model
    assert again.spec.name == "ModulE-CH"
    assert again.spec.words() == spec.words()
    assert again.entity_vector.shape == (8, 3, 4)
    parametrized = modulekge.MODELS["QuatE"].parametrized(EXPONENTIAL)
    assert resolve(family, parametrized).model.parametrization == "exponential"


def test_every_recipe_can_be_resolved():
    from modulekge.run.recipes import RECIPES

    paths = sorted(RECIPES.glob("*/*.toml"))
    assert paths
    for path in paths:
        config = make_config([read_config(path)], str(path))
        assert config.data == path.parent.name
        ending = next(
            (ending for ending in ("-best", "-paper", "-extended") if path.stem.endswith(ending)), ""
        )
        assert config.model.name == path.stem.removesuffix(ending)
        assert config.rerank == RerankConfig() or ending in ("-best", "-extended")
        assert (find_recipe(config.data, config.model.name) == path) == (not ending)  # others are named


def test_a_recipe_of_the_package_can_be_named_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named, world = Path("recipes/world/DistMult.toml"), modulekge.open_dataset("world")
    assert resolve(world, "DistMult", recipe=named) == resolve(world, "DistMult")
    named.parent.mkdir(parents=True)
    named.write_text("[model]\nname = 'DistMult'\nk = 3\n")
    assert resolve(world, "DistMult", recipe=named).model.k == 3  # a file that is here comes first
    with pytest.raises(ModulekgeError, match=r"recipes/world/Nobody.toml: No such file"):
        resolve(world, "DistMult", recipe=named.with_name("Nobody.toml"))


@pytest.mark.integration
def test_results_do_not_depend_on_the_environment(tmp_path):
    settings = {"model.k": 2, "train.epochs": 1, "train.batch": 1024}
    given = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    bare = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}  # file names are then only bytes
    surroundings = {
        "here": {"PYTHONHASHSEED": "1", "COLUMNS": "200", "TZ": "Asia/Tokyo"},
        "th\u00e9r\u00e9": {"PYTHONHASHSEED": "2", "COLUMNS": "9", "TERM": "dumb", "NO_COLOR": "1", **bare},
    }
    printed, weights = [], []
    for name, variables in surroundings.items():
        (tmp_path / name).mkdir()
        done = subprocess.run(
            [sys.executable, "-m", "modulekge", "train", "world", "--model", "DistMult", "--recipe", "none",
             "--out", name, "--json", *given],
            env={**os.environ, "OMP_NUM_THREADS": "1", **variables}, cwd=tmp_path / name, capture_output=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        printed.append([{key: v for key, v in line.items() if "second" not in key} for line in lines])
        folder = tmp_path / name / name
        kept = ("weights.safetensors", "last.safetensors", "calibration.json", "vocabulary.json")
        weights.append([(folder / file).read_bytes() for file in kept])
        assert name in json.loads((folder / "run.json").read_text("utf-8"))["command"]
    assert printed[0] == printed[1]
    assert weights[0] == weights[1]


def test_another_number_of_threads_changes_no_more_than_rounding(tmp_path):
    losses = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        run = train("world", "ModulE-RC", {"model.k": 4, "train.epochs": 2}, tmp_path / str(threads))
        losses.append([record.loss for record in run.folder.records()])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_the_same_seed_gives_the_same_bits_on_several_threads(tmp_path):
    """Where gradients of many questions meet in one row, they are added in the same order each time."""
    torch.set_num_threads(2)
    settings = {"model.k": 16, "model.bias": True, "loss.candidates": "sampled", "loss.negatives": 64}
    settings |= {"train.batch": 2048, "train.epochs": 1}
    runs = [train("world", "ModulE-HH", settings, tmp_path / name) for name in "ab"]
    kept = [(run.folder.path / "last.safetensors").read_bytes() for run in runs]
    assert kept[0] == kept[1]
    assert not torch.are_deterministic_algorithms_enabled()  # for others in this process, all is as before
