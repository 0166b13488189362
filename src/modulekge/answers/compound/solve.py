"""The value of every entity as an answer: maxima are moved inwards as far as the variables allow."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from modulekge.answers.compound.formula import (
    And,
    Formula,
    Link,
    Not,
    Or,
    Variable,
    groups,
    nearest,
    own_variables,
    variables,
    with_value,
)
from modulekge.answers.compound.probabilities import LinkRows
from modulekge.answers.compound.tnorms import PRODUCT, TNorm
from modulekge.errors import QuestionError

Vector = Float[Tensor, " e"]
MOST_VALUES = 512  # of a variable that is tried value by value, which breaks a circle of links
_MOST_TRIED = 4096  # values of circles inside circles, multiplied
_MOST_MESSAGES = 64  # that are remembered
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class Solver:
    r"""$m(y) = \max_x \top(m(x), p(x, r, y))$, from named entities to the answer: exact for trees of links.

    A message $m$ has a number for each entity, so work is that of the rows of those whose number is not 0.
    In a circle of links one variable is tried value by value, if few values are possible. What is below
    ``floor`` is 0 where nothing but ``and`` stands above it: no answer of at least that is lost. A solver is
    of one question; it remembers messages.
    """

    links: LinkRows
    norm: TNorm = PRODUCT
    floor: float = 0.0
    _messages: dict[tuple[object, ...], Tensor] = field(default_factory=dict, init=False, repr=False)
    _origins: dict[tuple[object, ...], Tensor] = field(default_factory=dict, init=False, repr=False)
    _tried: list[int] = field(default_factory=list, init=False, repr=False)  # of the circles under way

    def values(self, formula: Formula, variable: Variable) -> Vector:
        """Return the value of a formula for each value of a variable, whatever is best for the others."""
        return self._solve(formula, variable, None, self.floor)

    def value(self, formula: Formula, floor: float = 0.0) -> float:
        """Return the value of a formula, whatever is best for its variables."""
        return float(self._value(formula, floor))

    def _value(self, formula: Formula, floor: float = 0.0) -> Float[Tensor, ""]:
        if own := own_variables(formula):
            return self._solve(formula, nearest(own), None, floor).amax()
        if isinstance(formula, Not):
            return 1 - self._value(formula.part)
        if isinstance(formula, Link):
            source = torch.tensor([formula.source], device=self.links.device)
            found = self.links.entries(formula.relation, source)
            return found.values[found.columns == formula.target].sum()
        assert isinstance(formula, And | Or)
        join = self.norm.both if isinstance(formula, And) else self.norm.either
        return reduce(join, [self._value(part) for part in formula.parts])

    def best(self, parts: tuple[Formula, ...], floor: float) -> tuple[Variable, int, bool]:
        """Return a variable of parts that share variables, its best value, and whether that is possible.

        The floor is 0 where the parts stand below an "or" or a "not".
        """
        links = [x for x in parts if isinstance(x, Link) and isinstance(x.target, int)]
        if len(links) == 1 and isinstance(source := links[0].source, Variable):
            rest = tuple(part for part in parts if part is not links[0])
            found = self._origin(links[0], source, rest, floor) if _is_anchored(rest, source) else None
            if found is not None:
                return source, found, True
        variable = nearest(own_variables(And(parts)))
        values = self._solve(And(parts), variable, None, floor)
        return variable, int(values.argmax()), bool(values.any())

    def _origin(self, link: Link, source: Variable, rest: tuple[Formula, ...], floor: float) -> int | None:
        """Return from where the best value comes to the end of a link: found for all ends at once."""
        key = (link.relation, source, rest, floor)
        if key not in self._origins:
            _remember(self._origins, key, self._all_origins(link, source, rest, floor))
        assert isinstance(link.target, int)
        found = int(self._origins[key][link.target])
        return found if found < self.links.n_entities else None

    def _all_origins(
        self, link: Link, source: Variable, rest: tuple[Formula, ...], floor: float
    ) -> Int[Tensor, " e"]:
        message = self._solve(And(rest), source, None, floor)
        best = self._pushed(link, rest, floor)
        origins = torch.full_like(best, self.links.n_entities, dtype=torch.long)
        for some in message.nonzero()[:, 0].split(_ROWS_AT_ONCE):
            rows, columns, values = self.links.entries(link.relation, some)
            values = self.norm.both(message[some][rows], values)
            hit = (values >= best[columns]) & (values > 0)
            origins.scatter_reduce_(0, columns[hit], some[rows[hit]], "amin")
        return origins

    def _filled(self, value: float | Tensor) -> Vector:
        return torch.zeros(self.links.n_entities, device=self.links.device).add_(value)

    def _solve(
        self, formula: Formula, y: Variable, within: Bool[Tensor, " e"] | None, floor: float
    ) -> Vector:
        """Return values of ``y``, right where ``within`` says that they are needed; None: everywhere."""
        if isinstance(formula, Link):
            return self._group((formula,), y, within, floor)
        if isinstance(formula, Not):
            return 1 - self._solve(formula.part, y, within, 0.0)
        if isinstance(formula, Or):
            return reduce(self.norm.either, [self._solve(part, y, within, 0.0) for part in formula.parts])
        assert isinstance(formula, And)
        result, needed = self._filled(1.0), within
        ordered = sorted(groups(formula.parts, y), key=lambda group: not _is_anchored(group, y))
        for group in ordered:
            result = self.norm.both(result, self._group(group, y, needed, floor))
            if floor:
                result = result.masked_fill(result < floor, 0)
            support = result > 0
            needed = support if within is None else support & within
        return result

    def _group(
        self, parts: tuple[Formula, ...], y: Variable, within: Bool[Tensor, " e"] | None, floor: float
    ) -> Vector:
        """Solve parts that share variables other than ``y``, and none of these with any other part."""
        anchored = _is_anchored(parts, y)
        key = (parts, y, floor)
        if anchored and key in self._messages:
            return self._messages[key]
        result = self._solved(parts, y, None if anchored else within, floor)
        if anchored:
            _remember(self._messages, key, result)
        return result

    def _solved(
        self, parts: tuple[Formula, ...], y: Variable, within: Bool[Tensor, " e"] | None, floor: float
    ) -> Vector:
        holders = [part for part in parts if y in variables(part)]
        if len(parts) == 1 and not isinstance(parts[0], Link):
            return self._solve(parts[0], y, within, floor)
        if not holders:
            return self._filled(self._value(parts[0] if len(parts) == 1 else And(parts)))
        if len(holders) > 1 or not isinstance(holders[0], Link):
            return self._one_by_one(parts, y, within, floor)
        (link,) = holders
        assert isinstance(link, Link)
        rest = tuple(part for part in parts if part is not link)
        if link.target == y and link.source != y:
            return self._pushed(link, rest, floor)
        return self._pulled(link, y, rest, within, floor)

    def _ids(self, ids: Sequence[int]) -> Int[Tensor, " n"]:
        return torch.tensor(ids, dtype=torch.long, device=self.links.device)

    def _pushed(self, link: Link, rest: tuple[Formula, ...], floor: float) -> Vector:
        r"""$\max_x \top(m(x), p(x, r, y))$ for each $y$: the rows of every $x$ with a message."""
        if isinstance(link.source, int):
            message, heads = self._filled(1.0), self._ids([link.source])
        else:
            message = self._solve(And(rest), link.source, None, floor)
            heads = message.nonzero()[:, 0]
        result = self._filled(0.0)
        for some in heads.split(_ROWS_AT_ONCE):
            rows, columns, values = self.links.entries(link.relation, some)
            result.scatter_reduce_(0, columns, self.norm.both(message[some][rows], values), "amax")
        return result.masked_fill_(result < floor, 0)

    def _pulled(
        self,
        link: Link,
        y: Variable,
        rest: tuple[Formula, ...],
        within: Bool[Tensor, " e"] | None,
        floor: float,
    ) -> Vector:
        r"""$\max_x \top(p(y, r, x), m(x))$ for each $y$ that is needed: the row of each."""
        heads = torch.arange(self.links.n_entities, device=self.links.device)
        heads = heads if within is None else heads[within]
        result, message = self._filled(0.0), self._filled(1.0)
        if isinstance(link.target, int):
            message = self._filled(0.0)
            message[link.target] = 1
        elif rest:
            reached = None if _is_anchored(rest, link.target) else self._reached(link.relation, heads)
            message = self._solve(And(rest), link.target, reached, floor)
        for some in heads.split(_ROWS_AT_ONCE):
            rows, columns, values = self.links.entries(link.relation, some)
            found = self.norm.both(values, message[columns])
            if link.target == y:
                found = torch.where(columns == some[rows], found, 0)
            result.scatter_reduce_(0, some[rows], found, "amax")
        return result.masked_fill_(result < floor, 0)

    def _reached(self, relation: int, heads: Int[Tensor, " n"]) -> Bool[Tensor, " e"]:
        """Say which entities any of the rows reaches."""
        mask = torch.zeros(self.links.n_entities, dtype=torch.bool, device=self.links.device)
        for some in heads.split(_ROWS_AT_ONCE):
            mask[self.links.entries(relation, some).columns] = True
        return mask

    def _one_by_one(
        self, parts: tuple[Formula, ...], y: Variable, within: Bool[Tensor, " e"] | None, floor: float
    ) -> Vector:
        """Try every possible value of one variable: the rest then falls apart, or has a smaller circle."""
        bounds = {x: self._bound(parts, x, y, floor) for x in own_variables(And(parts)) if x != y}
        x = min(bounds, key=lambda each: int(bounds[each].count_nonzero()))
        possible = bounds[x].nonzero()[:, 0]
        if len(possible) > MOST_VALUES:
            names = " and ".join(map(str, (*bounds, y)))
            raise QuestionError(
                f"the links of {names} run in a circle, and {x} still has {len(possible):,} possible values; "
                f"add links until some variable has {MOST_VALUES} at most, or break the circle"
            )
        result = self._filled(0.0)
        self._tried.append(len(possible))
        if prod(self._tried) > _MOST_TRIED:
            raise QuestionError(
                f"links run in circles inside circles, for which more than {_MOST_TRIED:,} values would "
                "have to be tried; name more entities, or break a circle"
            )
        for entity in possible.tolist():
            tried = And(tuple(with_value(part, x, entity) for part in parts))
            result = torch.maximum(result, self._solve(tried, y, within, floor))
        self._tried.pop()
        return result

    def _bound(self, parts: tuple[Formula, ...], x: Variable, y: Variable, floor: float) -> Vector:
        """Return at least the value of every ``x``: that without the parts that close circles."""
        tree = tuple(_spanning(parts, y))
        return self._solve(And(tree), x, None, floor) if tree else self._filled(1.0)


def _remember(memory: dict[tuple[object, ...], Tensor], key: tuple[object, ...], found: Tensor) -> None:
    """Keep what was found, and forget what was found first if there is too much."""
    memory[key] = found
    if len(memory) > _MOST_MESSAGES:
        memory.pop(next(iter(memory)))


def _is_anchored(parts: Sequence[Formula], y: Variable) -> bool:
    """Say whether named entities lead to ``y``, so that few rows tell which values it has."""
    if len(parts) == 1:
        (part,) = parts
        if isinstance(part, Link):
            return isinstance(part.source, int) and part.target == y
        if isinstance(part, Or):
            return all(_is_anchored((each,), y) for each in part.parts)
        return isinstance(part, And) and any(_is_anchored(group, y) for group in groups(part.parts, y))
    holders = [part for part in parts if y in variables(part)]
    if len(holders) != 1 or not isinstance(holders[0], Link) or holders[0].target != y:
        return len(holders) > 1 and any(_is_anchored((part,), y) for part in holders)
    (link,) = holders
    source = link.source  # type: ignore[attr-defined]
    rest = tuple(part for part in parts if part is not link)
    return isinstance(source, Variable) and any(_is_anchored(group, source) for group in groups(rest, source))


def _spanning(parts: Sequence[Formula], y: Variable) -> Iterator[Formula]:
    """Yield parts that make no circle: those of one variable, then links that join what is apart."""
    counts = [set(variables(part)) for part in parts]
    own = {y, *own_variables(And(tuple(parts)))}
    shared = [names & own for names in counts]
    joined: dict[Variable, set[Variable]] = {v: {v} for names in counts for v in names}
    for part, names in zip(parts, shared, strict=True):
        if len(names) < 2:
            yield part
        elif isinstance(part, Link):
            a, b = names
            if joined[a] is not joined[b]:
                joined[a] |= joined[b]
                joined.update(dict.fromkeys(joined[b], joined[a]))
                yield part
