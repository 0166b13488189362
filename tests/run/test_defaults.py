from dataclasses import replace

import pytest
import torch

import modulekge
from modulekge.config import make_config, nested
from modulekge.machine import free_memory
from modulekge.models.spec import MODELS, named
from modulekge.run.defaults import DEFAULT_MODEL, choose, default_minutes
from modulekge.run.load import Choice, Machine, Size, Times, load_of
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


def config_of(size, machine, asked=None, **how):
    choices = choose(size, machine, asked, **how)
    return make_config([*(nested(c.key, c.value) for c in choices), asked or {}])


def at(a_pass, validation=0.0):
    """A machine on which a pass takes so long with all candidates, and a hundredth with drawn ones."""
    return lambda config: Times(
        a_pass if config.loss.candidates == "all" else a_pass / 100, validation, measured=True
    )


@pytest.mark.parametrize("machine", [CORE, GPU, Machine("cpu", 64, 1 * GIB)], ids=str)
@pytest.mark.parametrize("name", SIZES)
def test_every_size_gets_settings_that_fit_into_memory(name, machine):
    size = SIZES[name]
    config = config_of(size, machine)
    load = load_of(size, machine, config)
    assert load.bytes <= machine.memory / 2 or load.reals <= 8
    assert config.train.eval_every <= config.train.epochs
    assert (config.train.patience > 0) == (size.valid > 0)
    assert load.steps >= min(16, 2 * size.train)


@pytest.mark.parametrize("model", MODELS)
def test_a_model_that_is_asked_for_is_kept_and_gets_a_size(model):
    choices = choose(SIZES["Nations"], CORE, {"model": {"name": model}})
    values = {choice.key: choice.value for choice in choices}
    assert "model.name" not in values
    assert 128 < values["model.k"] * named(model).query_size <= 256


def test_less_memory_means_fewer_numbers_and_less_time_drawn_candidates():
    size = SIZES["5 million"]
    ks = [config_of(size, Machine("cpu", 8, memory * GIB)).model.k for memory in (4, 16, 64)]
    assert ks == sorted(set(ks))
    assert config_of(size, CORE).loss.candidates == "shared"
    assert config_of(SIZES["FB15k-237"], CORE).loss.candidates == "shared"
    assert config_of(SIZES["FB15k-237"], CORE, minutes=600.0).loss.candidates == "all"
    assert config_of(SIZES["YAGO3-10"], GPU).loss.candidates == "all"


@pytest.mark.parametrize("loss", [{"targets": "all"}, {"smoothing": 0.1}])
def test_candidates_are_not_drawn_for_a_loss_that_needs_them_all(loss):
    assert config_of(SIZES["FB15k-237"], CORE, {"loss": loss}).loss.candidates == "all"


def test_what_is_timed_on_this_machine_decides_and_not_the_estimate():
    cores, size = Machine("cpu", 8, 8 * GIB), SIZES["FB15k-237"]
    fast, slow = (
        config_of(size, cores, minutes=10.0, pace=at(20.0)),
        config_of(size, cores, minutes=10.0, pace=at(200.0)),
    )
    assert (fast.loss.candidates, slow.loss.candidates) == ("all", "shared")
    assert fast.train.epochs == int(0.75 * 600 / 20)
    assert slow.train.epochs == 100  # passes at most, of 2 s each
    longer = config_of(size, cores, minutes=120.0, pace=at(200.0))
    assert (longer.loss.candidates, longer.train.parts) == ("all", 5)  # epochs of 40 s
    assert longer.train.epochs == int(0.75 * 7200 / 40)


def test_what_is_asked_for_is_what_is_timed():
    timed = []

    def pace(config):
        timed.append((config.loss.candidates, config.model.k, config.train.batch))
        return Times(1e6, 1.0, measured=True)

    asked = {"loss": {"candidates": "sampled"}, "model": {"k": 7}, "train": {"batch": 99}}
    config = config_of(SIZES["FB15k-237"], CORE, asked, minutes=1.0, pace=pace)
    assert {*timed} == {("sampled", 7, 99)}
    assert (config.loss.candidates, config.model.k, config.train.batch) == ("sampled", 7, 99)
    assert config.train.epochs == 1


def test_validations_take_a_tenth_of_the_time_or_less():
    size = SIZES["FB15k-237"]
    for validation in (0.1, 10.0, 100.0):
        train = config_of(size, CORE, minutes=60.0, pace=at(20.0, validation)).train
        assert (
            train.epochs / train.eval_every * validation <= 0.1 * train.epochs * 20 / train.parts + validation
        )


def test_a_slow_machine_gets_fewer_epochs_and_is_told_how_long_they_take():
    slow, fast = (choose(SIZES["CoDEx-S"], machine) for machine in (CORE, GPU))
    epochs = [next(c for c in choices if c.key == "train.epochs") for choices in (slow, fast)]
    assert epochs[0].value < epochs[1].value
    assert "min in all on one CPU thread, estimated" in epochs[0].reason
    assert "on a GPU" in epochs[1].reason


def test_the_larger_a_graph_the_more_minutes_but_neither_less_than_5_nor_more_than_15():
    minutes = [default_minutes(size) for size in SIZES.values()]
    assert minutes == sorted(minutes)
    assert (minutes[0], minutes[-1]) == (5, 15)


def test_the_sparser_a_graph_the_more_it_is_penalised():
    strengths = [
        config_of(SIZES[name], GPU).regularizer.weight for name in ("Nations", "CoDEx-S", "FB15k-237")
    ]
    assert strengths == sorted(set(strengths))
    drawn = config_of(SIZES["FB15k-237"], CORE).regularizer.weight
    assert drawn == pytest.approx(strengths[-1] / 10, rel=0.05)


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
