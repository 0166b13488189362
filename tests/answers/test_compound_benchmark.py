"""The questions that the benchmark draws, beside sets of entities."""

import itertools
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from modulekge.answers.compound.formula import And, CompoundQuestion, Link, Not, Or, Variable, variables
from modulekge.answers.compound.plan import plan
from modulekge.data.registry import open_dataset

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import compound


@pytest.fixture(scope="module")
def graphs():
    every = open_dataset("world")
    known = replace(every, test=every.test[:0])
    return known, every, tails_of(known), tails_of(every)


def tails_of(dataset):
    found = {}
    for split in ("train", "valid", "test"):
        for head, relation, tail in dataset.questions(split).tolist():
            found.setdefault((head, relation), set()).add(tail)
    return found


def answers(formula, of, tails, everyone):
    """Return who may stand for a variable, with sets as one would write them."""
    if isinstance(formula, Link):
        return tails.get((formula.source, formula.relation), set())
    if isinstance(formula, Not):
        return everyone - answers(formula.part, of, tails, everyone)
    if isinstance(formula, Or):
        return set.union(*(answers(part, of, tails, everyone) for part in formula.parts))
    assert isinstance(formula, And)
    *rest, last = formula.parts
    if isinstance(last, Link) and not isinstance(last.source, int) and last.target == of:
        before = answers(And(tuple(rest)) if len(rest) > 1 else rest[0], last.source, tails, everyone)
        return set().union(*(tails.get((entity, last.relation), set()) for entity in before))
    kept, path = set(everyone), []
    for part in formula.parts:  # links of a path stand beside each other, its last one ends here
        path.append(part)
        if of in variables(part):
            joined = And(tuple(path)) if len(path) > 1 else part
            kept &= answers(joined, of, tails, everyone)
            path = []
    return kept


@pytest.mark.parametrize("name", compound.TYPES)
def test_hard_answers_are_those_that_need_a_missing_link(name, graphs):
    known, every, *tails = graphs
    drawn = list(itertools.islice(compound.Drawer(known, every, 0).questions(compound.TYPES[name]), 5))
    assert len(drawn) == 5
    everyone, of = set(range(len(every.entities))), compound.Variable("0")
    for question in drawn:
        easy, full = (answers(question.where, of, each, everyone) for each in tails)
        assert set(question.answers.nonzero()[:, 0].tolist()) == full
        assert set(question.missing) == full - easy
        assert 0 < len(full) <= compound.MOST_ANSWERS
        assert min(question.missing.values()) >= (0 if name in compound.NEGATIVE else 1)
        links = sum(isinstance(leaf, Link) for leaf in compound_links(question.where))
        assert max(question.missing.values()) <= links


def compound_links(formula):
    if isinstance(formula, Link):
        yield formula
    elif isinstance(formula, And | Or):
        for part in formula.parts:
            yield from compound_links(part)


@pytest.mark.parametrize("name", compound.TYPES)
def test_a_drawn_question_by_name_means_the_same_by_id(name, graphs):
    known, every, *_ = graphs
    for drawn in itertools.islice(compound.Drawer(known, every, 0).questions(compound.TYPES[name]), 5):
        question = CompoundQuestion(Variable("0"), compound.by_name(drawn.where, every))
        assert plan(question, every).where == drawn.where
