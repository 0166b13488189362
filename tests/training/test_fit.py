import subprocess
import sys

import pytest
import torch

from modulekge.config import make_config
from modulekge.data.batches import batches
from modulekge.errors import ConfigError, TrainingError
from modulekge.evaluation.evaluate import rank
from modulekge.models.embedding import Embedding
from modulekge.models.spec import MODELS
from modulekge.training import fit as fitting
from modulekge.training import optimizers
from modulekge.training.ema import averaged
from modulekge.training.fit import fit, validate
from modulekge.training.optimizers import make_optimizer, matmul_precision, pick_device
from modulekge.training.records import EpochProgress, EpochRecord


def setup(family, name="ModulE-HH", **train):
    config = make_config([{"train": {"epochs": 3, "batch": 5, "every": 2, **train}}])
    model = Embedding(MODELS[name], len(family.entities), family.n_relations_with_inverses, 4)
    model.draw(torch.Generator().manual_seed(0), 1e-3, 1.0)
    return model, make_optimizer(model, config.train), config


def records(family, **train):
    model, optimizer, config = setup(family, **train)
    return [r for r in fit(model, family, optimizer, config) if isinstance(r, EpochRecord)]


def test_epochs_are_recorded_and_validated_when_due(family):
    found = records(family)
    assert [r.epoch for r in found] == [1, 2, 3]
    assert [r.valid is not None for r in found] == [False, True, True]
    assert found[2].loss < found[0].loss
    assert all(r.triples_per_second > 0 for r in found)


def test_the_same_seed_gives_the_same_losses_and_another_does_not(family):
    losses = [[r.loss for r in records(family, seed=seed)] for seed in (0, 0, 1)]
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("optimizer", ["adagrad", "adam"])
def test_both_optimisers_learn_and_the_rate_decays(family, optimizer):
    found = records(family, optimizer=optimizer, lr=0.05, decay=0.5, epochs=4)
    assert [r.lr for r in found] == [0.05, 0.025, 0.0125, 0.00625]
    assert found[-1].loss < found[0].loss


COMPILED = """
from modulekge.config import make_config
from modulekge.data.registry import open_dataset
from modulekge.run.checkpoint import begin
from modulekge.training import step
from modulekge.training.records import EpochRecord
from modulekge.training.fit import fit

built, asked = [], []
compiled = step.compiled

def counted(function, **how):
    loops = compiled(function, **how)
    if function is step.asked:
        asked.append(1)
        return loops
    return lambda *tables: built.append(len(tables[0])) or loops(*tables)

step.compiled = counted
world = open_dataset("world")
drawn = {"candidates": "sampled", "negatives": 9}
some = {"epochs": 1, "batch": 2000, "device": "cpu"}
config = make_config([{"model": {"name": "NagE", "k": 4}, "loss": drawn, "train": some}])
for worth in (1e18, 0):
    step._WORTH_COMPILING["cpu"] = worth
    model, optimizer = begin(config, world)
    print(*[r.loss for r in fit(model, world, optimizer, config) if isinstance(r, EpochRecord)])
print(set(built) == {len(world.entities)} and len(asked) > 0)
"""


@pytest.mark.integration
def test_compiled_loops_build_entities_for_drawn_candidates(compiler):
    """In a process without checks of shapes, which torch.compile does not understand."""
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=True)
    plain, compiled, built = done.stdout.split()
    assert float(compiled) == pytest.approx(float(plain), rel=1e-5)
    assert built == "True"


def test_batches_are_a_permutation_that_depends_on_seed_and_epoch_alone():
    whole = torch.cat(list(batches(28, 5, 0, 1)))
    assert sorted(whole.tolist()) == list(range(28))
    assert torch.equal(whole, torch.cat(list(batches(28, 7, 0, 1))))
    assert not torch.equal(whole, torch.cat(list(batches(28, 5, 0, 2))))


