"""Relations, many questions at once, new links, triples of files, answer sets; of every kind of model."""

from collections import Counter
from dataclasses import replace

import pytest
import torch

from modulekge.answers import links as links_module
from modulekge.answers import predictor as predictor_module
from modulekge.answers.predictor import Predictor
from modulekge.answers.questions import Question
from modulekge.answers.triples import NamedTriples
from modulekge.config import make_config
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import DataError, ModulekgeError, QuestionError, RunError
from modulekge.evaluation.evaluate import rank
from modulekge.evaluation.odds import log_odds, marked
from modulekge.models.embedding import Embedding
from modulekge.models.spec import MODELS
from modulekge.run.calibrate import calibrate
from modulekge.run.folder import RunFolder
from modulekge.run.run import Run

N, R = 30, 3


def graph() -> Dataset:
    """Relation r0 at random, r1 with one tail for each head and no loops, r2 too rare to say anything."""
    draw = torch.Generator().manual_seed(1)
    codes = torch.randperm(N * N, generator=draw)[:120]
    some = torch.stack([codes // N, torch.zeros(120, dtype=torch.long), codes % N], 1)
    heads = torch.arange(24)
    single = torch.stack([heads, torch.ones(24, dtype=torch.long), (heads * 7 + 3) % N], 1)
    rare = torch.tensor([[0, 2, 1], [2, 2, 3]])
    triples = torch.cat([some, single, rare])[torch.randperm(146, generator=draw)]
    names = tuple(f"e{i}" for i in range(N)), ("r0", "r1", "r2")
    return Dataset(
        "graph",
        Vocabulary("entity", names[0]),
        Vocabulary("relation", names[1]),
        *triples.split([90, 30, 26]),
    )


def asked_run(path, spec="ComplEx", tied=False, bias=False) -> Predictor:
    """A run of a model as it is drawn: what is asked here does not depend on training."""
    dataset = graph()
    model = Embedding(MODELS[spec], N, 2 * R, 4, tied, bias).draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    config = make_config([{"model": {"name": spec, "k": 4}}])
    return Predictor(Run(RunFolder.create(path / "run", config, dataset), config, dataset, model))


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """With lines that rise, which those of a model that knows nothing need not."""
    found = asked_run(tmp_path_factory.mktemp("asked"))
    made = calibrate(found.run)
    own = {r: replace(line, slope=1.5, offset=-0.5) for r, line in made.own.items()}
    found.run.folder.save_calibration(replace(made, together=replace(made.together, slope=1.0), own=own))
    return found


def test_relations_between_two(asked):
    answers = asked.predict(head="e0", tail="e1")
    assert {a.name: a.split for a in answers}["r2"] is not None
    assert sorted(a.name for a in answers) == ["r0", "r1", "r2"]  # forward ones, and no more than there are
    for a in answers:
        (link,) = asked.score([("e0", a.name, "e1")])
        assert link.score == pytest.approx(a.score, abs=1e-4)


@pytest.mark.parametrize(
    ("spec", "tied", "bias"), [("ComplEx", False, False), ("RotatE", True, True), ("HAKE", False, True)]
)
def test_many_questions_at_once_are_answered_like_each_alone(spec, tied, bias, tmp_path, monkeypatch):
    found = asked_run(tmp_path, spec, tied, bias)
    calibrate(found.run)
    questions = [Question(f"e{i}", "r0") for i in range(5)] + [
        Question(None, "r1", "e4"),
        Question("e1", None, "e2"),
    ]
    questions.insert(1, Question("e3", None, "e3"))
    alone = [found.predict(head=q.head, relation=q.relation, tail=q.tail, k=3) for q in questions]
    for chunk in (1, 4, 100):
        monkeypatch.setattr(predictor_module, "questions_at_once", lambda *_, size=chunk: size)
        together = Predictor(found.run).predict_many(questions, 3)
        for one, other in zip(alone, together, strict=True):
            assert [(a.name, a.split) for a in one] == [(a.name, a.split) for a in other]
            assert [a.score for a in one] == pytest.approx([a.score for a in other], abs=1e-4)
    assert found.predict_many([]) == []


def test_what_is_known_can_be_left_out(asked):
    marked_ = asked.predict(head="e3", relation="r0", k=N)
    new = asked.predict(head="e3", relation="r0", k=N, known="exclude")
    assert [a.name for a in new] == [a.name for a in marked_ if not a.known]
    assert [a.rank for a in new] == list(range(1, len(new) + 1))
    assert 0 < len(new) < N


def test_nothing_answers_for_itself_where_no_fact_is_a_loop(asked):
    dataset = asked.run.dataset
    for i, name in enumerate(dataset.relations.names):
        facts = [t for split in ("train", "valid", "test") for t in dataset[split].tolist() if t[1] == i]
        irreflexive = len(facts) >= 20 and all(h != t for h, _, t in facts)
        assert bool(dataset.irreflexive[i]) == bool(dataset.irreflexive[i + 3]) == irreflexive
        tails = [a.name for a in asked.predict(head="e3", relation=name, k=N)]
        heads = [a.name for a in asked.predict(tail="e3", relation=name, k=N)]
        assert ("e3" in tails) == ("e3" in heads) == (not irreflexive)
        (link,) = asked.score([("e3", name, "e3")])
        assert (link.probability is None) == irreflexive or link.split == "train"
    assert 0 < dataset.irreflexive.sum() < 6


def test_probabilities_rise_with_scores_and_facts_of_train_have_none(asked):
    answers = asked.predict(head="e3", relation="r0", k=N)
    chances = [a.probability for a in answers if a.split is None]
    assert chances == sorted(chances, reverse=True)
    assert all((a.probability is None) == (a.split == "train") for a in answers)


def by_hand(asked, relations) -> list[tuple[float, tuple[int, int, int]]]:
    """Every new triple with its probability, one question after another."""
    dataset, model, found = asked.run.dataset, asked.run.model, []
    links = asked.calibration.links
    for r in relations:
        facts = [t for s in ("train", "valid", "test") for t in dataset[s].tolist() if t[1] == r]
        heads, tails = [h for h, _, _ in facts], [t for _, _, t in facts]
        once = [len(facts) >= 20 and len(set(side)) == len(side) for side in (heads, tails)]
        for h in range(N):
            question = torch.tensor([h]), torch.tensor([r])
            scores = model(*question).detach()
            closed = marked(dataset.known, *question, scores)
            closed[0, h] |= len(facts) >= 20 and all(a != c for a, _, c in facts)
            p = asked.calibration.probability(log_odds(scores, closed), question[1])[0]
            answers = heads.count(h)
            share = links.own[r][min(answers.bit_length(), 6)]  # every entity is a head of each relation
            chances = torch.sigmoid(links.slope * torch.logit(share * p) + links.offset)
            for t in range(N):
                second = (once[0] and h in heads) or (once[1] and t in tails)
                if not (closed[0, t] or second):
                    found.append((float(chances[t]), (h, r, t)))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("chunk", [1, 7, N])
def test_links_are_the_most_probable_new_triples(asked, chunk, monkeypatch):
    monkeypatch.setattr(links_module, "questions_at_once", lambda *_: chunk)
    names = asked.run.dataset.entities.names
    for relations in (None, ["r1"], ["r2", "r0", "r2"]):
        ids = [0, 1, 2] if relations is None else sorted({int(name[1]) for name in relations})
        expected = by_hand(asked, ids)[:40]
        seen = []
        found = asked.links(relations, 40, lambda chunks: (seen.append(c.heads) or c for c in chunks))
        assert [link.probability for link in found] == pytest.approx([p for p, _ in expected], abs=1e-5)
        same = {(link.head, link.relation, link.tail) for link in found}
        by_name = {(names[h], f"r{r}", names[t]) for _, (h, r, t) in expected}
        assert len(same & by_name) >= len(by_name) - 1  # the last may tie
        assert all(link.split is None for link in found)
        assert sum(seen) == N * len(ids)


@pytest.mark.parametrize("chunk", [1, 7, N])
def test_no_relation_fills_a_list_where_each_may_have_a_few(asked, chunk, monkeypatch):
    monkeypatch.setattr(links_module, "questions_at_once", lambda *_: chunk)
    every = asked.links(k=10_000)
    for few, k in ((1, 3), (4, 7), (4, 100)):
        found = asked.links(k=k, per_relation=few)
        assert max(Counter(link.relation for link in found).values()) <= few
        best = [p for r in range(3) for p in [x.probability for x in every if x.relation == f"r{r}"][:few]]
        assert [link.probability for link in found] == pytest.approx(sorted(best)[::-1][:k], abs=1e-6)
    assert asked.links("r1", 5) == asked.links(["r1"], 5)
    with pytest.raises(QuestionError, match="per_relation = 0: ask for at least one link"):
        asked.links(per_relation=0)


def test_a_relation_with_one_tail_for_each_head_gets_no_second_one_and_no_loop(asked):
    found = asked.links(["r1"], 10_000)
    held = {h for s in ("train", "valid", "test") for h, r, _ in asked.run.dataset[s].tolist() if r == 1}
    assert {link.head for link in found} == {f"e{i}" for i in range(N)} - {f"e{i}" for i in held}
    assert all(link.head != link.tail for link in found)
    assert len(found) < 10_000


@pytest.mark.parametrize(("spec", "tied", "bias"), [("ComplEx", False, False), ("TransE", True, True)])
def test_scored_triples_rank_as_in_an_evaluation(spec, tied, bias, tmp_path):
    found = asked_run(tmp_path, spec, tied, bias)
    dataset = found.run.dataset
    named = [(f"e{h}", f"r{r}", f"e{t}") for h, r, t in dataset.test.tolist()]
    scored = found.score(named)
    ranks = rank(found.run.scorer, dataset.questions("test"), dataset.known).rank("bottom").view(2, -1)
    assert [link.tail_rank for link in scored] == ranks[0].tolist()
    assert [link.head_rank for link in scored] == ranks[1].tolist()
    assert {link.split for link in scored} == {"test"}
    assert {link.probability for link in scored} == {None}  # not calibrated
    assert [(link.head, link.relation, link.tail) for link in scored] == named


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        (
            "t.tsv",
            "\nhead\trelation\ttail\ne0\tr0\te1\n\ne0\tr0\te99\n",
            "t.tsv:5: unknown entity 'e99'; did you",
        ),
        ("t.csv", 'e0,r0,e1\n"e0",r9,"e\n1"\n', "t.csv:2: unknown relation 'r9'; the graph has 3"),
        (
            "t.jsonl",
            '["e0", "r0", "e1"]\n\n["x", "r0", "e2"]\n',
            "t.jsonl:3: unknown entity 'x'; the graph has",
        ),
        ("t.nt", "<e0> <r0> <e1> .\n<e0> <r0> <e77> .\n", None),
    ],
)
def test_unknown_names_of_a_file_are_refused_by_place_or_left_out(
    asked, tmp_path, name, text, place, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / name
    path.write_text(text)
    if place is None:
        pytest.importorskip("pyoxigraph")
        path.write_text("<x:e0> <x:r0> <x:e1> .\n")
        place = "triple 1: unknown entity 'x:e0'"
        assert asked.score(NamedTriples.read(path), "skip") == []
    else:
        assert [link.tail for link in asked.score(NamedTriples.read(path), "skip")] == ["e1"]
    with pytest.raises(ModulekgeError) as caught:
        asked.score(NamedTriples.read(path))
    assert place in str(caught.value)


def test_unknown_names_without_a_file(asked):
    with pytest.raises(ModulekgeError, match="triple 2: unknown entity 'nobody'"):
        asked.score([("e0", "r0", "e1"), ("nobody", "r0", "e1")])
    assert asked.score([]) == []


def test_an_answer_set_is_every_new_answer_above_the_bar(asked):
    dataset, model = asked.run.dataset, asked.run.model
    for question, ids in (({"head": "e3"}, (3, 0)), ({"tail": "e5"}, (5, R))):
        for coverage in (0.2, 0.5, 0.8):
            found = asked.prediction_set(**question, relation="r0", coverage=coverage)
            heads, relations = (torch.tensor([i]) for i in ids)
            scores = model(heads, relations).detach()
            known = marked(dataset.known, heads, relations, scores)
            least, line = asked.calibration.least(ids[1], coverage)
            odds = log_odds(scores, known)[0]
            expected = {f"e{i}" for i in range(N) if not known[0, i] and odds[i] >= least}
            assert {a.name for a in found.answers} == expected
            assert found.candidates == int((~known).sum())
            assert (found.triples, found.own) == (line.triples, line is not asked.calibration.together)


def test_an_answer_set_may_have_to_be_everything_and_has_always_one(asked, tmp_path):
    found = asked.prediction_set(head="e3", relation="r0", coverage=0.999)
    assert found.everything
    assert len(found.answers) == found.candidates
    sure = asked_run(tmp_path)
    line = replace(asked.calibration.together, margins=(1e5,) * 100)
    sure.run.folder.save_calibration(replace(asked.calibration, together=line, own={}))
    found = sure.prediction_set(head="e3", relation="r0", coverage=0.5)
    assert len(found.answers) == 1
    assert found.answers[0].name == sure.predict(head="e3", relation="r0", k=1, known="exclude")[0].name


def test_what_needs_a_calibration_says_so(tmp_path):
    found = asked_run(tmp_path)
    assert found.predict(head="e0", relation="r0", k=1)[0].probability is None
    for ask in (lambda: found.links(k=3), lambda: found.prediction_set(head="e0", relation="r0")):
        with pytest.raises(RunError, match="no calibration yet; 'modulekge calibrate"):
            ask()


def test_questions_that_are_none(asked, tmp_path):
    for bad in ({}, {"head": "e0"}, {"head": "e0", "relation": "r0", "tail": "e1"}):
        with pytest.raises(QuestionError, match="leave out exactly one"):
            Question(**bad)
    with pytest.raises(QuestionError, match="at least one link"):
        asked.links(k=0)
    with pytest.raises(QuestionError, match="between 0 and 1"):
        asked.prediction_set(head="e0", relation="r0", coverage=90.0)
    with pytest.raises(DataError, match="absent"):
        NamedTriples.read(tmp_path / "absent.tsv")
