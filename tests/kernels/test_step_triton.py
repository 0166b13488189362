"""The kernels of a step say what plain PyTorch says; without a GPU they run interpreted."""

from dataclasses import replace

import pytest
import torch

from modulekge.algebra.parametrizations import EXPONENTIAL
from modulekge.config import make_config
from modulekge.models.embedding import Embedding
from modulekge.models.spec import MODELS, row
from modulekge.training import exact, optimizers
from modulekge.training import tables as tables_module
from modulekge.training.optimizers import GpuAdagrad, make_optimizer
from modulekge.training.questions import Questions
from modulekge.training.step import Step
from modulekge.training.tables import FusedTables, PlainTables

pytestmark = pytest.mark.integration

pytest.importorskip("triton")
close = torch.testing.assert_close
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(scope="module")
def kernels(as_written):
    module = as_written("step_triton")
    module._BLOCK = 64  # several to a row
    return module


@pytest.fixture(scope="module")
def entity_kernels(as_written):
    as_written("distance_triton")  # of which it uses one
    return as_written("entities_triton")


@pytest.mark.parametrize("smooth", [0.0, 0.01])
@pytest.mark.parametrize("given", [False, True])
def test_softmax_in_place(kernels, given, smooth, monkeypatch):
    """With several answers to a question, one that stands before and one after these columns."""
    padded = 5 * torch.randn(6, 160, device=DEVICE)
    if not smooth:
        padded[2, :150] = -torch.inf  # a row whose first blocks hold nothing
    rows, columns = torch.tensor(
        [[0, 0, 1, 2, 2, 3, 4, 5], [7, 160, 166, 164, 165, 10, 3, 200]], device=DEVICE
    )
    share, amount = torch.rand(6, device=DEVICE), torch.rand(6, device=DEVICE)
    starts = torch.searchsorted(rows, torch.arange(7, device=DEVICE))
    target = exact.Target(columns, rows, starts, amount, smooth, share)
    sums = padded[:, :157].logsumexp(1) + 1
    beyond = padded[:, 157:].clone()
    mine, theirs = padded.clone(), padded.clone()
    given_sums = sums if given else None
    losses = kernels.softmax_(mine[:, :157], target, 10, given_sums)
    monkeypatch.setattr(exact, "kernels", lambda *_: None)
    close(losses, exact.softmax_(theirs[:, :157], target, 10, given_sums))
    close(mine[:, :157], theirs[:, :157])
    assert torch.equal(mine[:, 157:], beyond)


def test_softmax_of_half_precision(kernels):
    """Gradients are as near as bfloat16 can be, that of an answer which is all but certain, too."""
    scores = 5 * torch.randn(6, 150, device=DEVICE)
    columns = torch.tensor([3, 149, 64, 0, 70, 5], device=DEVICE)
    scores[1, 149] = 30
    scores = scores.bfloat16()
    each, share = torch.ones(6, device=DEVICE), torch.rand(6, device=DEVICE)
    starts = torch.arange(7, device=DEVICE)
    target = exact.Target(columns, starts[:-1], starts, each, 0.0, share)
    exactly = scores.double().requires_grad_()
    wanted = share * (exactly.logsumexp(1) - exactly[starts[:-1], columns])
    (gradients,) = torch.autograd.grad(wanted.sum(), exactly)
    losses = kernels.softmax_(scores, target, 0, None)
    close(losses, wanted.float(), rtol=1e-5, atol=1e-6)
    close(scores.double(), gradients, rtol=2**-7, atol=1e-7)  # interpreted, numbers are cut off, not rounded


def test_adagrad(kernels):
    table, grad, total = (torch.rand(7, 31, device=DEVICE) for _ in range(3))
    reference, memory = table.clone(), total + grad.square()
    reference -= 0.3 * grad / (memory.sqrt() + 1e-10)
    kernels.adagrad_(table, grad, total, torch.tensor(0.3, device=DEVICE), 1e-10)
    close(table, reference)
    close(total, memory)


ROWS = [
    *(MODELS[name] for name in ("TransE", "DistMult", "ComplEx", "RotatE", "NagE", "ModulE-RC", "ModulE-HH")),
    *(MODELS[name] for name in ("ModulE-RC-vector", "DensE")),
    row("ModulE-CH", "C", "H", "GL(1,C)", "U_H(1)", "inner"),
    *(
        replace(MODELS[name].parametrized(EXPONENTIAL), name=f"{name} exp")
        for name in ("ModulE-RC", "ModulE-HH")
    ),
]


WAYS = ("one", "all", "one, span by span", "one, tied")
CASES = [(spec, way) for way in WAYS for spec in ROWS if spec.tieable or "tied" not in way]


