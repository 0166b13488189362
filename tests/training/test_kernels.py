"""The kernels of a step say what plain PyTorch says; without a GPU they run interpreted."""

import importlib.util
from pathlib import Path

import pytest
import torch

from modulekge.training import exact

pytest.importorskip("triton")
close = torch.testing.assert_close
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(scope="module")
def kernels():
    """As written: checks of shapes, which other modules get in tests, are not Triton."""
    path = Path(exact.__file__).with_name("kernels.py")
    spec = importlib.util.spec_from_file_location("kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module._BLOCK = 64  # several to a row
    return module


@pytest.mark.parametrize("given", [False, True])
def test_softmax_in_place(kernels, given):
    padded = 5 * torch.randn(6, 160, device=DEVICE)
    padded[2, :150] = -torch.inf  # a row whose first blocks hold nothing
    scores, share = padded[:, :157], torch.rand(6, device=DEVICE)
    sums = scores.logsumexp(1)
    wanted = share[:, None] * (scores.softmax(1) - 0.01)
    beyond = padded[:, 157:].clone()
    close(kernels.softmax_(scores, sums.clone() if given else None, share, 0.01), sums)
    close(scores, wanted)
    assert torch.equal(padded[:, 157:], beyond)


def test_adagrad(kernels):
    table, grad, total = (torch.rand(7, 31, device=DEVICE) for _ in range(3))
    reference, memory = table.clone(), total + grad.square()
    reference -= 0.3 * grad / (memory.sqrt() + 1e-10)
    kernels.adagrad_(table, grad, total, torch.tensor(0.3, device=DEVICE), 1e-10)
    close(table, reference)
    close(total, memory)
