"""Graphs of runs that are read without the names of their entities."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from modulekge.data.registry import open_dataset
from modulekge.errors import DataError, RunError
from modulekge.run.folder import RunFolder
from modulekge.run.load import Size
from modulekge.run.plan import NO_RECIPE, plan, resolve


@pytest.fixture
def folder(family, tmp_path):
    return RunFolder.create(tmp_path / "run", resolve(family, recipe=NO_RECIPE), family)


def test_names_of_entities_may_stay_in_their_file(family, folder):
    lean, whole = folder.dataset(names=False), folder.dataset()
    assert lean.fingerprint == whole.fingerprint == family.fingerprint
    assert (lean.name, len(lean.entities), lean.relations.names) == ("family", 8, family.relations.names)
    assert torch.equal(lean.train, family.train)
    for read in (
        lambda: lean.entities.names[0],
        lambda: list(lean.entities.names),
        lambda: lean.entities.label(0),
    ):
        with pytest.raises(RunError, match="names of entities are not held"):
            read()
    assert whole.entities.label(0) == "Ada Lovelace"


def test_settings_are_chosen_without_names(family, folder):
    lean = folder.dataset(names=False)
    assert Size.of(lean) == Size.of(family)
    assert plan(lean, recipe=NO_RECIPE) == plan(family, recipe=NO_RECIPE)


def test_ids_are_held_to_the_number_of_names(folder):
    path = folder.path / "triples.safetensors"
    splits = load_file(path)
    splits["valid"][0, 2] = 8
    save_file(splits, path)
    with pytest.raises(DataError, match=r"tail id 8 is out of range 0\.\.7"):
        folder.dataset(names=False)


def test_a_run_that_does_not_say_how_many_names_it_has_is_read_with_them(family, folder):
    path = folder.path / "run.json"
    about = json.loads(path.read_text())
    assert (about.pop("entities"), about.pop("relations")) == (8, 3)
    path.write_text(json.dumps(about))
    vocabulary = folder.path / "vocabulary.json"
    vocabulary.write_text(json.dumps(json.loads(vocabulary.read_text())))
    assert folder.dataset(names=False).entities.names == family.entities.names


def test_relations_stand_before_entities_in_a_line_of_their_own(folder):
    world = open_dataset("world")
    run = RunFolder.create(folder.path.with_name("world"), resolve(world), world)
    top, rest = (run.path / "vocabulary.json").read_text().splitlines()
    assert '"relation_labels"' in top
    assert '"entities"' not in top
    assert rest.startswith('"entities"')
