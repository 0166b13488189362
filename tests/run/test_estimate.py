"""What training needs is reckoned before it starts."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from modulekge.run import estimate, load
from modulekge.run.estimate import Pacer, measured, needs
from modulekge.run.plan import resolve

CPU = torch.device("cpu")


@pytest.mark.parametrize("answers", ["one", "all"])
def test_steps_are_timed_where_the_model_fits(family, answers):
    config = resolve(family, "ModulE-HH", [{"model": {"k": 4}, "loss": {"targets": answers}}])
    found = needs(family, config, partial(measured, family, device=CPU))
    assert found.fits
    assert found.epoch_seconds > 0
    assert found.epochs == config.train.epochs


def test_what_does_not_fit_is_not_tried(family, monkeypatch):
    monkeypatch.setattr(load, "free_memory", lambda device: 10_000)
    found = needs(family, resolve(family, "ModulE-HH", [{"model": {"k": 64}}]), Pacer(family))
    assert not found.fits
    assert found.epoch_seconds is None


def test_a_training_is_timed_once_and_a_quick_one_is_reckoned(family, monkeypatch):
    config = resolve(family, "ModulE-HH", [{"model": {"k": 4}}])
    assert not Pacer(family)(config).measured
    monkeypatch.setattr(estimate, "_QUICK", 0.0)
    pace = Pacer(family)
    times = pace(config)
    assert times.measured
    assert times.a_pass > 0
    assert pace(replace(config, train=replace(config.train, epochs=7))) is times
    assert pace(replace(config, model=replace(config.model, k=5))) is not times
