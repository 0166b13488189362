import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modulekge.config import (
    Config,
    RerankConfig,
    TrainConfig,
    make_config,
    nested,
    parse_setting,
    read_config,
    write_config,
)
from modulekge.errors import ConfigError


@given(
    st.builds(
        TrainConfig,
        epochs=st.integers(1, 10**6),
        lr=st.floats(1e-9, 1e3),
        device=st.text(st.characters(exclude_categories=["Cs", "Cc"])),
    )
)
def test_what_is_written_reads_back_equal(train):
    config = Config(train=train)
    assert make_config([tomllib.loads(write_config(config))]) == config


def test_later_layers_win_and_leave_the_rest():
    config = make_config(
        [{"train": {"lr": 1, "batch": 7}}, {"train": {"lr": 0.5}}, nested("model.k", 3), {"data": "d"}]
    )
    assert (config.train.lr, config.train.batch, config.model.k, config.data) == (0.5, 7, 3, "d")
    assert isinstance(make_config([{"train": {"lr": 1}}]).train.lr, float)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("train.epochs=5", {"train": {"epochs": 5}}),
        ("train.lr = 1e-2", {"train": {"lr": 0.01}}),
        ("model.name=ModulE-HH", {"model": {"name": "ModulE-HH"}}),
        ('model.name="5"', {"model": {"name": "5"}}),
        ("model.scaling=GL(1,C)", {"model": {"scaling": "GL(1,C)"}}),
        ("data=x=y", {"data": "x=y"}),
        ("train.epochs=3\nfoo=1", {"train": {"epochs": "3\nfoo=1"}}),
        ("train.epochs=" + "9" * 5000, {"train": {"epochs": "9" * 5000}}),
    ],
)
def test_settings_of_the_command_line(text, expected):
    assert parse_setting(text) == expected


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.epoch=5", "unknown key train.epoch; did you mean train.epochs?"),
        ("epochs=5", "unknown key epochs; did you mean train.epochs?"),
        ("zzz=5", "unknown key zzz; known: data, model"),
        ("train.epochs=true", "expected a whole number"),
        ("train.epochs=2.5", "expected a whole number"),
        ("model.name=true", "expected text in quotes"),
        ("train=5", "expected a section [train]"),
        ("train.optimizer=sgd", "expected one of adagrad, adam"),
        ("train.lr=nan", "expected a number from"),
        ("loss.smoothing=1.5", "expected a number from 0 to 0.999"),
        ("regularizer.p=1", "from 2 to 6"),
        ("train.epochs", "expected section.key=value"),
        ("=5", "expected section.key=value"),
    ],
)
def test_what_is_wrong_is_said_with_the_key(setting, message):
    with pytest.raises(ConfigError) as error:
        make_config([parse_setting(setting)])
    assert message in str(error.value)


def test_a_whole_number_can_stand_for_a_word_and_a_bad_layer_is_not_covered_by_a_good_one():
    assert make_config([parse_setting("model.scalar=1")]).model.scalar == "1"
    with pytest.raises(ConfigError, match=r"expected a section \[train\]"):
        make_config([{"train": [1]}, {"train": {"epochs": 3}}])


def test_a_recipe_that_is_not_there_or_not_toml(tmp_path):
    with pytest.raises(ConfigError, match="name an existing recipe"):
        read_config(tmp_path / "no.toml")
    (tmp_path / "bad.toml").write_text("[train")
    with pytest.raises(ConfigError, match="not valid TOML"):
        read_config(tmp_path / "bad.toml")


FORMER = """
data = "world"
[model]
chart = "angles"
[loss]
kind = "adversarial"
answers = "all"
relations = 0.5
degree = 0.1
frequency = 0.2
[penalty]
strength = 0.25
p = 2
[train]
every = 3
average = 0.9
matmul = "tf32"
plateau = 7
[asking]
back = 0.5
rivals = 0.25
counts = 1.0
"""


def test_settings_by_their_former_names_are_those_of_today(tmp_path):
    """Recipes, run folders and commands of before go on working."""
    path = tmp_path / "old.toml"
    path.write_text(FORMER)
    config = make_config([read_config(path)])
    assert (config.model.parametrization, config.loss.kind) == ("angles", "self-adversarial")
    assert config.loss.targets == "all"
    loss = config.loss
    assert (loss.relation_prediction, loss.degree_weight, loss.subsampling) == (0.5, 0.1, 0.2)
    assert (config.regularizer.weight, config.regularizer.p) == (0.25, 2)
    train = config.train
    assert (train.eval_every, train.ema, train.precision, train.plateau_steps) == (3, 0.9, "tf32", 7)
    assert config.rerank == RerankConfig(0.5, 0.25, 1.0)
    assert make_config([parse_setting("penalty.strength=0.5")]).regularizer.weight == 0.5
    assert make_config([{"asking": {"back": 1.0}}]).rerank.inverse == 1.0
    assert "penalty" not in write_config(config)
    with pytest.raises(ConfigError, match=r"unknown key regularizer\.strenth"):
        make_config([{"penalty": {"strenth": 1.0}}])
