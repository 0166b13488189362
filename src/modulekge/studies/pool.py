"""Processes that work beside this one, share its threads, and end with it, whatever ends it."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from typing import Any

import torch

SPAWN = get_context("spawn")
Work = Callable[..., Generator[Any, None, None]]


@contextmanager
def processes(
    work: Work, each: Sequence[tuple[Any, ...]], share: int, grace: float | None = None
) -> Iterator[list[BaseProcess]]:
    """Have a process go through what ``work`` yields for each of these arguments; wait for all at the end.

    Each has one of ``share`` shares of the threads. If this process fails, they end when they yield next;
    those that have not after ``grace`` seconds are ended.
    """
    over, threads = SPAWN.Event(), max(1, torch.get_num_threads() // share)
    started = [SPAWN.Process(target=_go, args=(over, threads, work, *own), daemon=True) for own in each]
    for process in started:
        process.start()
    try:
        yield list(started)
    except BaseException:
        over.set()
        raise
    finally:
        for process in started:
            process.join(grace)
            process.terminate()
            process.join()


def _go(over: Event, threads: int, work: Work, *own: Any) -> None:
    torch.set_num_threads(threads)
    first = parent_process()
    with suppress(KeyboardInterrupt), closing(work(*own)) as events:  # Ctrl-C reaches all of a terminal
        for _ in events:
            if over.is_set() or not (first and first.is_alive()):
                return
