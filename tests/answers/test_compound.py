"""Compound questions: how they are read, what is refused, and what a run answers."""

import re
from dataclasses import replace

import pytest
import torch

import modulekge
from modulekge.answers.compound.asker import Asker, ask
from modulekge.answers.compound.formula import CompoundQuestion, Not, Triple, Variable, Word, all_of, any_of
from modulekge.answers.compound.plan import MOST_LINKS, plan
from modulekge.answers.compound.probabilities import ScoredRows, link_probabilities
from modulekge.answers.compound.syntax import parse
from modulekge.answers.compound.tokens import LONGEST
from modulekge.answers.predictor import Predictor
from modulekge.errors import ModulekgeError, PointedError, PointedNameError, QuestionError
from modulekge.evaluation.odds import log_odds, loops, marked
from modulekge.run.train import train

SETTINGS = {"model.k": 8, "model.scalar_scale": 0.1, "train.epochs": 60, "train.batch": 8}


@pytest.fixture(scope="module")
def run(tmp_path_factory, family):
    run = train(family, "ModulE-HH", SETTINGS, tmp_path_factory.mktemp("runs") / "run")
    modulekge.calibrate(run)
    return run


@pytest.fixture(scope="module")
def asker(run):
    return Asker(run)


def link(head, relation, tail):
    ends = (Variable(end[1:]) if end.startswith("?") else Word(end) for end in (head, tail))
    return Triple(next(ends), Word(relation), next(ends))


A, B, C = link("ada", "parent", "?x"), link("?x", "parent", "?y"), link("?y", "sibling", "bob jr")
SAME = [
    ("?y where ada parent ?x and ?x parent ?y", "SELECT ?y { :ada :parent ?x . ?x :parent ?y }", [A, B]),
    (
        '?y WHERE (ada parent ?x AND ?x parent ?y) and not ?y sibling "bob jr"',
        "select distinct ?y where { :ada :parent ?x . ?x <parent> ?y "
        'FILTER NOT EXISTS { ?y :sibling "bob jr" } }',
        [A, B, Not(C)],
    ),
    (
        "?y where (ada parent ?x or ?y sibling 'bob jr') and ?x parent ?y",
        'SELECT $y WHERE { { :ada :parent ?x } UNION { ?y :sibling "bob jr" } ?x :parent ?y . }  # so',
        [any_of([A, C]), B],
    ),
    (
        "?y where ?y parent bob and ?y parent cid and ?y child ada",
        "PREFIX : <http://x/> PREFIX y: <http://y#> SELECT ?y { ?y :parent y:bob, y:cid ; :child <ada> }",
        [link("?y", *end) for end in (("parent", "bob"), ("parent", "cid"), ("child", "ada"))],
    ),
]


@pytest.mark.parametrize(("small", "sparql", "parts"), SAME)
def test_both_languages_are_read_as_the_same_question(small, sparql, parts, family):
    expected = CompoundQuestion(Variable("y"), all_of(parts))
    assert parse(small) == expected
    if "PREFIX" in sparql:  # whose names are longer, and mean the same
        assert plan(parse(sparql), family) == plan(parse(small), family)
    else:
        assert parse(sparql) == expected


def test_or_binds_less_than_and_and_not_binds_most():
    found = parse("?x where ada parent ?x and not bob parent ?x or cid parent ?x").where
    a, b, c = (link(name, "parent", "?x") for name in ("ada", "bob", "cid"))
    assert found == any_of([all_of([a, Not(b)]), c])
    assert parse(r'?x where "a \"b\" \\c" parent ?x').where.head.text == r'a "b" \c'


