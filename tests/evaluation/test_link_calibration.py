"""Probabilities of links, where nobody says that a question misses an answer."""

import json
from collections import Counter

import pytest
import torch
from test_calibration import drawn, random_graph

from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.evaluation import link_calibration as module
from modulekge.evaluation.calibration import Calibration, calibrate
from modulekge.evaluation.link_calibration import degree_classes
from modulekge.evaluation.odds import log_odds, loops, marked


def test_classes_count_answers_in_powers_of_two():
    answers = torch.tensor([0, 1, 2, 3, 4, 7, 8, 31, 32, 10**6, 0, 5])
    fitting = torch.tensor([True] * 10 + [False] * 2)
    assert degree_classes(answers, fitting).tolist() == [0, 1, 2, 2, 3, 3, 4, 5, 6, 6, 7, 3]


def test_shares_are_those_of_heads_that_valid_answers():
    dataset = random_graph()
    found = calibrate(drawn(dataset).scorer(), dataset).links
    all_of, open_of = Counter(), Counter()
    for relation in range(2):
        known = Counter(h for h, r, _ in dataset.train.tolist() if r == relation)
        missed = {h for h, r, _ in dataset.valid.tolist() if r == relation}
        for head in range(40):
            place = relation, min(known[head].bit_length(), 6)
            all_of[place] += 1
            open_of[place] += head in missed
    overall = open_of.total() / all_of.total()
    for relation in range(2):
        heads = sum(n for (r, _), n in all_of.items() if r == relation)
        opened = sum(n for (r, _), n in open_of.items() if r == relation)
        own = (opened + 2 * overall) / (heads + 2)
        for of_heads in range(7):
            place = relation, of_heads
            share = (open_of[place] + 2 * own) / (all_of[place] + 2)
            assert found.own[relation][of_heads] == pytest.approx(share, rel=1e-6)


def stated(dataset, found, scorer) -> float:
    """How many links are missing, by the probabilities of all of them."""
    total = 0.0
    every = torch.arange(len(dataset.entities))
    for relation in range(len(dataset.relations)):
        asked = torch.full_like(every, relation)
        scores = scorer.scores(every, asked).detach()
        others = torch.cat([dataset.questions("train"), dataset.questions("test")])
        known = type(dataset.known).of(others, dataset.n_relations_with_inverses)
        closed = marked(known, every, asked, scores) | loops(dataset.irreflexive, every, asked, scores)
        where = degree_classes(
            dataset.known_in_train.counts(every, asked), torch.ones(len(every), dtype=torch.bool)
        )
        chances = found.link_probability(log_odds(scores, closed), asked, where)
        total += float(chances[~closed].nan_to_num(0).sum())
    return total


def test_as_many_links_are_stated_as_valid_holds():
    dataset = random_graph()
    scorer = drawn(dataset).scorer()
    assert stated(dataset, calibrate(scorer, dataset), scorer) == pytest.approx(120, rel=0.1)


def test_a_sample_of_questions_says_about_the_same(monkeypatch):
    dataset = random_graph(sizes=(300, 40, 160))
    scorer = drawn(dataset).scorer()
    monkeypatch.setattr(module, "most_questions", lambda *_: 40)
    assert stated(dataset, calibrate(scorer, dataset), scorer) == pytest.approx(40, rel=0.3)


def test_a_relation_that_few_have_gives_few_links():
    draw = torch.Generator().manual_seed(0)
    count = 200
    friends = torch.stack(
        [torch.arange(count), torch.zeros(count).long(), torch.randperm(count, generator=draw)], 1
    )
    prizes = torch.tensor([[i, 1, 190 + i % 10] for i in range(40)])
    names = tuple(f"e{i}" for i in range(count))
    facts = torch.cat([friends, prizes])[torch.randperm(count + 40, generator=draw)]
    dataset = Dataset(
        "prizes",
        Vocabulary("entity", names),
        Vocabulary("relation", ("friend", "prize")),
        *facts.split([160, 80, 0]),
    )
    found = calibrate(drawn(dataset, scale=3.0).scorer(), dataset)
    sure = torch.tensor([[5.0, -5.0]])
    _, prize = (found.link_probability(sure, torch.tensor([r]), torch.tensor([0]))[0, 0] for r in (0, 1))
    assert prize < 0.5 * found.probability(sure, torch.tensor([1]))[0, 0]


def test_a_calibration_without_it_gives_the_chance_of_the_tail():
    dataset = random_graph()
    found = calibrate(drawn(dataset).scorer(), dataset)
    fields = {key: value for key, value in json.loads(found.to_json()).items() if key != "links"}
    before = Calibration.from_fields(fields)
    odds, relations = torch.tensor([[1.0, -2.0]]), torch.tensor([0])
    assert torch.equal(
        before.link_probability(odds, relations, torch.tensor([0])), before.probability(odds, relations)
    )
    assert Calibration.from_fields(json.loads(found.to_json())) == found
    fields = json.loads(found.to_json())
    fields["links"]["together"].pop()
    with pytest.raises(ValueError, match="expected 8 shares"):
        Calibration.from_fields(fields)


def test_where_valid_answers_every_question_no_other_is_asked():
    names = tuple(f"e{i}" for i in range(6))
    ring = torch.tensor([[i, 0, (i + 1) % 6] for i in range(6)])
    other = torch.tensor([[i, 0, (i + 2) % 6] for i in range(6)])
    parts = Vocabulary("entity", names), Vocabulary("relation", ("next",))
    found = calibrate(drawn(dataset := Dataset("ring", *parts, ring, other, ring[:0])).scorer(), dataset)
    assert found.links.own[0][1] == pytest.approx(1.0)
