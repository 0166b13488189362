"""Compound questions beside the plainest reading of their formulas, over all assignments."""

import itertools
from functools import reduce

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from modulekge.answers.compound.formula import (
    And,
    CompoundQuestion,
    Link,
    Not,
    Or,
    Triple,
    Variable,
    Word,
    all_of,
    any_of,
    leaves,
    own_variables,
    variables,
    with_value,
)
from modulekge.answers.compound.plan import plan
from modulekge.answers.compound.probabilities import Entries, LinkRows
from modulekge.answers.compound.solve import Solver
from modulekge.answers.compound.syntax import parse
from modulekge.answers.compound.tnorms import GODEL, LUKASIEWICZ, PRODUCT
from modulekge.answers.compound.witness import witness
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import PointedError, QuestionError

N_ENTITIES, N_RELATIONS = 4, 2
NAMES = tuple("abcd")
NORMS = (PRODUCT, GODEL, LUKASIEWICZ)
GRAPH = Dataset(
    "tiny",
    Vocabulary("entity", NAMES),
    Vocabulary("relation", ("r", "s")),
    *(torch.tensor([[0, 0, 1]]) for _ in range(3)),
)


class Given(LinkRows):
    """Probabilities that were drawn."""

    device, n_entities = torch.device("cpu"), N_ENTITIES

    def __init__(self, chances):
        self.chances = chances

    def entries(self, relation, heads):
        rows = self.chances[relation][heads]
        places = rows.nonzero(as_tuple=True)
        return Entries(*places, rows[places])


def plain_and(norm, x, y):
    return {"product": x * y, "godel": min(x, y), "lukasiewicz": max(0.0, x + y - 1)}[norm.name]


def plain_or(norm, x, y):
    return 1 - plain_and(norm, 1 - x, 1 - y)


def naive(formula, chances, norm):
    """Read a formula as its docstring does: try every value of every variable where it belongs."""
    if own := own_variables(formula):
        return max(
            naive(
                reduce(lambda f, pair: with_value(f, *pair), zip(own, values, strict=True), formula),
                chances,
                norm,
            )
            for values in itertools.product(range(N_ENTITIES), repeat=len(own))
        )
    if isinstance(formula, Link):
        return chances[formula.relation][formula.source][formula.target]
    if isinstance(formula, Not):
        return 1 - naive(formula.part, chances, norm)
    join = plain_and if isinstance(formula, And) else plain_or
    return reduce(lambda x, y: join(norm, x, y), (naive(part, chances, norm) for part in formula.parts))


TYPES = {
    "1p": "?x where a r ?x",
    "2p": "?y where a r ?x and ?x s ?y",
    "3p": "?z where a r ?x and ?x s ?y and ?y r ?z",
    "2i": "?x where a r ?x and b s ?x",
    "3i": "?x where a r ?x and b s ?x and c r ?x",
    "pi": "?y where a r ?x and ?x s ?y and b r ?y",
    "ip": "?y where a r ?x and b s ?x and ?x r ?y",
    "2u": "?x where a r ?x or b s ?x",
    "up": "?y where (a r ?x or b s ?x) and ?x r ?y",
    "2in": "?x where a r ?x and not b s ?x",
    "3in": "?x where a r ?x and b s ?x and not c r ?x",
    "inp": "?y where a r ?x and not b s ?x and ?x r ?y",
    "pin": "?y where a r ?x and ?x s ?y and not b r ?y",
    "pni": "?y where not (a r ?x and ?x s ?y) and b r ?y",
    "heads": "?x where ?x r a and ?y s ?x",
    "leaf": "?x where a r ?x and ?x s ?y",
    "no leaf": "?x where a r ?x and not (?x s ?y)",
    "no anchor": "?x where ?x s ?y",
    "no anchors": "?x where ?x s ?y and ?y r ?z",
    "loop": "?x where a r ?x and ?x s ?x",
    "loop inside": "?y where a r ?x and ?x s ?x and ?x r ?y",
    "fact": "?x where a r ?x and b s c",
    "triangle": "?x where a r ?x and ?x s ?y and ?y r ?z and ?z s ?x",
    "square": "?x where ?x r ?y and ?y s ?z and ?z r ?w and ?w s ?x and b r ?z",
    "two links": "?y where a r ?x and ?x s ?y and ?x r ?y",
    "but not": "?y where a r ?x and ?x s ?y and not ?x r ?y",
    "either link": "?y where a r ?x and (?x s ?y or ?x r ?y)",
    "unions of paths": "?y where (a r ?x and ?x s ?y) or (b s ?x and ?x r ?y)",
    "union beside": "?y where (a r ?x or b s ?y) and ?x r ?y",
    "double no": "?y where a r ?y and not (b s ?x and not ?x r ?y)",
    "not of or": "?y where a r ?y and not (b s ?y or ?y s ?z)",
    "own in each side": "?y where c r ?y and (?y r ?z or ?y s ?z)",
    "circle in a no": "?y where a r ?y and not (?y r ?z and ?z s ?w and ?w r ?y)",
}


