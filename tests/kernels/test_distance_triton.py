"""The kernels of the GPU say what the tiles of the CPU say; without a GPU they run interpreted."""

import pytest
import torch

from modulekge.kernels import distance

pytestmark = pytest.mark.integration

pytest.importorskip("triton")
close = torch.testing.assert_close
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(scope="module")
def kernels(as_written):
    return as_written("distance_triton")


def gradients(function, tensors, upstream):
    leaves = [x.clone().requires_grad_() for x in tensors]
    out = function(*leaves)
    return [out.detach(), *torch.autograd.grad(out, leaves, upstream)]


def agree(function, tensors, upstream, kernels, monkeypatch):
    naive = gradients(function, [x.double() for x in tensors], upstream.double())
    monkeypatch.setattr(distance, "_kernels", lambda q: kernels)
    for ours, theirs in zip(gradients(function, tensors, upstream), naive, strict=True):
        close(ours.double(), theirs, rtol=1e-5, atol=5e-5)


def points(d):
    q, t = torch.randn(5, d, 67, device=DEVICE), torch.randn(70, d, 67, device=DEVICE)
    t[3] = q[1]  # two that meet
    return [q, t, torch.rand(5, 67, device=DEVICE)]


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_every_pair(d, kernels, monkeypatch):
    agree(distance.block_distance, points(d), torch.randn(5, 70, device=DEVICE), kernels, monkeypatch)


@pytest.mark.parametrize("parts", [1, 3])
def test_a_sum_in_parts(parts, kernels, monkeypatch):
    tensors = points(2)
    tensors[1] = torch.randn(150, 2, 67, device=DEVICE)
    monkeypatch.setattr(kernels, "_PROGRAMS", 2 * parts)
    agree(distance.block_distance, tensors, torch.randn(5, 150, device=DEVICE), kernels, monkeypatch)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_chosen_pairs(d, kernels, monkeypatch):
    rows = torch.randint(70, (5, 19), device=DEVICE)
    rows[1, :2] = 3  # twice the one that meets

    def chosen(q, t, weights):
        return distance.row_distance(q, t, rows, weights)

    upstream = torch.randn(5, 19, device=DEVICE)
    upstream[1, :2] = 0  # where they meet there is no gradient to compare
    agree(chosen, points(d), upstream, kernels, monkeypatch)


def test_chosen_products(kernels, monkeypatch):
    rows = torch.randint(70, (5, 19), device=DEVICE)
    rows[1, :2] = 3  # one is named twice, most not at all

    def chosen(q, t):
        return distance.row_product(q, t, rows)

    q, t = torch.randn(5, 300, device=DEVICE), torch.randn(70, 300, device=DEVICE)
    agree(chosen, [q, t], torch.randn(5, 19, device=DEVICE), kernels, monkeypatch)


def test_where_points_meet_the_slope_is_zero(kernels, monkeypatch):
    monkeypatch.setattr(distance, "_kernels", lambda q: kernels)
    q = torch.randn(3, 2, 4, device=DEVICE, requires_grad=True)
    rows = torch.arange(3, device=DEVICE)[:, None]
    distance.row_distance(q, q.detach().clone(), rows).sum().backward()
    assert q.grad.abs().max() == 0
