"""Rows of the table that stand for all: one for each score and kind of parametrization of the entities."""

from modulekge.models.spec import MODELS


def _kinds(spec):
    return spec.score.name, spec.scalar.parametrization.kind, spec.vector.parametrization.kind


ONE_OF_EACH = (*{_kinds(spec): name for name, spec in reversed(MODELS.items())}.values(), "ModulE-HH")
