"""Several cells: one after the other, or by processes that each take the next one."""

import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from math import inf
from multiprocessing import get_context, parent_process
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path
from queue import Empty

import torch

from modulekge.errors import RunError
from modulekge.studies.cell import Cell, run_cell
from modulekge.training.records import EpochProgress, EpochRecord

_LOOK = 0.5  # seconds from one look at whether the processes are still there to the next
_GRACE = 5.0  # seconds in which a process may end by itself

News = tuple[Cell, EpochProgress | EpochRecord | None]  # what happens to a cell; None: it has its result
Told = News | Exception | None  # by a process; None: it has ended


def run_cells(
    cells: Sequence[Cell], results: Path, runs: Path, workers: int = 1, minutes: float = inf
) -> Generator[News, None, None]:
    """Train cells, so many at a time, yielding what happens to each.

    After so many minutes each training ends with its epoch, and none is begun; the next call goes on. An
    error in one of them ends all.
    """
    until = time.time() + 60 * minutes
    workers = min(workers, len(cells))
    if workers <= 1:
        yield from _one_by_one(cells, results, runs, until)
        return
    with _processes(cells, results, runs, workers, until) as told:
        while workers:
            news = next(told)
            if news is None:
                workers -= 1
            elif isinstance(news, Exception):
                raise news
            else:
                yield news


def _one_by_one(
    cells: Iterable[Cell], results: Path, runs: Path, until: float
) -> Generator[News, None, None]:
    for cell in cells:
        if time.time() > until:
            return
        with closing(run_cell(cell, results, runs)) as events:
            for event in events:
                yield cell, event
                if isinstance(event, EpochRecord) and time.time() > until:
                    return
        yield cell, None


@contextmanager
def _processes(
    cells: Sequence[Cell], results: Path, runs: Path, count: int, until: float
) -> Iterator[Iterator[Told]]:
    """Have processes run the cells, and hear what they tell; at the end none of them is left."""
    context = get_context("spawn")
    waiting, told, over = context.Queue(), context.Queue(), context.Event()
    for cell in (*cells, *[None] * count):
        waiting.put(cell)
    threads = max(1, torch.get_num_threads() // count)
    processes = [
        context.Process(target=_work, args=(waiting, told, over, results, runs, until, threads), daemon=True)
        for _ in range(count)
    ]

    def hear() -> Iterator[Told]:
        while True:
            try:
                yield told.get(timeout=_LOOK)
            except Empty:
                if any(process.exitcode for process in processes):
                    raise RunError(
                        f"{runs}: a process ended without a word, perhaps for want of memory; what was kept "
                        "stays, and the same command goes on, with fewer workers if need be"
                    ) from None

    for process in processes:
        process.start()
    try:
        yield hear()
    finally:
        over.set()
        for process in processes:
            process.join(_GRACE)
            process.terminate()
            process.join()


def _work(
    waiting: "Queue[Cell | None]",
    told: "Queue[Told]",
    over: Event,
    results: Path,
    runs: Path,
    until: float,
    threads: int,
) -> None:
    """Run cells while there are any, and end with the first process, whatever ends that."""
    torch.set_num_threads(threads)
    with suppress(KeyboardInterrupt):  # which reaches every process of a terminal
        try:
            for news in _one_by_one(iter(waiting.get, None), results, runs, until):
                told.put(news)
                if is_over(over):
                    told.cancel_join_thread()  # nobody hears it
                    return
        except Exception as error:
            told.put(error)
    told.put(None)


def is_over(over: Event) -> bool:
    """Whether a process that helps is to end: it was told so, or the first one is gone."""
    first = parent_process()
    return over.is_set() or bool(first and not first.is_alive())
