"""Questions that arrive together are answered together: one thread, a bounded queue, whole batches."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from modulekge.errors import ModulekgeError
from modulekge.wording import counted

Q = TypeVar("Q")
A = TypeVar("A")

_PATIENCE = 5.0  # seconds that the end of the batch under way is waited for; the thread is a daemon


class BusyError(ModulekgeError):
    """More was asked than can wait, or the server is stopping; later it may be answered."""


@dataclass(frozen=True)
class BatchStats:
    """A batch that was answered: of how many questions, and how long it took."""

    size: int
    seconds: float


@dataclass(eq=False)
class Batcher(Generic[Q, A]):
    """One thread that takes what waits, at most so many at once, and answers it with one call.

    A question whose future was cancelled is dropped. Where a call fails, its questions are asked one by
    one, so that a bad one fails alone.

    >>> with Batcher(lambda numbers: [2 * n for n in numbers]) as double:
    ...     double.ask(21).result()
    42
    """

    answer: Callable[[Sequence[Q]], Sequence[A]]
    most: int = 64  # questions at once
    waiting: int = 1024  # questions that may wait
    size: Callable[[Q], int] = lambda question: 1  # how many questions one counts for
    watch: Callable[[BatchStats], None] = lambda taken: None

    _queue: deque[tuple[Q, "Future[A]"]] = field(default_factory=deque, init=False, repr=False)
    _changed: threading.Condition = field(default_factory=threading.Condition, init=False, repr=False)
    _queued: int = field(default=0, init=False)
    _closed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._work, name="modulekge-answers", daemon=True)
        self._thread.start()

    @property
    def queued(self) -> int:
        """How many questions wait."""
        return self._queued

    def ask(self, question: Q) -> "Future[A]":
        """Let a question wait for its answer."""
        future: Future[A] = Future()
        with self._changed:
            if self._closed:
                raise BusyError("the server is stopping; ask again when it is back")
            if self._queued and self._queued + self.size(question) > self.waiting:
                waiting = counted(self._queued, "question waits", "questions wait")
                raise BusyError(f"{waiting} already; ask again in a moment")
            self._queue.append((question, future))
            self._queued += self.size(question)
            self._changed.notify()
        return future

    def finish(self) -> None:
        """Take no more questions; the thread ends once those that wait are answered."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def close(self) -> None:
        """Answer the batch under way, refuse what waits, and end the thread."""
        with self._changed:
            self._closed = True
            refused = [future for _, future in self._queue]
            self._queue.clear()
            self._queued = 0
            self._changed.notify()
        for future in refused:
            if future.set_running_or_notify_cancel():
                future.set_exception(BusyError("the server is stopping; ask again when it is back"))
        self._thread.join(_PATIENCE)

    def __enter__(self) -> "Batcher[Q, A]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self) -> None:
        while batch := self._take():
            started = time.perf_counter()
            self._answer(batch)
            size = sum(self.size(question) for question, _ in batch)
            self.watch(BatchStats(size, time.perf_counter() - started))

    def _take(self) -> list[tuple[Q, "Future[A]"]]:
        """Wait for questions and return those that are answered together; none when closed."""
        batch: list[tuple[Q, Future[A]]] = []
        with self._changed:
            while not batch:
                while not self._queue:
                    if self._closed:
                        return []
                    self._changed.wait()
                total = 0
                while self._queue and (not batch or total + self.size(self._queue[0][0]) <= self.most):
                    question, future = self._queue.popleft()
                    self._queued -= self.size(question)
                    if future.set_running_or_notify_cancel():  # else nobody waits for it any more
                        batch.append((question, future))
                        total += self.size(question)
        return batch

    def _answer(self, batch: list[tuple[Q, "Future[A]"]]) -> None:
        questions = [question for question, _ in batch]
        try:
            answers = self.answer(questions)
            if len(answers) != len(questions):
                raise ValueError(f"{len(answers)} answers to {len(questions)} questions")
        except Exception as error:
            if len(batch) == 1:
                batch[0][1].set_exception(error)
                return
            for one in batch:
                self._answer([one])
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            future.set_result(answer)
