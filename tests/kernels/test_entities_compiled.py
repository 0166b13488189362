"""The passes over tables that are compiled for a CPU say what plain PyTorch says, and each time the same."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from modulekge.algebra.parametrizations import EXPONENTIAL
from modulekge.config import make_config
from modulekge.kernels import entities_compiled
from modulekge.models.embedding import Embedding
from modulekge.models.spec import MODELS, row
from modulekge.training import exact
from modulekge.training import tables as tables_module
from modulekge.training.optimizers import make_optimizer
from modulekge.training.questions import Questions
from modulekge.training.step import Step
from modulekge.training.tables import FusedTables, PlainTables

pytestmark = pytest.mark.integration

ROWS = [
    *(MODELS[name] for name in ("ComplEx", "NagE", "ModulE-RC", "ModulE-HH", "ModulE-RC-vector")),
    row("ModulE-CH", "C", "H", "GL(1,C)", "U_H(1)", "inner"),
    *(
        replace(MODELS[name].parametrized(EXPONENTIAL), name=f"{name} exp")
        for name in ("ModulE-RC", "ModulE-HH")
    ),
]


@pytest.mark.parametrize("spans", [1, 2])
@pytest.mark.parametrize("spec", ROWS, ids=lambda spec: spec.name)
def test_loops_step_as_plain_tables(family, spec, spans, monkeypatch):
    """With an entity asked for twice, and one whose vector is 0."""
    monkeypatch.setattr(entities_compiled, "compiled", lambda function, **_: function)
    if spans > 1:
        for module in (exact, tables_module):
            monkeypatch.setattr(module, "EVEN", 3)
        monkeypatch.setitem(exact._MOST_SCORES, "cpu", 6 * 4)
    config = make_config([{"penalty": {"strength": 0.1}, "train": {"batch": 6}}])
    questions, results = Questions.of(family, config.loss, torch.device("cpu")), []
    for fused in (True, False):
        model = Embedding(spec, 8, family.n_relations_with_inverses, 5).draw(
            torch.Generator().manual_seed(0), 1.0, 1.0
        )
        model.entity_vector.data[3] = 0
        optimizer = make_optimizer(model, config.train)
        step = Step(model, questions, optimizer, config)
        step._tables = FusedTables(model, optimizer, entities_compiled) if fused else PlainTables(model)
        for epoch in (1, 2):
            step.begin(epoch)
            for rows in ([0, 1, 2, 3, 8, 9], [4, 5]):
                step(torch.tensor(rows))
        memories = [optimizer.state[table]["sum"] for table in model.parameters() if table.numel()]
        results.append([step._total, *(table.detach() for table in model.parameters()), *memories])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_rows_of_one_entity_are_added_in_their_order():
    ids = torch.tensor([4, 2, 4, -1, 2, 4, 0])
    slots = torch.full((5,), -1, dtype=torch.int32)
    tables = torch.randn(7, 3), torch.randn(7, 1, 2)
    before = [rows.clone() for rows in tables]
    entities_compiled.place(ids, slots)
    assert slots.tolist() == [6, -1, 4, -1, 5]
    entities_compiled.merge(ids, slots, tables)
    for rows, old in zip(tables, before, strict=True):
        assert torch.equal(rows[5], old[5] + old[0] + old[2])
        assert torch.equal(rows[4], old[4] + old[1])
        assert torch.equal(rows[6], old[6])
    entities_compiled.lift(ids, slots)
    assert (slots == -1).all()


COMPILED = """
import torch
from modulekge.config import make_config
from modulekge.data.registry import open_dataset
from modulekge.run.checkpoint import begin
from modulekge.training import step
from modulekge.training.records import EpochRecord
from modulekge.training.fit import fit

torch.set_num_threads(2)
world = open_dataset("world")
train = {"epochs": 2, "batch": 200, "device": "cpu", "decay": 0.9, "every": 2}
config = make_config([{"model": {"name": "ModulE-RC", "k": 8}, "train": train}])
results = []
for worth, halves in ((1e18, False), (0, False), (0, True)):
    step._WORTH_COMPILING["cpu"] = worth
    model, optimizer = begin(config, world)
    losses = []
    for first in (1, 2) if halves else (1,):
        for record in fit(model, world, optimizer, config, first):
            if isinstance(record, EpochRecord):
                losses.append(record.loss)
                if halves and first == 1:
                    break  # and a new step is made for the second epoch
    results.append((losses, [table.detach() for table in model.parameters()]))
(plain, _), (whole, tables), (parts, again) = results
assert parts == whole and all(map(torch.equal, tables, again))
torch.testing.assert_close(torch.tensor(whole), torch.tensor(plain), rtol=1e-5, atol=0)
"""


def test_compiled_epochs_are_those_of_plain_tables_and_repeat_themselves(compiler):
    """In a process without checks of shapes, which torch.compile does not understand."""
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
