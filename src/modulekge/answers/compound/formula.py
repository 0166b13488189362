r"""What a compound question says, and what its value is.

Let $p(h, r, t)$ be the probability of a link, 1 where it is a known fact. With a t-norm $\top$ and its
t-conorm $\bot$, the value of a formula under an assignment of entities to its variables is

$$V(h\,r\,t) = p(h, r, t) \qquad V(F \wedge G) = \top(V(F), V(G))$$
$$V(\neg F) = 1 - \max_z V(F) \qquad V(F \vee G) = \bot(\max_y V(F), \max_z V(G)),$$

$z$ the variables of $F$ that stand nowhere outside of the ``not`` ("there is no such $z$"), $y$ and $z$ those
that stand nowhere outside of the ``or`` (each side has its own). An entity $c$ answers the question with
$P(c) = \max V(F)$ over all values of the other variables:

    product      x y            x + y - x y
    godel        min(x, y)      max(x, y)
    lukasiewicz  max(0, x+y-1)  min(1, x+y)

This is the most probable single reason, not the probability that there is any: of an answer with ten reasons
the best one counts (QTO, Bai et al. 2023; CQD, Arakelyan et al. 2021). Links count as independent, also where
one is asked twice.
"""

from abc import ABC
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Word:
    """A name as it was written, and where."""

    text: str
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)
    alias: str | None = field(default=None, compare=False)  # what else it may mean: the end of an IRI


@dataclass(frozen=True)
class Variable:
    """An unknown entity; ``depth`` says how many links lie between it and the answer, which has 0."""

    name: str
    depth: int = field(default=0, compare=False)
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"?{self.name}"


class Formula(ABC):  # noqa: B024 - what a question is made of
    """A link, or formulas joined by and, or, not."""


@dataclass(frozen=True)
class Triple(Formula):
    """A link by name, with variables for what is not known."""

    head: Word | Variable
    relation: Word
    tail: Word | Variable


@dataclass(frozen=True)
class Link(Formula):
    """A link by id, as it is asked: of ``source`` through ``relation``, which may be an inverse one."""

    source: int | Variable
    relation: int
    target: int | Variable


@dataclass(frozen=True)
class And(Formula):
    """All parts hold."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Or(Formula):
    """One of the parts holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Not(Formula):
    """The part does not hold, whatever the variables that stand only in it."""

    part: Formula


@dataclass(frozen=True)
class CompoundQuestion:
    """Which values of a variable make a formula hold."""

    answer: Variable
    where: Formula
    text: str = field(default="", compare=False)  # as it was asked, to point into


def all_of(parts: list[Formula]) -> Formula:
    """Join formulas by ``and``, those of a nested ``and`` one by one."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def any_of(parts: list[Formula]) -> Formula:
    """Join formulas by ``or``, those of a nested ``or`` one by one."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def children(formula: Formula) -> tuple[Formula, ...]:
    """Return what a formula joins."""
    if isinstance(formula, And | Or):
        return formula.parts
    return (formula.part,) if isinstance(formula, Not) else ()


def leaves(formula: Formula) -> Iterator[Formula]:
    """Yield every link of a formula, from left to right."""
    if below := children(formula):
        for part in below:
            yield from leaves(part)
    else:
        yield formula


def ends(link: Formula) -> tuple[object, object]:
    """Return what a link joins."""
    if isinstance(link, Link):
        return link.source, link.target
    assert isinstance(link, Triple)
    return link.head, link.tail


def variables(formula: Formula) -> dict[Variable, None]:
    """Return the variables of a formula, in the order of their first appearance."""
    found = (end for link in leaves(formula) for end in ends(link))
    return dict.fromkeys(end for end in found if isinstance(end, Variable))


def own_variables(formula: Formula) -> list[Variable]:
    """Return the variables that have one value throughout a formula, not one for each side of an "or"."""
    if isinstance(formula, Link | Triple):
        return list(variables(formula))
    if not isinstance(formula, And):
        return []
    found = [variables(part) for part in formula.parts]
    in_links = [variables(part) for part in formula.parts if isinstance(part, Link | Triple)]
    return [v for v in variables(formula) if any(v in x for x in in_links) or sum(v in x for x in found) > 1]


def with_value(formula: Formula, variable: Variable, entity: int) -> Formula:
    """Return the formula with an entity in the place of a variable."""
    if isinstance(formula, Link):
        source, target = (entity if end == variable else end for end in (formula.source, formula.target))
        return Link(source, formula.relation, target)
    if isinstance(formula, Not):
        return Not(with_value(formula.part, variable, entity))
    assert isinstance(formula, And | Or)
    return type(formula)(tuple(with_value(part, variable, entity) for part in formula.parts))


def nearest(some: list[Variable]) -> Variable:
    """Return the variable that is nearest to the answer: links are asked towards it."""
    return min(some, key=lambda variable: variable.depth)


def groups(parts: Sequence[Formula], apart_from: Variable | None = None) -> list[tuple[Formula, ...]]:
    """Return parts in groups that share no variable, or only the one they may."""
    found: list[tuple[set[Variable], list[Formula]]] = []
    for part in parts:
        names, members = {v for v in variables(part) if v != apart_from}, [part]
        for group in [group for group in found if group[0] & names]:
            names, members = names | group[0], group[1] + members
            found.remove(group)
        found.append((names, members))
    return [tuple(members) for _, members in found]
