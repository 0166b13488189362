"""A run folder made to be shared."""

import json
from dataclasses import asdict

import pytest
import torch
import yaml
from program import call
from rows import ONE_OF_EACH
from safetensors import safe_open

import modulekge
from modulekge.errors import DataError, RunError
from modulekge.exports.formats import export
from modulekge.models.spec import MODELS
from modulekge.run.comparison import compare
from modulekge.run.run import load

SMALL = {"model.k": 4, "train.epochs": 4, "train.batch": 7, "train.eval_every": 2}


def all_scores(run):
    heads, relations, _ = run.dataset.questions("train").unbind(1)
    with torch.no_grad():
        return run.model(heads, relations)


@pytest.fixture(scope="module")
def trained(family, tmp_path_factory):
    run = modulekge.train(family, "ModulE-HH", SMALL, tmp_path_factory.mktemp("runs") / "run")
    run.folder.save_report(modulekge.evaluate(run))
    return run


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_it_loads_as_a_run_with_the_same_scores(family, drawn_run, tmp_path, name, bias):
    run = drawn_run(family, name, bias=bias)
    tied = {"reciprocal": "tied"} if MODELS[name].tieable else {}
    for each in (run, drawn_run(family, name, **tied)):
        again = load(export(each, tmp_path / f"hub{len(list(tmp_path.iterdir()))}", to="hub").path)
        assert torch.equal(all_scores(again), all_scores(each))
        assert again.config == each.config
        assert again.dataset.fingerprint == family.fingerprint
        assert again.dataset.entities.description(0) == "Wrote a program."


def test_other_tools_can_read_it(trained, tmp_path):
    path = export(trained, tmp_path / "hub", to="hub").path
    assert not (path / "weights.safetensors").exists()
    with safe_open(path / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}
        for name, weights in trained.model.state_dict().items():
            assert torch.equal(torch.from_numpy(file.get_tensor(name)), weights)
    config = json.loads((path / "config.json").read_text())
    assert config["settings"]["model"]["k"] == 4
    assert (config["library_name"], config["entities"], config["relations"]) == ("modulekge", 8, 3)
    _, front, card = (path / "README.md").read_text().split("---\n", 2)
    fields = yaml.safe_load(front)
    assert fields["library_name"] == "modulekge"
    assert "license" not in fields
    (result,) = fields["model-index"][0]["results"]
    found = {metric["type"]: metric["value"] for metric in result["metrics"]}
    assert found == trained.folder.report().both
    assert trained.dataset.fingerprint in card
    assert "every entity is a candidate" in card


def test_it_holds_nothing_that_only_its_maker_needs(trained, tmp_path):
    path = export(trained, tmp_path / "hub", to="hub").path
    assert "command" not in (path / "run.json").read_text()
    assert not (path / "last.safetensors").exists()
    assert str(trained.folder.path) not in "".join(
        file.read_text() for file in path.iterdir() if file.suffix != ".safetensors"
    )


def test_commands_take_it_as_a_run_and_training_it_further_is_refused(trained, tmp_path):
    export(trained, tmp_path / "hub", to="hub")
    assert call("evaluate", "hub", cwd=tmp_path).returncode == 0
    assert load(tmp_path / "hub").folder.report().both == trained.folder.report().both
    assert "bob" in call("predict", "hub", "--head", "ada", "--relation", "parent", cwd=tmp_path).stdout
    assert call("runs", ".", cwd=tmp_path).stdout.rstrip().endswith("finished")
    code, _, err = call("resume", "hub", "--set", "train.epochs=9", cwd=tmp_path)
    assert (code, err) == (
        2,
        "error: hub/last.safetensors: no such file, so training cannot go on; train a new run\n",
    )


