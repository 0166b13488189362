import torch

from modulekge.data.dataset import Dataset
from modulekge.data.statistics import categories, statistics_of
from modulekge.data.vocabulary import Vocabulary


def graph(train, valid, test, n=8, r=4):
    names = tuple(f"e{i}" for i in range(n)), tuple(f"r{i}" for i in range(r))
    triples = (torch.tensor(x, dtype=torch.int64).reshape(-1, 3) for x in (train, valid, test))
    return Dataset("g", Vocabulary("entity", names[0]), Vocabulary("relation", names[1]), *triples)


def test_counts():
    found = statistics_of(
        graph(
            train=[(0, 0, 1), (1, 1, 0), (2, 2, 3), (2, 2, 3), (4, 0, 4)],
            valid=[(0, 0, 5), (0, 0, 1)],
            test=[(1, 0, 0), (0, 1, 1), (2, 0, 3), (6, 0, 7), (3, 0, 4)],
        )
    )
    assert found.duplicates == {"train": 1, "valid": 0, "test": 0}
    assert found.self_loops == {"train": 1, "valid": 0, "test": 0}
    assert found.shared_with_train == {"valid": 1, "test": 0}
    assert found.unseen_entities == {"valid": 1, "test": 2}
    assert found.unseen_triples == {"valid": 1, "test": 1}
    assert found.leaks == {
        "reverse, same relation": 2,  # (1, 0, 0) of (0, 0, 1), and (0, 1, 1) of (1, 1, 0)
        "reverse, other relation": 0,
        "same pair, other relation": 3,  # of (1, 1, 0), of (0, 0, 1), of (2, 2, 3)
        "any of these": 3,
    }


def test_a_repeated_triple_is_no_second_answer():
    row = statistics_of(graph([(0, 0, 1)] * 3 + [(0, 0, 2)], [], [])).per_relation[0]
    assert (row.tails_per_head, row.heads_per_tail) == (2.0, 1.0)


def test_categories():
    one_one = [(0, 0, 1), (1, 0, 2)]
    one_many = [(0, 1, i) for i in range(1, 5)]
    many_one = [(i, 2, 0) for i in range(1, 5)]
    many_many = [(i, 3, j) for i in range(3) for j in range(3, 6)]
    g = graph(one_one + one_many + many_one + many_many, [], [])
    assert categories(g) == ("1-1", "1-N", "N-1", "N-N")
