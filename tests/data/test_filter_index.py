import torch
from hypothesis import given
from hypothesis import strategies as st

from modulekge.data.filter_index import FilterIndex

TRIPLES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=40)


@given(TRIPLES, st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=10))
def test_every_answer_once_and_nothing_else(triples, questions):
    ids = torch.tensor(triples, dtype=torch.int64).reshape(-1, 3)
    asked = torch.tensor(questions, dtype=torch.int64).reshape(-1, 2)
    rows, tails = FilterIndex.of(ids, 3).of_questions(*asked.unbind(1))
    found = list(zip(rows.tolist(), tails.tolist(), strict=True))
    expected = [(i, t) for i, q in enumerate(questions) for t in range(6) if (*q, t) in set(triples)]
    assert sorted(found) == expected


@given(TRIPLES, st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=10))
def test_among_says_which_tails_are_answers(triples, questions):
    ids = torch.tensor(triples, dtype=torch.int64).reshape(-1, 3)
    asked = torch.tensor(questions, dtype=torch.int64).reshape(-1, 2)
    tails = torch.tensor([5, 0, 3, 3, 9]).expand(len(asked), -1)
    found = FilterIndex.of(ids, 3).among(*asked.unbind(1), tails)
    assert found.tolist() == [[(*q, t) in set(triples) for t in (5, 0, 3, 3, 9)] for q in questions]