@pytest.mark.parametrize(("spec", "answers"), CASES, ids=lambda x: x if isinstance(x, str) else x.name)
def test_fused_tables_step_as_plain_ones(kernels, entity_kernels, family, spec, answers, monkeypatch):
    """Build, score, bring back, update: with an entity asked for twice, and one whose vector is 0."""
    if "span" in answers:
        for module in (exact, tables_module):
            monkeypatch.setattr(module, "EVEN", 3)
        monkeypatch.setitem(exact._MOST_SCORES, DEVICE, 6 * 4)  # four entities at a time
    settings = {"loss": {"answers": answers[:3]}, "penalty": {"strength": 0.1}, "train": {"batch": 6}}
    config = make_config([settings])
    questions = Questions.of(family, config.loss, torch.device(DEVICE))
    results = []
    for fused in (True, False):
        monkeypatch.setattr(exact, "kernels", lambda *_, fused=fused: kernels if fused else None)
        model = Embedding(spec, 8, family.n_relations_with_inverses, 5, "tied" in answers)
        model.draw(torch.Generator().manual_seed(0), 1.0, 1.0).to(DEVICE)
        model.entity_vector.data[3] = 0
        rate = torch.tensor(0.1, device=DEVICE)
        tables = [table for table in model.parameters() if table.numel()]
        optimizer = GpuAdagrad(tables, lr=rate) if fused else make_optimizer(model, config.train)
        step = Step(model, questions, optimizer, config)
        assert FusedTables.fit(spec, GpuAdagrad(tables, lr=rate))
        step._tables = FusedTables(model, optimizer, entity_kernels) if fused else PlainTables(model)
        step.begin(1)
        for _ in range(2):
            step(torch.tensor([0, 1, 2, 3, 8, 9], device=DEVICE))
        results.append([torch.tensor(step.mean(12)), *(table.detach() for table in tables)])
    for ours, theirs in zip(*results, strict=True):
        close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["ModulE-HH", "ModulE-RC", "ComplEx"])
def test_fused_tables_in_half_precision(kernels, entity_kernels, family, name, monkeypatch):
    """Entities, scores and gradients in bfloat16 take the step that autocast takes with float32 tables."""
    monkeypatch.setattr(optimizers, "has_bfloat16", lambda device: True)
    monkeypatch.setattr(exact, "kernels", lambda *_: kernels)
    config = make_config([{"penalty": {"strength": 0.1}, "train": {"batch": 6, "matmul": "bfloat16"}}])
    questions = Questions.of(family, config.loss, torch.device(DEVICE))
    results = []
    for fused in (True, False):
        model = Embedding(MODELS[name], 8, family.n_relations_with_inverses, 5)
        model.draw(torch.Generator().manual_seed(0), 1.0, 1.0).to(DEVICE)
        tables = [table for table in model.parameters() if table.numel()]
        optimizer = GpuAdagrad(tables, lr=torch.tensor(0.1, device=DEVICE))
        step = Step(model, questions, optimizer if fused else make_optimizer(model, config.train), config)
        half = FusedTables(model, optimizer, entity_kernels, torch.bfloat16)
        step._tables = half if fused else PlainTables(model)
        step.begin(1)
        for _ in range(2):
            step(torch.tensor([0, 1, 2, 3, 8, 9], device=DEVICE))
        results.append((step.mean(12), [table.detach() for table in tables]))
        assert half.build(slice(0, 8)).dtype == torch.bfloat16
    (loss, ours), (other, theirs) = results
    assert loss == pytest.approx(other, rel=0.005)
    before = Embedding(MODELS[name], 8, family.n_relations_with_inverses, 5).draw(
        torch.Generator().manual_seed(0), 1.0, 1.0
    )
    starts = [table.detach().to(DEVICE) for table in before.parameters() if table.numel()]
    # Adagrad's first step has one length: a gradient near 0 that rounding turns around turns the step around
    for mine, other, start in zip(ours, theirs, starts, strict=True):
        assert (mine - other).abs().mean() < 0.1 * (other - start).abs().mean()


def test_rows_that_fused_tables_leave_to_plain_ones():
    optimizer = GpuAdagrad([torch.ones(1)], lr=0.1)
    fit = {spec.name for spec in MODELS.values() if FusedTables.fit(spec, optimizer)}
    assert {"HAKE", "HopfE-fibre", "GrpQ8", "BiQUE"} == {
        spec.name for spec in MODELS.values() if spec.name not in fit
    }


def test_rows_of_one_entity_are_added_in_their_order(entity_kernels):
    """To the last bit as a loop adds them, whichever program is first; entities held elsewhere are left."""
    ids = torch.randint(7, (1500,), device=DEVICE)
    ids[::11] = -1
    slots = torch.full((7,), -1, dtype=torch.int32, device=DEVICE)
    tables = torch.randn(1500, 3, device=DEVICE), torch.randn(1500, 1, 2, device=DEVICE)
    before = [rows.clone() for rows in tables]
    entity_kernels.place(ids, slots)
    entity_kernels.merge(ids, slots, tables)
    for e in range(7):
        own = (ids == e).nonzero()[:, 0].tolist()
        assert int(slots[e]) == own[-1]
        for rows, old in zip(tables, before, strict=True):
            total = old[own[-1]].clone()
            for i in own[:-1]:
                total += old[i]
            assert torch.equal(rows[own[-1]], total)
            assert torch.equal(rows[own[:-1]], old[own[:-1]])
    entity_kernels.lift(ids, slots)
    assert (slots == -1).all()


def test_slopes_of_relations_are_summed_and_taken(entity_kernels):
    ids = torch.randint(4, (300,), device=DEVICE)
    ids[ids == 2] = 1  # of which there are none
    table, total = torch.randn(4, 2, 21, device=DEVICE), torch.rand(4, 2, 21, device=DEVICE)
    gradients, rate = torch.randn(300, 2, 21, device=DEVICE), torch.tensor(0.3, device=DEVICE)
    grad = torch.zeros_like(table).index_add_(0, ids, gradients)
    memory = total + grad.square()
    wanted = table - 0.3 * grad / (memory.sqrt() + 1e-10)
    entity_kernels.settle(ids, gradients, table, total, rate, 1e-10)
    close(table, wanted)
    close(total, memory)
