"""What training needs is reckoned before it starts."""

import pytest

from modulekge.run import defaults
from modulekge.run.estimate import needs
from modulekge.run.plan import resolve


@pytest.mark.parametrize("answers", ["one", "all"])
def test_steps_are_timed_where_the_model_fits(family, answers):
    config = resolve(family, "ModulE-HH", [{"model": {"k": 4}, "loss": {"answers": answers}}])
    found = needs(family, config)
    assert found.fits
    assert found.epoch_seconds > 0
    assert found.epochs == config.train.epochs


def test_what_does_not_fit_is_not_tried(family, monkeypatch):
    monkeypatch.setattr(defaults, "free_memory", lambda device: 10_000)
    found = needs(family, resolve(family, "ModulE-HH", [{"model": {"k": 64}}]))
    assert not found.fits
    assert found.epoch_seconds is None
