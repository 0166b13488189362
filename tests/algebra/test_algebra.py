"""Laws of algebras, over every instance."""

import pytest
import torch

from modulekge.algebra.algebra import ALGEBRAS, BIQUATERNIONS, Q8, Algebra, C, H, R, double
from modulekge.algebra.norms import N

OCTONIONS = double(H, "O")
EACH = pytest.mark.parametrize("a", [*ALGEBRAS, OCTONIONS], ids=lambda a: a.name)
INSIDE = [(s, v) for v in ALGEBRAS for s in ALGEBRAS if s.dim <= v.dim]
MODULES = pytest.mark.parametrize(("s", "v"), INSIDE, ids=lambda a: a.name)
close = torch.testing.assert_close

pytestmark = pytest.mark.usefixtures("double")


def element(a: Algebra, *rows: int) -> torch.Tensor:
    return torch.randn(*rows, a.dim, 7)


def one(a: Algebra) -> torch.Tensor:
    return torch.eye(a.dim)[:1].T.expand(5, a.dim, 7)


@pytest.mark.parametrize("a", [*ALGEBRAS, OCTONIONS, BIQUATERNIONS, Q8], ids=lambda a: a.name)
def test_the_unrolled_product_is_the_contraction_with_the_constants(a):
    x, y = element(a, 5), element(a, 5)
    close(a.mul(x, y), torch.einsum("bin,bjn,ijk->bkn", x, y, a.constants.double()))


@EACH
def test_one_is_neutral(a):
    x = element(a, 5)
    close(a.mul(one(a), x), x)
    close(a.mul(x, one(a)), x)


@EACH
def test_n_is_multiplicative(a):
    x, y = element(a, 5), element(a, 5)
    close(N(a.mul(x, y)), N(x) * N(y))


@EACH
def test_x_times_its_conjugate_is_n(a):
    x = element(a, 5)
    close(a.mul(x, a.conj(x)), N(x)[:, None] * one(a))


@EACH
def test_conjugation_turns_products_round(a):
    x, y = element(a, 5), element(a, 5)
    close(a.conj(a.mul(x, y)), a.mul(a.conj(y), a.conj(x)))


@EACH
def test_the_flag_agrees_with_random_elements(a):
    x, y = element(a, 5), element(a, 5)
    assert a.commutative == torch.allclose(a.mul(x, y), a.mul(y, x))


def associative(a):
    x, y, z = element(a, 5), element(a, 5), element(a, 5)
    return torch.allclose(a.mul(a.mul(x, y), z), a.mul(x, a.mul(y, z)))


def test_the_tower_loses_what_it_should():
    tower = (*ALGEBRAS, OCTONIONS)
    assert [a.dim for a in tower] == [1, 2, 4, 8]
    assert [a.commutative for a in tower] == [True, True, False, False]
    assert [associative(a) for a in tower] == [True, True, True, False]


def test_hamilton():
    i, j, k = torch.eye(4)[1:, :, None]
    for x, y, z in ((i, j, k), (j, k, i), (k, i, j)):
        close(H.mul(x, y), z)
        close(H.mul(y, x), -z)


@MODULES
def test_module_axioms(s, v):
    """Appendix B, for S acting on V by multiplication from the left."""
    a, b, x, y = element(s, 5), element(s, 5), element(v, 5), element(v, 5)
    close(v.mul(a, x + y), v.mul(a, x) + v.mul(a, y))
    close(v.mul(a + b, x), v.mul(a, x) + v.mul(b, x))
    close(v.mul(a, v.mul(b, x)), v.mul(s.mul(a, b), x))
    close(v.mul(one(s), x), x)


@MODULES
def test_the_subalgebra_keeps_its_product(s, v):
    a, b = element(s, 5), element(s, 5)
    close(v.mul(a, b), s.mul(a, b))


def test_the_further_algebras_are_associative_and_not_commutative():
    for a in (BIQUATERNIONS, Q8):
        assert (a.dim, associative(a), a.commutative) == (8, True, False)
        close(a.mul(one(a), x := element(a, 5)), x)


def test_complex_numbers_are_those_of_torch():
    x, y = element(C, 5), element(C, 5)
    product = torch.complex(*x.unbind(-2)) * torch.complex(*y.unbind(-2))
    close(C.mul(x, y), torch.stack([product.real, product.imag], -2))
    assert R.dim == 1
