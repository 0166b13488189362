from dataclasses import replace

import pytest
import torch

import modulekge
from modulekge.config import make_config, nested
from modulekge.machine import free_memory
from modulekge.models.spec import MODELS, named
from modulekge.run.defaults import DEFAULT_MODEL, Choice, Load, Machine, Size, choose
from modulekge.run.plan import NO_RECIPE, plan, resolve

GIB = 2**30
CORE = Machine("cpu", 1, 8 * GIB)
GPU = Machine("cuda", 16, 130 * GIB)
SIZES = {
    "one triple": Size(2, 1, 0),
    "50 triples": Size(40, 50, 0),
    "Nations": Size(14, 1592, 199),
    "CoDEx-S": Size(2034, 32888, 1827),
    "FB15k-237": Size(14541, 272115, 17535),
    "YAGO3-10": Size(123182, 1079040, 5000),
    "5 million": Size(5_000_000, 20_000_000, 5000),
}


def config_of(size, machine, model=None):
    choices = choose(size, machine, named(model) if model else None)
    asked = [nested("model.name", model)] if model else []
    return make_config([*(nested(c.key, c.value) for c in choices), *asked])


@pytest.mark.parametrize("machine", [CORE, GPU, Machine("cpu", 64, 1 * GIB)], ids=str)
@pytest.mark.parametrize("name", SIZES)
def test_every_size_gets_settings_that_fit_into_memory(name, machine):
    size = SIZES[name]
    config = config_of(size, machine)
    load = Load.of(size, machine, config)
    assert load.bytes <= machine.memory / 2 or load.reals <= 8
    assert config.train.eval_every <= config.train.epochs
    assert (config.train.patience > 0) == (size.valid > 0)
    assert load.steps >= min(16, 2 * size.train)


@pytest.mark.parametrize("model", MODELS)
def test_a_model_that_is_asked_for_is_kept_and_gets_a_size(model):
    choices = choose(SIZES["Nations"], CORE, named(model))
    values = {choice.key: choice.value for choice in choices}
    assert "model.name" not in values
    assert 128 < values["model.k"] * named(model).query_size <= 256


def test_less_memory_means_fewer_numbers_and_less_time_drawn_candidates():
    size = SIZES["5 million"]
    ks = [config_of(size, Machine("cpu", 8, memory * GIB)).model.k for memory in (4, 16, 64)]
    assert ks == sorted(set(ks))
    assert config_of(size, CORE).loss.candidates == "shared"
    assert config_of(SIZES["FB15k-237"], CORE).loss.candidates == "all"
    assert config_of(SIZES["YAGO3-10"], GPU).loss.candidates == "all"


def test_a_slow_machine_gets_fewer_epochs_and_is_told_how_long_they_take():
    slow, fast = (choose(SIZES["CoDEx-S"], machine) for machine in (CORE, GPU))
    epochs = [next(c for c in choices if c.key == "train.epochs") for choices in (slow, fast)]
    assert epochs[0].value < epochs[1].value
    assert "min in all on one CPU thread" in epochs[0].reason
    assert "on a GPU" in epochs[1].reason


def test_the_sparser_a_graph_the_more_it_is_penalised():
    strengths = [
        config_of(SIZES[name], CORE).regularizer.weight for name in ("Nations", "CoDEx-S", "FB15k-237")
    ]
    assert strengths == sorted(set(strengths))


def test_rules_come_after_a_recipe_and_before_what_is_asked_for(family):
    world = modulekge.open_dataset("world")
    assert plan(world).choices == ()
    assert plan(world).config.model.name == "ModulE-HH"
    by_rule = plan(world, recipe=NO_RECIPE)
    assert by_rule.config.model.name == DEFAULT_MODEL
    assert {choice.key for choice in by_rule.choices} >= {"model.k", "train.batch", "regularizer.weight"}
    asked = plan(family, "rotate", [{"train": {"batch": 7}}, {"model": {"k": 3}}])
    assert (asked.config.model.name, asked.config.model.k, asked.config.train.batch) == ("RotatE", 3, 7)
    assert not {"model.name", "model.k", "train.batch"} & {choice.key for choice in asked.choices}
    assert resolve(family, None, [{"model": {"scaling": "U_H(1)"}}]).model.name == "ModulE-HH*"


def test_the_choices_are_the_settings_of_the_run(family, tmp_path):
    asked = {"train.epochs": 2}
    run = modulekge.train(family, settings=asked, out=tmp_path / "run")
    for choice in plan(family, None, [nested(*item) for item in asked.items()]).choices:
        assert isinstance(choice, Choice)
        section, key = choice.key.split(".")
        assert getattr(getattr(run.config, section), key) == choice.value
        assert choice.reason


def test_graphs_of_one_relation_and_without_valid_train(tmp_path, family):
    lines = [f"e{i}\tlinks\te{(3 * i + j) % 10}\n" for i in range(10) for j in range(5)]
    (tmp_path / "fifty.tsv").write_text("".join(lines))
    run = modulekge.train(tmp_path / "fifty.tsv", settings={"train.epochs": 2}, out=tmp_path / "fifty")
    assert run.config.model.name == DEFAULT_MODEL
    alone = replace(family, valid=family.valid[:0])
    run = modulekge.train(alone, settings={"train.epochs": 2}, out=tmp_path / "alone")
    assert (run.config.train.patience, len(run.folder.records())) == (0, 2)


def test_a_machine_knows_its_memory():
    assert free_memory(torch.device("cpu")) > 2**20
    assert Machine.at(torch.device("cpu")).kind == "cpu"
