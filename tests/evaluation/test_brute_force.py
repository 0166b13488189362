"""A whole report against loops over any graph and any scores: ties, NaN, infinities, repeated facts."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from modulekge.data.benchmarks import SPLITS
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.evaluation.evaluate import evaluate
from modulekge.evaluation.metrics import HITS
from modulekge.evaluation.ranks import TIES
from modulekge.models.scorer import Scorer

VALUES = st.sampled_from([0.0, 1.0, 1.0, 2.0, -1.0, 1e-45, math.inf, -math.inf, math.nan])


class Tabled(Scorer):
    """A scorer whose scores stand in a table (questions, entities): all that an evaluation sees of one."""

    name, device = "Tabled", torch.device("cpu")

    def __init__(self, dataset, table):
        self.table, self.relations, self.entities = (
            table,
            dataset.n_relations_with_inverses,
            len(dataset.entities),
        )

    @property
    def n_entities(self):
        return self.entities

    @property
    def n_relations(self):
        return self.relations

    def scores(self, heads, relations):
        return self.table[heads * self.relations + relations]

    def scores_of(self, heads, relations, candidates):
        return self.scores(heads, relations).gather(1, candidates)


def graph(entities, relations, splits):
    names = [f"e{i}" for i in range(entities)], [f"r{i}" for i in range(relations)]
    vocabularies = (Vocabulary(kind, tuple(n)) for kind, n in zip(("entity", "relation"), names, strict=True))
    triples = [torch.tensor(split, dtype=torch.int64).reshape(-1, 3) for split in splits]
    return Dataset("any", *vocabularies, *triples)


@st.composite
def problems(draw):
    entities, relations = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    ends = st.integers(0, entities - 1)
    triple = st.tuples(ends, st.integers(0, relations - 1), ends)
    splits = [draw(st.lists(triple, min_size=least, max_size=6)) for least in (1, 0, 1)]
    size = entities * 2 * relations * entities
    cells = draw(st.lists(VALUES, min_size=size, max_size=size))
    return entities, relations, splits, cells


def rank_by_hand(row, answer, known, ties):
    """1 + the rivals before the answer, among the entities not known to answer; NaN stands before all."""
    rivals = [row[e] for e in range(len(row)) if e != answer and e not in known]
    above = sum(not score <= row[answer] for score in rivals)
    tied = sum(score == row[answer] for score in rivals)
    return 1 + above + {"bottom": tied, "top": 0, "mean": tied / 2}[ties]


def ranks_by_hand(dataset, table, ties):
    """The ranks of the tail, then of the head, of each test triple."""
    facts = [tuple(t) for split in SPLITS for t in dataset[split].tolist()]
    tails, heads = [], []
    for h, r, t in dataset.test.tolist():
        row = table[h * dataset.n_relations_with_inverses + r].tolist()
        tails.append(rank_by_hand(row, t, {c for a, b, c in facts if (a, b) == (h, r)}, ties))
        row = table[t * dataset.n_relations_with_inverses + r + len(dataset.relations)].tolist()
        heads.append(rank_by_hand(row, h, {a for a, b, c in facts if (b, c) == (r, t)}, ties))
    return tails, heads


def metrics_by_hand(ranks):
    found = {"mrr": sum(1 / r for r in ranks), **{f"hits@{k}": sum(r <= k for r in ranks) for k in HITS}}
    return {name: pytest.approx(total / len(ranks)) for name, total in {**found, "mr": sum(ranks)}.items()}


@settings(max_examples=50)
@given(problems())
def test_a_report_is_what_loops_make(problem):
    entities, relations, splits, cells = problem
    dataset, table = graph(entities, relations, splits), torch.tensor(cells).reshape(-1, entities)
    report = evaluate(Tabled(dataset, table), dataset, "test")
    for ties in TIES:
        tails, heads = ranks_by_hand(dataset, table, ties)
        assert report.ties[ties] == metrics_by_hand(tails + heads)
    tails, heads = ranks_by_hand(dataset, table, "bottom")
    assert (report.both, report.tail, report.head) == tuple(
        map(metrics_by_hand, (tails + heads, tails, heads))
    )
    for part in report.relations:
        places = [i for i, (_, r, _) in enumerate(dataset.test.tolist()) if f"r{r}" == part.name]
        assert part.both == metrics_by_hand([side[i] for side in (tails, heads) for i in places])
    in_train = {e for h, _, t in dataset.train.tolist() for e in (h, t)}
    places = [i for i, (h, _, t) in enumerate(dataset.test.tolist()) if {h, t} <= in_train]
    assert report.unseen_triples == len(dataset.test) - len(places)
    if places:
        assert report.without_unseen == metrics_by_hand([side[i] for side in (tails, heads) for i in places])


@settings(max_examples=50)
@given(st.integers(2, 30), VALUES)
def test_a_constant_scorer_gets_the_worst_rank(entities, value):
    """Whatever the constant: all other entities that are not known answers stand before the true one."""
    dataset = graph(entities, 1, [[(0, 0, 0)], [], [(0, 0, entities - 1)]])
    report = evaluate(Tabled(dataset, torch.full((2 * entities, entities), value)), dataset, "test")
    assert report.tail["mr"] == entities - 1  # entity 0 is a known answer
    assert report.head["mr"] == entities