REFUSED = [
    ("", "expected a variable", 0, 1),
    ("ada parent ?x", "expected a variable, what is asked for", 0, 3),
    ("?x ada parent ?x", "expected 'where'", 3, 6),
    ("?x where ada parent", "expected an entity or a variable", 19, 20),
    ("?x where ada ?r ?x", "expected a relation by name", 13, 15),
    ("?x where and parent ?x", "a name that is a keyword goes in quotes", 9, 12),
    ("?x where (ada parent ?x", "or '\\)'", 23, 24),
    ("?x where ada parent ?x)", "or the end", 22, 23),
    ("?x where ?x parent Ada Lovelace", 'goes in quotes: "Ada Lovelace"', 23, 31),
    ("?x where ada parent 'bob", "a quote that does not end", 20, 21),
    ("?x where ada parent ?", "a sign that means nothing here", 20, 21),
    ("?x where " + "not " * 60 + "ada parent ?x", "more than 50 brackets", 209, 212),
    ("SELECT * { :ada :parent ?x }", "expected one variable", 7, 8),
    ("SELECT ?x ?y { :ada :parent ?x }", "expected one variable only", 10, 12),
    ("ASK { :ada :parent ?x }", "ASK is not answered; ask with SELECT", 0, 3),
    ("SELECT ?x { :ada :parent ?x OPTIONAL { ?x :child ?y } }", "OPTIONAL is not answered", 28, 36),
    ("SELECT ?x { :ada :parent ?x } LIMIT 3", "LIMIT is not answered: .* -k says", 30, 35),
    ("SELECT ?x { :ada :parent/:child ?x }", "property paths are not answered", 24, 25),
    ("SELECT ?x { :ada ^:parent ?x }", "property paths are not answered", 17, 18),
    ("SELECT ?x { :ada ?r ?x }", "expected a relation by name", 17, 19),
    ("SELECT ?x { :ada :parent ?x FILTER (?x != :bob) }", "FILTER NOT EXISTS only", 35, 36),
    ("SELECT ?x { :ada :parent ?x FILTER EXISTS { ?x :child :bob } }", "NOT EXISTS only", 35, 41),
    ("SELECT ?x { }", "expected a triple pattern", 10, 11),
    ("SELECT ?x { :ada :parent ?x", "expected a triple pattern, FILTER", 27, 28),
    ("SELECT ?x { y:ada :parent ?x }", "the prefix y: is not declared", 12, 17),
    ("SELECT ?x\n{ :ada :parent ?x . MINUS { ?x :child ?y } }", "MINUS is not answered", 30, 35),
    ("?x where adda parent ?x", "unknown entity 'adda'; did you mean", 9, 13),
    ("?x where ada parnt ?x", "unknown relation 'parnt'; did you mean 'parent'", 13, 18),
    ("?x where ada parent ?y", r"\?x stands in no link", 0, 2),
    ("?x where ada parent ?x and bob parent ?y", r"no chain of links joins \?y to \?x", 38, 40),
    ("?x where not ada parent ?x", r"\?x may be anything", 24, 26),
    ("?x where ada parent ?x and not ?x parent ?y and not ?x sibling ?y", r"\?y may be anything", 41, 43),
    ("?x where ada parent ?x or bob parent cid", r"\?x may be anything", 20, 22),
]


@pytest.mark.parametrize(("text", "message", "start", "end"), REFUSED)
def test_what_cannot_be_answered_is_pointed_at(text, message, start, end, family):
    with pytest.raises(PointedError, match=message) as raised:
        plan(parse(text), family)
    line, pointer = raised.value.pointer.splitlines()
    line_start = text.rfind("\n", 0, start) + 1
    assert line == "  " + text[line_start:].partition("\n")[0]
    assert (pointer.index("^") - 2, len(pointer) - 2) == (start - line_start, end - line_start)
    assert isinstance(raised.value, PointedNameError) == bool(re.match("unknown (entity|relation)", message))


def test_a_question_has_an_end(family):
    with pytest.raises(QuestionError, match="characters; ask one of 10,000 at most"):
        parse("?x where " + "a" * LONGEST)
    many = " and ".join(["ada parent ?x"] * (MOST_LINKS + 1))
    with pytest.raises(PointedError, match="more than 32 links"):
        plan(parse(f"?x where {many}"), family)


def test_what_the_graph_says_comes_first_with_its_reasons(asker):
    found = asker.ask("?y where 'Ada Lovelace' parent ?x and ?x parent ?y", k=3)
    assert (found.probabilities, found.t_norm, found.threshold) == ("calibrated", "product", 1e-3)
    assert [(a.rank, a.name, a.probability, a.known) for a in found.answers[:2]] == [
        (1, "dan", 1.0, True),
        (2, "eve", 1.0, True),
    ]
    first = found.answers[0]
    assert first.values == {"x": "bob"}
    assert [(x.head, x.relation, x.tail, x.probability, x.known, x.negated) for x in first.links] == [
        ("Ada Lovelace", "parent", "bob", 1.0, True, False),
        ("bob", "parent", "dan", 1.0, True, False),
    ]
    third = found.answers[2]
    assert not third.known
    assert 0 < third.probability < 1
    assert any(not x.known for x in third.links)


def test_new_answers_need_a_predicted_link(asker):
    found = asker.ask("?y where ada parent ?x and ?x parent ?y", known="exclude").answers
    assert found
    assert not {a.name for a in found} & {"dan", "eve"}
    assert all(any(not x.known and not x.negated for x in a.links) for a in found)


def test_not_is_the_rest_to_one(asker):
    question = "?x where ada parent ?x and not ?x sibling cid"
    found = {a.name: a for a in asker.ask(question, k=8).answers}
    (negated,) = [x for x in found["cid"].links if x.negated] or [None]
    assert "bob" not in found or found["bob"].probability < 0.5  # who is a sibling
    assert found["cid"].known
    assert negated is None or found["cid"].probability == pytest.approx(1 - negated.probability)


