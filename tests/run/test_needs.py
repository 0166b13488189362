"""What training needs is reckoned before it starts."""

import pytest

from modulekge.run import needs as module
from modulekge.run.needs import needs
from modulekge.run.train import resolve


@pytest.mark.parametrize("answers", ["one", "all"])
def test_steps_are_timed_where_the_model_fits(family, answers):
    config = resolve(family, "ModulE-HH", [{"model": {"k": 4}, "loss": {"answers": answers}}])
    found = needs(family, config)
    assert found.fits
    assert found.epoch_seconds > 0
    assert found.epochs == config.train.epochs


def test_what_does_not_fit_is_not_tried(family, monkeypatch):
    monkeypatch.setattr(module, "free_memory", lambda device: 10_000)
    found = needs(family, resolve(family, "ModulE-HH", [{"model": {"k": 64}}]))
    assert not found.fits
    assert found.epoch_seconds is None


def test_memory_grows_with_what_is_kept(family):
    def memory(**settings):
        return module._memory(family, resolve(family, "ModulE-HH", [settings]), module.pick_device("cpu"))

    small, large = memory(model={"k": 8}), memory(model={"k": 512})
    assert large > 32 * small / 2
    assert memory(model={"k": 512}, train={"optimizer": "adam"}) > large
    weights = 4 * (8 * 8 + 6 * 8) * 512  # of eight entities and six relations, each of 8 numbers per block
    assert memory(model={"k": 512}, train={"average": 0.9}) - large == weights
