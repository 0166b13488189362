import pytest
import torch

from modulekge.config import TrainConfig
from modulekge.models.embedding import Embedding
from modulekge.models.spec import named
from modulekge.training.optimizers import fresh_state, load_state, make_optimizer, state_tensors


@pytest.mark.parametrize("kind", ["adagrad", "adam"])
def test_a_fresh_memory_is_what_a_new_optimizer_has(kind):
    model, config = Embedding(named("ModulE-HH"), 5, 4, 3), TrainConfig(optimizer=kind)
    new = make_optimizer(model, config)
    state, expected = fresh_state(model, config), state_tensors(model, new)
    assert list(state) == list(expected)  # in this order a checkpoint has them
    assert all(torch.equal(state[key], value) for key, value in expected.items())
    assert load_state(model, new, state)


def test_a_memory_that_is_not_of_the_model_is_refused():
    model, config = Embedding(named("DistMult"), 5, 4, 3), TrainConfig(optimizer="adagrad")
    optimizer, whole = make_optimizer(model, config), fresh_state(model, config)
    key = "entity_scalar.sum"
    assert not load_state(model, optimizer, {name: x for name, x in whole.items() if name != key})
    assert not load_state(model, optimizer, {**whole, key: whole[key][1:]})
    assert not load_state(model, optimizer, {**whole, key: whole[key].long()})
    assert not load_state(model, optimizer, {**whole, "nothing.sum": whole[key]})
