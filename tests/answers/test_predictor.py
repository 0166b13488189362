import pytest

from modulekge.answers.predictor import Predictor, predict
from modulekge.answers.questions import Question
from modulekge.errors import ModulekgeError
from modulekge.run.train import train

SETTINGS = {
    "model.k": 8,
    "model.scalar_scale": 0.1,
    "train.epochs": 60,
    "train.batch": 8,
    "regularizer.weight": 0.0,
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory, family):
    return Predictor(train(family, "ModulE-HH", SETTINGS, tmp_path_factory.mktemp("runs") / "run"))


def test_tails_and_heads_by_name_and_label(asked):
    tails = asked.predict(head="ada lovelace", relation="parent", k=2)
    assert {a.name for a in tails} == {"bob", "cid"}
    assert all(a.known for a in tails)
    heads = asked.predict(tail="bob", relation="parent", k=1)
    assert (heads[0].name, heads[0].label, heads[0].known) == ("ada", "Ada Lovelace", True)


def test_a_question_that_makes_little_sense_is_doubted(tmp_path):
    """Twenty-five countries with a capital each; a capital has none."""
    facts = [(f"land{i}", "capital", f"city{i}") for i in range(25)]
    facts += [(f"land{i}", "borders", f"land{(i + 1) % 25}") for i in range(25)]
    settings = {"model.k": 4, "train.epochs": 1, "train.batch": 8}
    held = {"valid": [("land0", "borders", "land5")], "test": [("land1", "borders", "land6")]}
    asked = Predictor(train({"train": facts, **held}, "DistMult", settings, tmp_path / "run"))
    (odd,) = asked.doubts(Question("city3", "borders", None))
    assert odd.startswith("nothing like 'city3' stands on this side of 'borders'")
    (known,) = asked.doubts(Question("land3", "capital", None))
    assert known.startswith("'capital' has one answer at most in this graph, and 'land3' has it")
    assert asked.doubts(Question("land3", "borders", None)) == []
    assert asked.doubts(Question("land3", None, "land4")) == []


def test_answers_are_ranked_by_score_and_facts_of_all_splits_are_known(asked):
    answers = asked.predict(head="fay", relation="parent", k=8)
    assert len(answers) == 8
    assert [a.rank for a in answers] == list(range(1, 9))
    assert [a.score for a in answers] == sorted((a.score for a in answers), reverse=True)
    assert {a.name: a.split for a in answers if a.known} == {"gil": "valid", "hal": "train"}
    heads = asked.predict(tail="gil", relation="parent", k=8)
    assert {a.name: a.split for a in heads if a.known} == {"fay": "valid"}


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"head": "adda", "relation": "parent"}, "unknown entity 'adda'; did you mean"),
        ({"head": "ada", "relation": "parnt"}, "unknown relation 'parnt'; did you mean 'parent'"),
        (
            {"head": "ada", "tail": "bob", "relation": "parent"},
            "leave out exactly one of head, relation and tail",
        ),
        ({"relation": "parent"}, "leave out exactly one of head, relation and tail"),
        ({"head": "ada"}, "leave out exactly one"),
        ({"head": "ada", "relation": "parent", "k": 0}, "at least one answer"),
        ({"head": "ada", "relation": "parent", "k": 9}, "k = 9: the graph has 8 entities; ask for 8 at most"),
        ({"head": "ada", "tail": "bob", "k": 4}, "k = 4: the graph has 3 relations"),
    ],
)
def test_questions_that_cannot_be_answered(asked, question, message):
    with pytest.raises(ModulekgeError, match=message):
        predict(asked.run, **question)
