"""From names to ids: every link gets the direction in which it is asked; what has no answer is refused."""

from collections.abc import Iterable
from dataclasses import dataclass

from modulekge.answers.compound.formula import (
    And,
    CompoundQuestion,
    Formula,
    Link,
    Not,
    Or,
    Triple,
    Variable,
    Word,
    leaves,
    own_variables,
    variables,
)
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import PointedError, PointedNameError, UnknownNameError

MOST_LINKS = 32  # of a question


@dataclass(frozen=True)
class Plan:
    """A question by id."""

    answer: Variable
    where: Formula


def plan(question: CompoundQuestion, dataset: Dataset) -> Plan:
    """Find the names of a question in a graph, and say from which end each of its links is asked.

    A model knows a link as two questions, (head, r, ?) and (?, r, tail), whose probabilities may differ. A
    link is asked from its named end. Between two variables it is asked towards the answer; but away from
    it where nothing behind the farther variable has a name, for then every entity would have to be asked.
    In a circle of links, of two variables as far from the answer the later one is the farther.
    """
    triples = [link for link in leaves(question.where) if isinstance(link, Triple)]
    if len(triples) > MOST_LINKS:
        too_many = triples[MOST_LINKS].relation
        raise _refused(question, f"more than {MOST_LINKS} links; ask something shorter", too_many)
    depths = _depths(question, triples)
    _check_safe(question)
    towards = _Directions.of(triples, depths)
    return Plan(Variable(question.answer.name), _planned(question, question.where, dataset, towards))


def _planned(
    question: CompoundQuestion, formula: Formula, dataset: Dataset, towards: "_Directions"
) -> Formula:
    if isinstance(formula, Triple):
        head, tail = (_term(question, end, dataset.entities) for end in (formula.head, formula.tail))
        relation = _id(question, formula.relation, dataset.relations)
        if towards.backwards(formula.head, formula.tail):
            return Link(towards.placed(tail), relation + len(dataset.relations), towards.placed(head))
        return Link(towards.placed(head), relation, towards.placed(tail))
    if isinstance(formula, Not):
        return Not(_planned(question, formula.part, dataset, towards))
    assert isinstance(formula, And | Or)
    return type(formula)(tuple(_planned(question, part, dataset, towards) for part in formula.parts))


def _term(question: CompoundQuestion, term: Word | Variable, entities: Vocabulary) -> int | Variable:
    return term if isinstance(term, Variable) else _id(question, term, entities)


def _id(question: CompoundQuestion, word: Word, names: Vocabulary) -> int:
    """Return the id of a name; point at one that is not there."""
    if word.alias is not None and not names.meant(word.text) and len(meant := names.meant(word.alias)) == 1:
        return meant[0]
    try:
        return names.find(word.text if word.alias is None or names.meant(word.text) else word.alias)
    except UnknownNameError as error:
        raise PointedNameError(str(error), question.text, word.start, word.end) from None


def _refused(question: CompoundQuestion, finding: str, place: Word | Variable) -> PointedError:
    return PointedError(finding, question.text, place.start, place.end)


def _depths(question: CompoundQuestion, triples: Iterable[Triple]) -> dict[Variable, int]:
    """Return how many links lie between each variable and the answer, which all have to be joined to."""
    every = variables(question.where)
    if question.answer not in every:
        raise _refused(
            question, f"{question.answer} stands in no link; say what it is linked to", question.answer
        )
    near: dict[Variable, set[Variable]] = {variable: set() for variable in every}
    for triple in triples:
        if isinstance(triple.head, Variable) and isinstance(triple.tail, Variable):
            near[triple.head].add(triple.tail)
            near[triple.tail].add(triple.head)
    depths, reached = {question.answer: 0}, [question.answer]
    for variable in reached:
        for other in near[variable] - depths.keys():
            depths[other] = depths[variable] + 1
            reached.append(other)
    for variable in every:
        if variable not in depths:
            raise _refused(
                question, f"no chain of links joins {variable} to {question.answer}; ask apart", variable
            )
    return depths


def _check_safe(question: CompoundQuestion) -> None:
    """Refuse variables that may be anything: those that stand only under "not", or in one side of an "or"."""

    def held(formula: Formula, outside: set[Variable]) -> set[Variable]:
        """Return the variables that a link holds to few values; what stands ``outside`` is not demanded."""
        if isinstance(formula, Triple):
            return set(variables(formula))
        if isinstance(formula, Not):
            held(formula.part, outside)
            return set()
        assert isinstance(formula, And | Or)
        if isinstance(formula, Or):
            return set.intersection(*(held(part, outside) for part in formula.parts))
        own = own_variables(formula)
        found = set[Variable]().union(*(held(part, outside | set(own)) for part in formula.parts))
        demand([v for v in own if v not in outside | found])
        return found

    def demand(free: list[Variable]) -> None:
        for variable in free:
            raise _refused(question, f"{variable} may be anything; add a link that says what it is", variable)

    found = held(question.where, {question.answer})
    demand([v for v in variables(question.where) if v == question.answer and v not in found])


@dataclass(frozen=True)
class _Directions:
    """Which of two variables is farther from the answer, and whether anything behind it has a name."""

    order: dict[Variable, tuple[int, int]]  # depth, then place
    grounded: frozenset[Variable]

    @classmethod
    def of(cls, triples: list[Triple], depths: dict[Variable, int]) -> "_Directions":
        order = {variable: (depth, i) for i, (variable, depth) in enumerate(depths.items())}
        grounded: set[Variable] = set()
        for variable in sorted(order, key=order.__getitem__, reverse=True):
            for triple in triples:
                ends = triple.head, triple.tail
                if variable in ends:
                    other = ends[ends[0] == variable]
                    behind = (
                        isinstance(other, Variable) and other in grounded and order[other] > order[variable]
                    )
                    if isinstance(other, Word) or behind:
                        grounded.add(variable)
        return cls(order, frozenset(grounded))

    def backwards(self, head: Word | Variable, tail: Word | Variable) -> bool:
        """Say whether a link is asked from its tail."""
        if isinstance(head, Word) or isinstance(tail, Word) or head == tail:
            return isinstance(tail, Word) and not isinstance(head, Word)
        tail_is_farther = self.order[tail] > self.order[head]
        farther = tail if tail_is_farther else head
        return tail_is_farther == (farther in self.grounded)

    def placed(self, term: int | Variable) -> int | Variable:
        """Return a variable with its depth."""
        return Variable(term.name, self.order[term][0]) if isinstance(term, Variable) else term