def check(asked, chances, norm, floor=0.0):
    planned = plan(asked, GRAPH)
    solver = Solver(Given(chances), norm, floor)
    found = solver.values(planned.where, planned.answer)
    fixed = [with_value(planned.where, planned.answer, entity) for entity in range(N_ENTITIES)]
    expected = torch.tensor([naive(formula, chances.tolist(), norm) for formula in fixed])
    high = expected >= floor + 1e-6
    assert torch.allclose(found[high], expected[high].float(), atol=1e-5), (asked.text, found, expected)
    assert (found[~high] <= floor + 1e-5).all()
    return planned, solver, found, expected


def drawn(seed, share):
    generator = torch.Generator().manual_seed(seed)
    chances = torch.rand(2 * N_RELATIONS, N_ENTITIES, N_ENTITIES, generator=generator)
    chances[torch.rand(chances.shape, generator=generator) < 0.2] = 1  # facts
    chances[torch.rand(chances.shape, generator=generator) < share] = 0
    return chances


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("norm", NORMS, ids=lambda norm: norm.name)
def test_every_usual_type_is_exact(name, norm):
    for seed, share in enumerate((0.0, 0.5)):
        check(parse(TYPES[name]), drawn(seed, share), norm)


@pytest.mark.parametrize("name", TYPES)
def test_a_floor_loses_no_answer_above_it(name):
    for seed in range(2):
        check(parse(TYPES[name]), drawn(seed, 0.3), PRODUCT, floor=0.2)


VARIABLES = tuple(Variable(name) for name in "xyzw")
TRIPLES = st.tuples(st.sampled_from("xyzwabcd"), st.sampled_from("rs"), st.sampled_from("xyzwabcd"))
SHAPES = st.recursive(
    TRIPLES,
    lambda inner: st.one_of(
        st.tuples(st.just(Not), inner),
        st.tuples(st.just(all_of), inner, inner),
        st.tuples(st.just(all_of), inner, inner, inner),
        st.tuples(st.just(any_of), inner, inner),
    ),
    max_leaves=5,
)


def built(shape):
    """Make a formula of what was drawn."""
    kind, *parts = shape
    if isinstance(kind, str):
        head, tail = (Word(end) if end in NAMES else Variable(end) for end in (kind, parts[1]))
        return Triple(head, Word(parts[0]), tail)
    return Not(built(parts[0])) if kind is Not else kind([built(part) for part in parts])


@settings(max_examples=300)
@given(SHAPES, st.sampled_from(NORMS), st.integers(0, 99), st.sampled_from((0.0, 0.5)))
def test_any_formula_is_exact_or_refused(shape, norm, seed, share):
    where = built(shape)
    asked = CompoundQuestion(next(iter(variables(where)), VARIABLES[0]), where)
    chances = drawn(seed, share)
    try:
        planned, solver, found, expected = check(asked, chances, norm)
    except PointedError:
        return
    best = int(found.argmax())
    if expected[best] > 0:
        fixed = with_value(planned.where, planned.answer, best)
        reasons = witness(solver, fixed).reasons
        assert all(not variables(reason.link) for reason in reasons)
        if not any(isinstance(part, Or | Not) for part in walk(planned.where)):
            values = [float(chances[r.link.relation, r.link.source, r.link.target]) for r in reasons]
            if len(values) == len(list(leaves(fixed))):
                product = reduce(lambda x, y: plain_and(norm, x, y), values)
                assert product == pytest.approx(float(expected[best]), abs=1e-5)


def walk(formula):
    yield formula
    for part in getattr(formula, "parts", ()) or ((formula.part,) if isinstance(formula, Not) else ()):
        yield from walk(part)


class Even(LinkRows):
    """Every link is as probable as every other."""

    device = torch.device("cpu")

    def __init__(self, n_entities):
        self.n_entities = n_entities

    def entries(self, relation, heads):
        rows = torch.arange(len(heads)).repeat_interleave(self.n_entities)
        return Entries(rows, torch.arange(self.n_entities).repeat(len(heads)), torch.full((len(rows),), 0.5))


def test_a_circle_of_too_many_values_is_refused():
    x, y, z = (Variable(name, depth) for depth, name in enumerate("xyz"))
    triangle = And((Link(y, 0, x), Link(z, 0, y), Link(z, 1, x)))
    few = Solver(Even(5)).values(triangle, x)
    assert few.tolist() == [0.125] * 5
    with pytest.raises(QuestionError, match=r"run in a circle, and \?\w still has 600 possible values"):
        Solver(Even(600)).values(triangle, x)
    w, v = Variable("w", 1), Variable("v", 2)
    twice = And((*triangle.parts, Link(w, 0, y), Link(v, 1, w), Link(v, 0, z), Link(w, 1, z)))
    with pytest.raises(QuestionError, match="more than 4,096 values would have to be tried"):
        Solver(Even(100)).values(twice, x)
