"""The rate on a plateau, against PyTorch's own schedule."""

import pytest
import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

from modulekge.config import TrainConfig
from modulekge.training.optimizers import begin_epoch, load_state, make_optimizer, state_tensors
from modulekge.training.plateau import ease


def start(lr=0.1, plateau=6):
    config = TrainConfig(optimizer="adam", lr=lr, plateau_steps=plateau)
    model = torch.nn.Linear(2, 1, bias=False)
    return model, make_optimizer(model, config), config


def losses(count):
    draw = torch.Generator().manual_seed(0)
    return 2.0 + torch.rand(count, generator=draw) + 10 * torch.rand(count, generator=draw) ** 20


def test_the_rate_falls_as_with_the_schedule_of_pytorch():
    _, mine, config = start()
    _, theirs, _ = start()
    schedule = ReduceLROnPlateau(theirs, factor=0.5, patience=6, cooldown=3)
    rates = set()
    for loss in losses(200):
        ease(mine, loss, config)
        schedule.step(loss)
        rates.add(mine.param_groups[0]["lr"])
        assert mine.param_groups[0]["lr"] == pytest.approx(theirs.param_groups[0]["lr"])
    assert len(rates) > 5


def test_the_rate_ends_somewhere():
    _, optimizer, config = start(lr=1.0, plateau=0)
    for _ in range(100):
        ease(optimizer, torch.tensor(1.0), config)
    assert 1e-6 < optimizer.param_groups[0]["lr"] < 2e-6


def test_a_plateau_goes_on_where_it_was_written_down():
    model, whole, config = start()
    other, first, _ = start()
    values = losses(120)
    for loss in values:
        ease(whole, loss, config)
    for loss in values[:50]:
        ease(first, loss, config)
    kept = {key: value.clone() for key, value in state_tensors(other, first).items()}
    model, second, _ = start()
    assert load_state(model, second, dict(reversed(kept.items())))
    assert list(state_tensors(model, second)) == list(kept)  # so that a checkpoint has the same bytes
    begin_epoch(second, config, 2)
    for loss in values[50:]:
        ease(second, loss, config)
    assert second.param_groups[0]["lr"] == pytest.approx(whole.param_groups[0]["lr"])
