"""Weights of a mixture: chosen by relation where there are questions, by all where there are few."""

import pytest
import torch

from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import DataError
from modulekge.evaluation.evaluate import rank
from modulekge.evaluation.mixing import choose, fit, weightings
from modulekge.models.mixture import Mixture
from modulekge.models.scorer import Scorer

ENTITIES, RELATIONS = 20, 2


class Table(Scorer):
    """Scores that stand in a table, by head and relation."""

    name = "table"

    def __init__(self, table):
        self.table, self.device = table, table.device
        self.n_relations, self.n_entities = table.shape[1], table.shape[2]

    def scores(self, heads, relations):
        return self.table[heads, relations]

    def scores_of(self, heads, relations, candidates):
        return self.scores(heads, relations).gather(1, candidates)


def graph(valid=200):
    draw = torch.Generator().manual_seed(0)
    triples = torch.stack(
        [torch.randint(n, (valid + 50,), generator=draw) for n in (ENTITIES, RELATIONS, ENTITIES)], 1
    ).unique(dim=0)
    triples = triples[torch.randperm(len(triples), generator=draw)]
    names = [tuple(map(str, range(n))) for n in (ENTITIES, RELATIONS)]
    vocabularies = Vocabulary("entity", names[0]), Vocabulary("relation", names[1])
    return Dataset("random", *vocabularies, triples[valid:], triples[:valid], triples[:0])


def knowing(dataset, relations, seed):
    """A scorer that knows the answers to some relations, and guesses at others."""
    draw = torch.Generator().manual_seed(seed)
    table = torch.rand(ENTITIES, 2 * RELATIONS, ENTITIES, generator=draw)
    for h, r, t in dataset.questions("valid").tolist():
        if r in relations:
            table[h, r, t] += 0.8
    return Table(table)


def mrr(scorer, dataset):
    return float((1 / rank(scorer, dataset.questions("valid"), dataset.known).rank("bottom")).mean())


def test_each_relation_takes_the_member_that_knows_it():
    dataset = graph()
    scorers = [knowing(dataset, (0, 2), 1), knowing(dataset, (1, 3), 2)]
    found = fit(scorers, dataset)
    shares = found.mix.shares
    assert shares[[0, 2], 0].min() > shares[[1, 3], 0].max()
    torch.testing.assert_close(shares.sum(1), torch.ones(2 * RELATIONS))
    assert found.helps and found.mixed > max(found.alone) + 0.1
    mixed = mrr(Mixture(scorers, found.mix), dataset)
    assert mixed > max(mrr(scorer, dataset) for scorer in scorers) + 0.1
    assert found.fitted_on + found.checked_on == 2 * len(dataset.valid)


def test_what_does_not_help_leaves_the_best_member_alone():
    dataset = graph()
    best, worst = knowing(dataset, (0, 1, 2, 3), 1), knowing(dataset, (), 2)
    found = fit([worst, best], dataset)
    assert not found.helps and found.best == 1
    assert found.mix.shares.tolist() == [[0.0, 1.0]] * 2 * RELATIONS


def test_few_questions_follow_all():
    gains = torch.tensor([[1.0, 0.0]] * 60 + [[0.0, 1.0]] * 3)
    relations = torch.tensor([0] * 60 + [1] * 3)
    assert choose(gains, relations, 3).tolist() == [0, 0, 0]
    many = torch.cat([gains, gains[-1:].expand(90, -1)])
    relations = torch.cat([relations, torch.ones(90, dtype=torch.long)])
    assert choose(many, relations, 3).tolist() == [0, 1, 1]


@pytest.mark.parametrize("members", [1, 2, 3, 4, 6])
def test_weightings_are_shares_and_hold_every_member_alone(members):
    found = weightings(members)
    torch.testing.assert_close(found.sum(1), torch.ones(len(found)))
    assert (found >= 0).all() and len(found) <= 48
    assert all((found[:, m] == 1).sum() == 1 for m in range(members))


def test_without_valid_there_is_nothing_to_fit_on():
    dataset = graph(valid=0)
    with pytest.raises(DataError, match="valid"):
        fit([knowing(dataset, (), 1)] * 2, dataset)
