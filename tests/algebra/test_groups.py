"""Laws of parametrizations, groups and actions, over every instance."""

import pytest
import torch

from modulekge.algebra.algebra import ALGEBRAS, C, H
from modulekge.algebra.groups import (
    FIBRED,
    MIXED,
    ROTATIONS,
    SCALARS,
    SCALINGS,
    SO3,
    SPACE,
    VECTORS,
    both,
    left,
    right,
    rotation,
    units,
)
from modulekge.algebra.norms import N
from modulekge.algebra.parametrizations import UNIT_PARAMETRIZATIONS

close = torch.testing.assert_close
EACH = pytest.mark.parametrize("parametrization", UNIT_PARAMETRIZATIONS.values(), ids=lambda c: c.name)
SPHERES = pytest.mark.parametrize("group", [*map(units, ALGEBRAS), SPACE], ids=lambda g: g.name)
TYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def awkward(width: int, dtype: torch.dtype) -> torch.Tensor:
    """Zeros, tiny, huge, poles of the parametrizations, and ordinary numbers: (rows, width, 1)."""
    special = [0.0, 1e-30, -1e-30, 1e-15, 1e-7, 1e-4, torch.pi, -torch.pi, torch.pi / 2, 1.0, 1e4, 1e8]
    rows = [torch.full((width, 1), x) for x in special]
    rows += [torch.eye(width)[i][:, None] * x for i in range(width) for x in special]
    return torch.stack([*rows, *torch.randn(50, width, 1)]).to(dtype)


@TYPES
@EACH
@SPHERES
def test_unit_charts_have_modulus_one_and_finite_slopes_everywhere(group, parametrization, dtype):
    group = group.parametrized(parametrization)
    numbers = awkward(group.width, dtype).requires_grad_()
    point = group.point(numbers)
    assert point.shape[-2] == group.size
    close(N(point), torch.ones_like(N(point)), atol=2e-6 if dtype == torch.float32 else 1e-12, rtol=0)
    if group.width:
        for component in point.unbind(-2):
            (gradient,) = torch.autograd.grad(component.sum(), numbers, retain_graph=True)
            assert torch.isfinite(gradient).all()


@EACH
@SPHERES
def test_slopes_of_charts_are_right(group, parametrization):
    group = group.parametrized(parametrization)
    numbers = torch.randn(4, group.width, 3, dtype=torch.float64, requires_grad=True)
    if group.width:
        assert torch.autograd.gradcheck(group.point, numbers)


def test_a_nan_is_not_hidden_by_normalising():
    assert units(H).point(torch.full((1, 4, 1), torch.nan)).isnan().all()


@EACH
def test_the_dimension_of_a_sphere_does_not_depend_on_the_chart(parametrization):
    assert [g.parametrized(parametrization).freedom for g in (*map(units, ALGEBRAS), SPACE, FIBRED)] == [
        0,
        1,
        3,
        2,
        3,
    ]


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("parametrization", ["exponential", "angles"])
def test_charts_reach_all_around_the_circle(parametrization):
    angles = torch.linspace(-3, 3, 9)[:, None, None]
    close(
        units(C).parametrized(UNIT_PARAMETRIZATIONS[parametrization]).point(angles),
        torch.cat([angles.cos(), angles.sin()], -2),
    )


def moved_by(action):
    """An action, numbers of its group, and elements it may act on."""
    size = 3 if action.operation is both else action.group.algebra.dim
    return torch.randn(6, action.group.width, 5), torch.randn(6, size, 5)


TURNS = [action for action in ROTATIONS.values() if not action.group.trivial]


@pytest.mark.usefixtures("double")
@EACH
@pytest.mark.parametrize("action", TURNS, ids=lambda a: a.name)
def test_rotations_keep_the_norm(action, parametrization):
    action = action.parametrized(parametrization)
    numbers, x = moved_by(action)
    close(N(action.move(numbers, x, action.group.algebra)), N(x))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("action", TURNS, ids=lambda a: a.name)
def test_rotations_are_a_group(action):
    """T_g T_h is T_gh or T_hg by the side, and the conjugate undoes."""
    g, x = moved_by(action)
    h, _ = moved_by(action)
    a, group = action.group.algebra, action.group
    elements = (group.point(h), group.point(g))
    twice = a.mul(*elements) if action.operation is right else a.mul(*reversed(elements))
    act = action.operation.act
    close(act(a, group.point(g), act(a, group.point(h), x)), act(a, twice, x))
    close(act(a, a.conj(group.point(g)), action.move(g, x, a)), x)


@pytest.mark.usefixtures("double")
def test_so3_is_the_group_of_turns_of_space():
    numbers = torch.randn(9, 4, 1).expand(9, 4, 3)
    matrix = SO3.move(numbers, torch.eye(3).expand(9, 3, 3), H)
    close(matrix @ matrix.transpose(1, 2), torch.eye(3).expand(9, 3, 3))
    close(torch.linalg.det(matrix), torch.ones(9))


@pytest.mark.usefixtures("double")
def test_left_and_right_differ_over_the_quaternions_and_agree_over_the_complex_numbers():
    for a, same in ((C, True), (H, False)):
        numbers, x = moved_by(rotation(a))
        sides = (rotation(a, law).move(numbers, x, a) for law in (left, right))
        assert torch.allclose(*sides) == same


@pytest.mark.usefixtures("double")
def test_fixed_groups_fix():
    for action in (SCALINGS["S^f"], ROTATIONS["V^f"]):
        x = torch.randn(6, 4, 5)
        assert action.group.width == 0
        assert action.move(torch.empty(6, 0, 5), x, H) is x


def test_hakes_bias_stays_within_its_bounds():
    m, b = MIXED.group.point(3 * torch.randn(100, 2, 5)).unbind(1)
    assert (m >= 0).all()
    assert (b <= 1).all()
    assert (b >= -m).all()


def test_names_are_unique_and_lead_back():
    for known in (SCALARS, VECTORS, SCALINGS, ROTATIONS):
        assert all(value.name == name for name, value in known.items())
    assert {"S^f", "GL(1)", "GL(1,H)", "U_H(1)", "GL(1,H) left"} <= set(SCALINGS)
    assert {"V^f", "U(1)", "SO(2)", "SO(3)", "U_H(1)", "U_H(1) left"} == set(ROTATIONS)
