"""Which entities a side of a relation can hold."""

from dataclasses import replace
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from modulekge.answers.predictor import Predictor
from modulekge.answers.questions import Question
from modulekge.data.dataset import Dataset
from modulekge.data.type_constraints import TypeConstraints, type_relations
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import QuestionError


def graph(entities, relations, train, names=None, labels=None):
    names = names or [f"r{i}" for i in range(relations)]
    parts = [torch.tensor(triples, dtype=torch.long).view(-1, 3) for triples in (train, [], [])]
    vocabularies = (
        Vocabulary("entity", tuple(f"e{i}" for i in range(entities))),
        Vocabulary("relation", tuple(names), labels or {}),
    )
    return Dataset("made", *vocabularies, *parts)


def allowed(dataset, relation):
    return set(TypeConstraints.of(dataset).allowed(relation).nonzero()[:, 0].tolist())


def naive(dataset, relation, typing=()):
    """The definition, with sets and exact fractions."""
    n = len(dataset.relations)
    answers, types = {}, {}
    for h, r, t in dataset.train.tolist():
        answers.setdefault(r, set()).add(t)
        answers.setdefault(r + n, set()).add(h)
        if r in typing:
            types.setdefault(h, set()).add(("type", t))
    everyone = set(range(len(dataset.entities)))
    observed = answers.get(relation, set())
    if not observed:
        return everyone
    kinds = {e: types.get(e) or {r for r in answers if e in answers[r]} for e in everyone}
    members = {k: {e for e in everyone if k in kinds[e]} for e in everyone for k in kinds[e]}

    def alike(e):
        others = kinds[e] - {relation}
        return sum(Fraction(len(observed & members[k]), len(members[k])) for k in others) / len(others)

    told = sorted(alike(e) for e in observed if kinds[e] - {relation})
    if not told:
        return observed
    bar = told[int(0.1 * len(told))] / 2
    return observed | {e for e in everyone if kinds[e] - {relation} and alike(e) >= bar}


triple = st.tuples(st.integers(0, 15), st.integers(0, 2), st.integers(0, 15))


@given(st.lists(triple, min_size=1, max_size=60), st.booleans())
def test_the_fast_form_is_the_definition(train, typed):
    dataset = graph(18, 3, train, names=["type" if typed else "r0", "r1", "r2"])
    constraints = TypeConstraints.of(dataset)
    for relation in range(6):
        found = set(constraints.allowed(relation).nonzero()[:, 0].tolist())
        assert found == naive(dataset, relation, typing=(0,) if typed else ())
    relations = torch.tensor([4, 0, 4])
    assert torch.equal(constraints.mask(relations), torch.stack([constraints.allowed(r) for r in (4, 0, 4)]))
    assert constraints.sides(1) == (
        len(naive(dataset, 4, (0,) * typed)),
        len(naive(dataset, 1, (0,) * typed)),
    )


PEOPLE, PLACES = range(10), range(10, 16)
LIVES = [(i, 0, 10 + i % 5) for i in PEOPLE]  # a person lives in a place; nobody lives in e15
KNOWS = [(i, 1, i + 1) for i in range(8)]  # e9 knows nobody
PART = [(10 + i, 2, 15) for i in range(5)] + [(15, 2, 10)]


def test_what_is_like_the_observed_answers_is_allowed_and_nothing_else():
    dataset = graph(17, 3, LIVES + KNOWS + PART)  # e16 is in no fact
    assert allowed(dataset, 0) == set(PLACES)  # e15 too, where nobody lives
    assert allowed(dataset, 3) == set(PEOPLE)
    assert allowed(dataset, 4) == set(PEOPLE)  # e9 too, who knows nobody


def test_a_graph_with_one_relation():
    assert allowed(graph(6, 1, [(0, 0, 3), (1, 0, 3), (2, 0, 4)]), 0) == {3, 4}  # heads are never tails
    chain = graph(6, 1, [(i, 0, i + 1) for i in range(4)])
    assert allowed(chain, 0) == {0, 1, 2, 3, 4}  # e0 is a head as the other tails are; e5 is nothing