OBJECTIVES = {
    "softmax": {},
    "logistic": {"kind": "logistic"},
    "self-adversarial": {
        "kind": "self-adversarial",
        "candidates": "sampled",
        "negatives": 6,
        "margin": 3.0,
        "frequency": 0.5,
    },
    "sampled softmax": {"candidates": "shared", "negatives": 8},
    "adversarial over all": {"kind": "self-adversarial"},
    "all answers": {"kind": "logistic", "answers": "all", "smoothing": 0.1},
    "all answers, softmax": {"answers": "all"},
    "with relations": {"relations": 0.5},
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_learns_the_train_triples(family, name):
    layers = [
        {"loss": OBJECTIVES[name], "model": {"bias": True}, "penalty": {"strength": 0.001, "moved": 0.1}},
        {"train": {"epochs": 60, "batch": 8, "every": 60, "dropout": 0.05}},
    ]
    config = make_config(layers)
    model = Embedding(MODELS["ModulE-HH"], 8, family.n_relations_with_inverses, 12, bias=True)
    model.draw(torch.Generator().manual_seed(0), 0.1, 1.0)
    for _ in fit(model, family, make_optimizer(model, config.train), config):
        pass
    ranks = rank(model.scorer(), family.questions("train"), family.known).rank("bottom")
    assert (1 / ranks).mean() > 0.9


def test_the_drop_divides_the_rate_and_clears_the_memory(family):
    model, optimizer, config = setup(family, epochs=4, drop_after=2, optimizer="adam", lr=0.02)
    rates, steps = [], []
    for event in fit(model, family, optimizer, config):
        if isinstance(event, EpochRecord):
            rates.append(event.lr)
            steps.append(int(optimizer.state[model.entity_scalar]["step"]))
    assert rates == pytest.approx([0.02, 0.02, 0.002, 0.002])
    assert steps == [6, 12, 6, 12]


def test_a_plateau_halves_the_rate(family):
    """In each epoch, and the next one begins with what is left."""
    model, optimizer, config = setup(family, epochs=3, plateau=1, lr=1e-8)
    rates = [e.lr for e in fit(model, family, optimizer, config) if isinstance(e, EpochRecord)]
    assert 1e-8 > rates[0] > rates[1] > rates[2]


@pytest.mark.parametrize("optimizer", ["adagrad", "adam"])
def test_the_mean_of_weights_is_validated_and_the_weights_go_on(family, optimizer):
    """Means of one, two, three epochs alike; then the old mean keeps its share."""
    results = []
    for average in (0.0, 0.6):
        settings = {"epochs": 5, "every": 1, "drop_after": 4, "optimizer": optimizer, "average": average}
        model, optimizer_, config = setup(family, **settings)
        seen = []
        for event in fit(model, family, optimizer_, config):
            if isinstance(event, EpochRecord):
                with averaged(model, optimizer_, config.train):
                    valid = validate(model.scorer(), family)
                    seen.append((model.entity_scalar.detach().clone(), event.valid))
                assert valid == event.valid
        results.append(([weights for weights, _ in seen], model.entity_scalar.detach()))
    (weights, last), (means, own) = results
    assert torch.equal(last, own)
    mean = weights[0]
    for new, kept, share in zip(weights, means, (0, 1 / 2, 0.6, 0.6, 0.6), strict=True):
        mean = share * mean + (1 - share) * new
        torch.testing.assert_close(kept, mean)


def test_long_epochs_tell_how_far_they_are(family, monkeypatch):
    monkeypatch.setattr(fitting, "_TELL_EVERY", 0.0)
    model, optimizer, config = setup(family)
    glances = [e for e in fit(model, family, optimizer, config) if isinstance(e, EpochProgress)]
    assert [g.done for g in glances[:6]] == [5, 10, 15, 20, 25, 28]


def test_a_diverging_run_stops_and_says_what_to_change(family):
    model, optimizer, config = setup(family, lr=1000.0)
    with torch.no_grad():
        model.entity_scalar.fill_(1e25)
    with pytest.raises(TrainingError, match=r"in epoch 1.*lower train\.lr"):
        list(fit(model, family, optimizer, config))


@pytest.mark.parametrize("matmul", ["float32", "tf32", "bfloat16"])
def test_every_precision_trains(family, matmul, monkeypatch):
    monkeypatch.setattr(optimizers, "has_bfloat16", lambda device: True)  # slowly, where a CPU has it not
    exact, found = ([r.loss for r in records(family, matmul=m, lr=0.5)] for m in ("float32", matmul))
    assert found[-1] < found[0]
    assert found == pytest.approx(exact, rel=0.05)
    assert (found == exact) == (matmul != "bfloat16")  # a CPU has no TF32


def test_a_cpu_without_bfloat16_says_so(family, monkeypatch):
    monkeypatch.setattr(optimizers, "has_bfloat16", lambda device: False)
    with pytest.raises(ConfigError, match=r"no instructions for it; use \"float32\""):
        records(family, matmul="bfloat16")


def test_precision_is_set_back():
    before = torch.get_float32_matmul_precision()
    with matmul_precision("tf32", torch.device("cpu")):
        assert torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize("name", ["gpu", "cuda:99", "meta"])
def test_a_device_that_is_not_there(name):
    with pytest.raises(ConfigError, match=r"train\.device"):
        pick_device(name)
