"""Why an entity is an answer: the best values of the other variables, and the links between them."""

from collections.abc import Iterator
from dataclasses import dataclass

from modulekge.answers.compound.formula import (
    And,
    Formula,
    Link,
    Not,
    Or,
    Variable,
    nearest,
    own_variables,
    with_value,
)
from modulekge.answers.compound.solve import Solver


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

    Of an "or", the sides that are possible, each with its own values. Under "not", what comes nearest to
    being so. A variable that stands for several such things keeps its first value.
    """
    values: dict[str, int] = {}
    reasons = list(_reasons(solver, formula, values, negated=False))
    return Witness(values, list(dict.fromkeys(reasons)))


def _reasons(solver: Solver, formula: Formula, values: dict[str, int], negated: bool) -> Iterator[Reason]:
    while own := own_variables(formula):
        variable: Variable = nearest(own)
        values_of = solver.values(formula, variable)
        best = int(values_of.argmax())
        if negated and not values_of[best]:
            return  # nothing speaks against it
        if not negated:
            values.setdefault(variable.name, best)
        formula = with_value(formula, variable, best)
    if isinstance(formula, Link):
        yield Reason(formula, negated)
    elif isinstance(formula, Not):
        yield from _reasons(solver, formula.part, values, not negated)
    elif isinstance(formula, Or):
        for part in formula.parts:
            if solver.value(part) > 0:
                yield from _reasons(solver, part, values, negated)
    else:
        assert isinstance(formula, And)
        for part in formula.parts:
            yield from _reasons(solver, part, values, negated)