def test_links_have_the_probabilities_that_predict_gives(asker, run):
    predicted = {a.name: a for a in Predictor(run).predict(head="bob", relation="parent", k=8)}
    for answer in Asker(run, types="any").ask("?x where bob parent ?x", k=8).answers:
        expected = 1.0 if predicted[answer.name].known else predicted[answer.name].probability
        assert answer.probability == pytest.approx(expected, rel=1e-4)
    heads = {a.name: a for a in Predictor(run).predict(tail="dan", relation="parent", k=8)}
    for answer in Asker(run, types="any").ask("?x where ?x parent dan", k=8).answers:
        expected = 1.0 if heads[answer.name].known else heads[answer.name].probability
        assert answer.probability == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("threshold", [0.0, 1e-3, 0.1])
def test_calibrated_probabilities_are_those_of_all_log_odds(asker, run, threshold):
    dataset, scorer = run.dataset, run.scorer
    heads, relations = dataset.questions("train")[:, :2].unbind(1)
    calibration = Predictor(run).calibration
    found = link_probabilities(
        scorer, heads, relations, dataset.known, calibration, 1.0, dataset.irreflexive, threshold
    )
    scores = scorer.scores(heads, relations)
    known = marked(dataset.known, heads, relations, scores)
    none = loops(dataset.irreflexive, heads, relations, scores)
    expected = calibration.probability(log_odds(scores, known | none), relations).nan_to_num(0)
    expected = expected.masked_fill(none | (expected < threshold), 0).masked_fill(known, 1)
    near = (expected - threshold).abs() < 1e-5
    assert torch.allclose(found[~near], expected[~near], atol=1e-5)


def test_without_a_calibration_a_softmax_times_the_known_answers(run):
    scorer, known = run.scorer, run.dataset.known
    heads, relations = torch.tensor([0, 3]), torch.tensor([0, 0])
    found = link_probabilities(scorer, heads, relations, known)
    shares = scorer.scores(heads, relations).softmax(1)
    expected = (shares * torch.tensor([[2.0], [1.0]])).clamp(max=1)
    expected[0, [1, 2]] = 1  # Ada's children are known; Dan has none
    assert torch.allclose(found, expected)
    bare = Asker(replace(run, elsewhere=True)).ask("?x where ada parent ?x")
    assert bare.probabilities == "softmax"
    with pytest.raises(QuestionError, match="has no calibration; 'modulekge calibrate"):
        Asker(replace(run, elsewhere=True), "calibrated").ask("?x where ada parent ?x")


def test_rows_are_worked_out_once_and_forgotten_when_there_are_too_many():
    asked = []

    def chances(heads, relations):
        asked.append((int(relations[0]), heads.tolist()))
        return torch.eye(50)[heads] * 0.5

    rows = ScoredRows(chances, 50, torch.device("cpu"), at_once=4, most_bytes=2000)
    heads = torch.tensor([3, 1, 4, 1, 5, 9])
    for _ in range(2):
        found = rows.entries(0, heads)
        assert found.columns.tolist() == heads.tolist()
        assert found.rows.tolist() == list(range(6))
        assert set(found.values.tolist()) == {0.5}
    assert asked == [(0, [1, 3, 4, 5]), (0, [9])]
    for relation in (1, 2, 3):
        rows.entries(relation, heads)
    rows.entries(0, heads)
    assert [relation for relation, _ in asked].count(0) == 4
    assert rows.size < 4000
    few = ScoredRows(chances, 50, torch.device("cpu"), at_once=4, most_scores=100)
    with pytest.raises(QuestionError, match="more than 2 rows of probabilities would have to be worked out"):
        few.entries(0, heads)
    few.begin()
    assert len(few.entries(0, heads[:2]).values) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "ask for at least one answer"),
        ({"k": 9}, "the graph has 8 entities"),
        ({"t_norm": "produkt"}, "unknown t-norm 'produkt'; did you mean product"),
    ],
)
def test_choices_that_there_are_not(run, options, message):
    with pytest.raises(ModulekgeError, match=message):
        ask(run, "?x where ada parent ?x", **options)


def test_t_norms_differ_where_two_links_are_predicted(run):
    chances = {}
    for name in ("product", "godel", "lukasiewicz"):
        answers = ask(run, "?y where ada sibling ?x and ?x parent ?y", k=8, t_norm=name, types="any").answers
        chances[name] = {a.name: a.probability for a in answers}
    shared = set.intersection(*map(set, chances.values()))
    for name in shared:
        low, middle, high = (chances[norm][name] for norm in ("lukasiewicz", "product", "godel"))
        assert low - 1e-6 <= middle <= high + 1e-6


@pytest.mark.parametrize(
    "question",
    [
        "?y where ada parent ?x and ?x parent ?y",
        "?y where bob sibling ?y or dan child ?y",
        "?y where ?y parent ?x and ?x sibling ?z and not ?y child ?w",
    ],
)
def test_the_best_answers_are_the_first_of_more(question, asker):
    every = asker.ask(question, k=8)
    for k in range(1, 8):
        assert asker.ask(question, k=k).answers == every.answers[:k]
