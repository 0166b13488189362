"""Why an entity is an answer: the best values of the other variables, and the links between them."""

from collections.abc import Iterator
from dataclasses import dataclass

from modulekge.answers.compound.formula import (
    And,
    Formula,
    Link,
    Not,
    Or,
    groups,
    own_variables,
    with_value,
)
from modulekge.answers.compound.solve import Solver

_LITTLE = 1e-3  # what other sides of an "or" may add without being shown


@dataclass(frozen=True)
class Reason:
    """A link between two entities, by id, and whether it speaks against the answer."""

    link: Link
    negated: bool


@dataclass(frozen=True)
class Witness:
    """Values of variables, and the links that they make."""

    values: dict[str, int]
    reasons: list[Reason]


def witness(solver: Solver, formula: Formula) -> Witness:
    """Return the best values of a formula's variables, and its links with them.

    Of an "or", the sides that count, each with its own values. Under "not", what comes nearest to
    being so. A variable that stands for several such things keeps its first value.
    """
    values: dict[str, int] = {}
    reasons = list(_reasons(solver, formula, values, solver.floor, negated=False))
    return Witness(values, list(dict.fromkeys(reasons)))


def _reasons(
    solver: Solver, formula: Formula, values: dict[str, int], floor: float, negated: bool
) -> Iterator[Reason]:
    while own_variables(formula):
        parts = formula.parts if isinstance(formula, And) else (formula,)
        group = next(some for some in groups(parts) if own_variables(And(some)))
        variable, best, possible = solver.best(group, floor)
        if negated and not possible:
            return  # nothing speaks against it
        if not negated:
            values.setdefault(variable.name, best)
        formula = with_value(formula, variable, best)
    if isinstance(formula, Link):
        yield Reason(formula, negated)
    elif isinstance(formula, Not):
        yield from _reasons(solver, formula.part, values, 0.0, not negated)
    elif isinstance(formula, Or):
        for part in _sides(solver, formula):
            yield from _reasons(solver, part, values, 0.0, negated)
    else:
        assert isinstance(formula, And)
        for part in formula.parts:
            yield from _reasons(solver, part, values, floor, negated)


def _sides(solver: Solver, formula: Or) -> list[Formula]:
    """Return the best side of an "or" if it alone makes the value; else all that are possible."""
    chances = {part: solver.value(part) for part in formula.parts}
    best = max(chances, key=chances.__getitem__)
    if chances[best] >= solver.value(formula) - _LITTLE:
        return [best]
    return [part for part, chance in chances.items() if chance > 0]
