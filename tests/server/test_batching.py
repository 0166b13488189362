import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from modulekge.server.batching import Batcher, BusyError


class Held:
    """Doubles numbers once it is let go, and remembers what it was given."""

    def __init__(self):
        self.batches, self.go, self.busy = [], threading.Event(), threading.Event()

    def __call__(self, numbers):
        self.busy.set()
        assert self.go.wait(10)
        self.batches.append(list(numbers))
        if 13 in numbers:
            raise ValueError("thirteen")
        return [2 * n for n in numbers]


@pytest.fixture
def held():
    return Held()


def ask_behind(batcher, held, numbers):
    """Ask while the first question is being answered; return all futures."""
    first = batcher.ask(0)
    assert held.busy.wait(10)
    return [first, *(batcher.ask(n) for n in numbers)]


def test_what_arrives_together_is_answered_together(held):
    with Batcher(held, most=3) as batcher:
        futures = ask_behind(batcher, held, [1, 2, 3, 4])
        assert batcher.queued == 4
        held.go.set()
        assert [future.result(10) for future in futures] == [0, 2, 4, 6, 8]
        assert held.batches == [[0], [1, 2, 3], [4]]
        assert batcher.queued == 0


def test_a_bad_question_fails_alone(held):
    with Batcher(held) as batcher:
        futures = ask_behind(batcher, held, [1, 13, 2])
        held.go.set()
        assert [futures[i].result(10) for i in (0, 1, 3)] == [0, 2, 4]
        with pytest.raises(ValueError, match="thirteen"):
            futures[2].result(10)
        assert batcher.ask(5).result(10) == 10


def test_who_has_gone_is_not_answered(held):
    with Batcher(held) as batcher:
        futures = ask_behind(batcher, held, [1, 2])
        assert futures[1].cancel()
        held.go.set()
        assert futures[2].result(10) == 4
        assert held.batches == [[0], [2]]
        with pytest.raises(CancelledError):
            futures[1].result(10)


def test_no_more_wait_than_may_wait(held):
    with Batcher(held, waiting=2) as batcher:
        futures = ask_behind(batcher, held, [1, 2])
        with pytest.raises(BusyError, match="2 questions wait already; ask again"):
            batcher.ask(3)
        held.go.set()
        assert [future.result(10) for future in futures] == [0, 2, 4]
        assert batcher.ask(3).result(10) == 6


def test_a_question_may_count_for_many(held):
    with Batcher(held, most=10, size=lambda n: n) as batcher:
        futures = ask_behind(batcher, held, [4, 5, 6, 11, 1])
        held.go.set()
        assert [future.result(10) for future in futures] == [0, 8, 10, 12, 22, 2]
        assert held.batches == [[0], [4, 5], [6], [11], [1]]


def test_stopping_answers_what_is_under_way_and_refuses_the_rest(held):
    batcher = Batcher(held)
    futures = ask_behind(batcher, held, [1])
    with ThreadPoolExecutor() as pool:
        stopped = pool.submit(batcher.close)
        with pytest.raises(BusyError, match="stopping"):
            futures[1].result(10)
        held.go.set()
        assert futures[0].result(10) == 0
        stopped.result(10)
    with pytest.raises(BusyError, match="stopping"):
        batcher.ask(1)
    batcher.close()


def test_too_few_answers_are_an_error():
    with Batcher(lambda numbers: []) as batcher, pytest.raises(ValueError, match="0 answers to 1"):
        batcher.ask(1).result(10)


def test_many_threads_get_each_their_own_answer():
    taken = []
    batcher = Batcher(lambda numbers: [2 * n for n in numbers], most=16, watch=taken.append)
    with batcher, ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda n: batcher.ask(n).result(10), range(500)))
    assert answers == [2 * n for n in range(500)]
    assert sum(batch.size for batch in taken) == 500
    assert max(batch.size for batch in taken) <= 16