def test_without_facts_it_still_answers_and_says_what_is_missing(trained, tmp_path):
    code, _, _ = call("export", trained.folder.path, "hub", "--to", "hub", "--without-facts", cwd=tmp_path)
    assert code == 0
    run = load(tmp_path / "hub")
    wanted = modulekge.predict(trained, head="ada", relation="parent")
    found = modulekge.predict(run, head="ada", relation="parent")
    assert [(a.name, a.label, a.score) for a in found] == [(a.name, a.label, a.score) for a in wanted]
    assert not any(a.known for a in found)
    assert run.dataset.notes == (f"{tmp_path / 'hub'}: shared without its facts, so all answers look new",)
    asked = call("predict", "hub", "--head", "ada", "--relation", "parent", cwd=tmp_path)
    assert asked.stderr == "hub: shared without its facts, so all answers look new\n"
    assert not compare([trained.folder.path, tmp_path / "hub"]).cautions  # it is the same graph
    code, _, err = call("export", "hub", "again", "--to", "hub", cwd=tmp_path)
    assert (code, err) == (0, "hub: shared without its facts, so all answers look new\n")
    assert trained.dataset.fingerprint in (tmp_path / "again" / "README.md").read_text()
    for place in ("vocabulary.json", "triples.safetensors", "config.json", "README.md"):
        assert b"bob\tparent" not in (tmp_path / "hub" / place).read_bytes()
    with safe_open(tmp_path / "hub" / "triples.safetensors", "np") as file:
        assert {name: file.get_tensor(name).shape for name in file.keys()} == dict.fromkeys(  # noqa: SIM118
            ("train", "valid", "test"), (0, 3)
        )


def test_probabilities_go_with_the_facts_they_are_of(trained, tmp_path):
    modulekge.calibrate(trained)
    question = {"head": "ada", "relation": "parent"}
    before = modulekge.predict(trained, **question)
    shared = [
        export(trained, tmp_path / f"hub{bare}", to="hub", without_facts=bare).path for bare in (False, True)
    ]
    assert modulekge.predict(shared[0], **question) == before
    assert before[0].probability is not None or before[-1].probability is not None
    assert not any(answer.probability for answer in modulekge.predict(shared[1], **question))


def test_weights_that_need_facts_are_refused_before_anything_is_lost(trained, tmp_path):
    trained.folder.save_report(modulekge.evaluate(trained))
    path = export(trained, tmp_path / "hub", to="hub", without_facts=True).path
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    said = call("rerank", "hub", "--weights", "0,0,1", cwd=tmp_path)
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr.endswith("error: hub: rerank.prior: there are no facts to count; set it to 0\n")
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before


def test_its_settings_stay_the_same_in_both_files(trained, tmp_path):
    path = export(trained, tmp_path / "hub", to="hub", without_facts=True).path
    said = call("rerank", "hub", "--weights", "0.5,0.25,0", cwd=tmp_path)
    assert "kept; there is no valid split to compare on\n" in said.stdout  # nor a test split to report on
    summary = json.loads((path / "config.json").read_text())
    assert summary["settings"] == json.loads(json.dumps(asdict(load(path).config)))
    assert summary["settings"]["rerank"] == {"inverse": 0.5, "hubness": 0.25, "prior": 0.0}
    assert summary["model_type"] == trained.config.model.name
    (path / "config.json").write_text("{")
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    assert "config.json: not valid JSON" in call("rerank", "hub", "--weights", "0,0,0", cwd=tmp_path).stderr
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before


def test_a_graph_without_facts_cannot_be_added_to(trained, tmp_path):
    path = export(trained, tmp_path / "hub", to="hub", without_facts=True).path
    with pytest.raises(DataError, match="family: shared without its facts"):
        modulekge.add(path, [("ada", "parent", "zoe")])
    assert list(tmp_path.iterdir()) == [path]


def test_a_graph_without_facts_cannot_be_trained_on(trained, tmp_path):
    run = load(export(trained, tmp_path / "hub", to="hub", without_facts=True).path)
    with pytest.raises(DataError, match="shared without its facts"):
        modulekge.train(run.dataset, "DistMult", SMALL, tmp_path / "run")


def test_a_damaged_folder_is_named(trained, tmp_path):
    path = export(trained, tmp_path / "hub", to="hub").path
    (path / "model.safetensors").write_bytes(b"no")
    with pytest.raises(RunError, match=r"model\.safetensors: not a readable safetensors file"):
        load(path)