def test_a_relation_without_training_facts_may_have_any_answer():
    dataset = graph(17, 4, LIVES + KNOWS + PART)
    assert allowed(dataset, 3) == allowed(dataset, 7) == set(range(17))
    bare = replace(dataset, train=dataset.train[:0], facts=False)
    assert all(TypeConstraints.of(bare).allowed(r).all() for r in range(8))


def test_given_types_are_the_kinds():
    """Two persons and two places share all that they answer; only their types tell them apart."""
    types = [(0, 1, 6), (1, 1, 6), (2, 1, 6), (3, 1, 7), (4, 1, 7)]
    train = [(0, 0, 5), (1, 0, 5), *types]
    named = graph(8, 2, train, names=["born_in", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"])
    assert allowed(named, 2) == {0, 1, 2}
    assert allowed(graph(8, 2, train, names=["born_in", "sort"]), 2) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize(
    "name", ["type", "rdf:type", "/a/b/type", "Instance_of", "instance of", "P31", "has-type"]
)
def test_relations_that_give_types(name):
    assert type_relations(Vocabulary("relation", ("borders", name))) == [1]
    assert type_relations(Vocabulary("relation", ("x1", "x2"), {"x2": name})) == [1]


@pytest.mark.parametrize(
    "name", ["blood_type", "/education/school_type", "isa", "types", "typed/in", "subclass_of"]
)
def test_relations_that_give_none(name):
    assert type_relations(Vocabulary("relation", (name,))) == []


@pytest.fixture
def asked(drawn_run):
    dataset = graph(17, 3, LIVES + KNOWS + PART)
    valid = torch.tensor([[0, 0, 1]])  # a known fact, though no place
    return Predictor(drawn_run(replace(dataset, valid=valid), "ModulE-HH"))


def test_predict_restricts_new_answers_where_asked_to(asked):
    question = {"head": "e0", "relation": "r0", "k": 17}
    every = asked.predict(**question)
    assert len(every) == 17
    some = asked.predict(**question, types="constrained")
    assert {a.name for a in some} == {"e1", *(f"e{i}" for i in PLACES)}  # a fact stays whatever its type
    names = {a.name for a in some}
    assert [(a.name, a.score) for a in some] == [(a.name, a.score) for a in every if a.name in names]
    new = asked.predict(**question, types="constrained", known="exclude")
    assert {a.name for a in new} == {f"e{i}" for i in PLACES if i != 10}
    assert asked.candidates(Question("e0", "r0")) == 6
    heads = asked.predict(tail="e15", relation="r0", k=17, types="constrained")
    assert {a.name for a in heads} == {f"e{i}" for i in PEOPLE}


def test_relations_have_no_types(asked):
    with pytest.raises(QuestionError, match="ask for relations without them"):
        asked.predict(head="e0", tail="e1", types="constrained")


def test_links_are_restricted_unless_any_type_is_asked_for(tmp_path):
    from modulekge import calibrate, train

    dataset = graph(17, 3, LIVES + KNOWS + PART)
    held = torch.tensor([[8, 1, 9], [2, 0, 15], [11, 2, 12]])
    run = train(replace(dataset, valid=held), "DistMult", {"model.k": 2, "train.epochs": 2}, tmp_path / "run")
    calibrate(run)
    asked = Predictor(run)
    every, fitting = asked.links(k=9999, types="any"), asked.links(k=9999)
    sides = [
        ({f"e{i}" for i in naive(dataset, r + 3)}, {f"e{i}" for i in naive(dataset, r)}) for r in range(3)
    ]
    assert asked.link_candidates() == [(len(heads), len(tails)) for heads, tails in sides]
    assert asked.link_candidates(["r1", "r1"], "any") == [(17, 17)]

    def fits(link):
        heads, tails = sides[int(link.relation[1:])]
        return link.head in heads and link.tail in tails

    assert len(every) == 3 * 17 * 17 - len(LIVES + KNOWS + PART) - len(held)
    assert {*map(repr, fitting)} == {repr(link) for link in every if fits(link)}
    assert 0 < len(fitting) < len(every)
    chances = [link.probability for link in fitting]
    assert chances == sorted(chances, reverse=True)
