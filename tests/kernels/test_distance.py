import pytest
import torch

from modulekge.kernels import distance
from modulekge.kernels.distance import block_distance, row_distance, row_product

close = torch.testing.assert_close


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("tile", [1, 7, 1 << 18])
def test_block_distance_is_a_sum_of_moduli_in_tiles_of_any_size(d, tile, monkeypatch):
    monkeypatch.setattr(distance, "_TILE", tile)
    q = torch.randn(5, d, 6, dtype=torch.float64, requires_grad=True)
    t = torch.randn(9, d, 6, dtype=torch.float64, requires_grad=True)
    w = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    close(block_distance(q, t), torch.linalg.vector_norm(q[:, None] - t, dim=2).sum(-1))
    naive = (w[:, None] * torch.linalg.vector_norm(q[:, None] - t, dim=2)).sum(-1)
    ours = block_distance(q, t, w)
    close(ours, naive)
    gradient = torch.randn(5, 9, dtype=torch.float64)
    for mine, theirs in zip(
        torch.autograd.grad((ours * gradient).sum(), (q, t, w)),
        torch.autograd.grad((naive * gradient).sum(), (q, t, w)),
        strict=True,
    ):
        close(mine, theirs)


@pytest.mark.parametrize("tile", [1, 40, 1 << 18])
def test_chosen_pairs_and_products_are_the_same_in_tiles_of_any_size(tile, monkeypatch):
    """Entities that are named twice, or never, or that are part of a larger table."""
    monkeypatch.setattr(distance, "_TILE", tile)
    q = torch.randn(5, 2, 6, dtype=torch.float64, requires_grad=True)
    t = torch.randn(9, 3, 6, dtype=torch.float64, requires_grad=True)
    w = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    rows = torch.tensor([[0, 0, 3], [1, 2, 3], [3, 4, 4], [0, 1, 2], [7, 7, 7]])
    moduli = torch.linalg.vector_norm(q[:, None] - t[:, 1:][rows], dim=2)
    products = torch.einsum("bcn,bkcn->bk", q, t[:, 1:][rows])
    gradient = torch.randn(5, 3, dtype=torch.float64)
    for ours, naive, leaves in [
        (row_distance(q, t[:, 1:], rows), moduli.sum(-1), (q, t)),
        (row_distance(q, t[:, 1:], rows, w), (w[:, None] * moduli).sum(-1), (q, t, w)),
        (row_product(q.flatten(1), t[:, 1:].flatten(1), rows), products, (q, t)),
    ]:
        close(ours, naive)
        expected = torch.autograd.grad((naive * gradient).sum(), leaves, retain_graph=True)
        for mine, theirs in zip(torch.autograd.grad((ours * gradient).sum(), leaves), expected, strict=True):
            close(mine, theirs)


def test_block_distance_has_a_finite_slope_where_query_and_entity_meet():
    q = torch.randn(3, 2, 4, requires_grad=True)
    block_distance(q, q.detach().clone()).sum().backward()
    assert torch.isfinite(q.grad).all()


def _chosen(q, t, weights):
    return row_distance(q, t, torch.tensor([[0, 8, 8], [1, 2, 3], [4, 4, 5], [0, 1, 2], [7, 7, 7]]), weights)


@pytest.mark.integration
@pytest.mark.filterwarnings("ignore")  # torch.compile warns of itself
@pytest.mark.parametrize(("function", "d"), [(block_distance, 1), (_chosen, 2), (block_distance, 4)])
def test_compiled_loops_agree_with_the_tiles(function, d, compiler, monkeypatch):
    """Of any size, at meeting points too."""
    monkeypatch.setattr(distance, "can_compile", lambda device: True)
    tensors = [torch.randn(5, d, 6), torch.randn(9, d, 6), torch.rand(5, 6)]
    tensors[1][:5] = tensors[0]  # some pairs meet
    results = []
    for worth in (1 << 62, 0):
        monkeypatch.setattr(distance, "_WORTH", worth)
        leaves = [x.clone().requires_grad_() for x in tensors]
        out = function(*leaves)
        out.square().sum().backward()
        results.append([out.detach(), *(x.grad for x in leaves)])
    for tiled, compiled in zip(*results, strict=True):
        close(tiled, compiled, rtol=1e-5, atol=1e-4)
