import pytest
import torch

from modulekge.algebra.norms import NORM_MAPS, G, N, power, rooted

close = torch.testing.assert_close
pytestmark = pytest.mark.usefixtures("double")


@pytest.mark.parametrize("p", [2, 3])
def test_norm_maps_are_their_formulas(p):
    x = torch.randn(6, 4, 9)
    moduli = torch.linalg.vector_norm(x, dim=1)
    close(power(N(x), p), (moduli**p).sum(-1))
    close(rooted(N(x), p), torch.linalg.vector_norm(moduli, p, dim=-1))
    close(G(N(x), p), ((moduli**2) ** p).sum(-1) ** (1 / p))


@pytest.mark.parametrize("norm", NORM_MAPS.values(), ids=NORM_MAPS)
@pytest.mark.parametrize("p", [2, 3])
def test_slopes_are_finite_at_zero_and_right_elsewhere(norm, p):
    zero = torch.zeros(2, 4, 3, requires_grad=True)
    norm(N(zero), p).sum().backward()
    close(zero.grad, torch.zeros_like(zero))
    assert torch.autograd.gradcheck(lambda x: norm(N(x), p), torch.randn(2, 4, 3, requires_grad=True))
