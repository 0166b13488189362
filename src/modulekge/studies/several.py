"""Several cells: one after the other, or by processes that each take the next one."""

import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from math import inf
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from pathlib import Path
from queue import Empty

from modulekge.errors import RunError
from modulekge.studies.cell import Cell, run_cell
from modulekge.studies.pool import SPAWN, processes
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
    waiting, told = SPAWN.Queue(), SPAWN.Queue()
    for cell in (*cells, *[None] * workers):
        waiting.put(cell)
    each = [(waiting, told, results, runs, until)] * workers
    with processes(_tell, each, workers, _GRACE) as started:
        for news in _heard(told, started, runs):
            if news is None:
                workers -= 1
                if not workers:
                    return
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


def _heard(told: "Queue[Told]", workers: list[BaseProcess], runs: Path) -> Iterator[Told]:
    """Yield what processes tell; one that ended without a word is missed."""
    while True:
        try:
            yield told.get(timeout=_LOOK)
        except Empty:
            if any(process.exitcode for process in workers):
                raise RunError(
                    f"{runs}: a process ended without a word, perhaps for want of memory; what was kept "
                    "stays, and the same command goes on, with fewer workers if need be"
                ) from None


def _tell(
    waiting: "Queue[Cell | None]", told: "Queue[Told]", results: Path, runs: Path, until: float
) -> Generator[None, None, None]:
    """Run cells while there are any, and tell what happens to them."""
    with suppress(KeyboardInterrupt):
        try:
            for news in _one_by_one(iter(waiting.get, None), results, runs, until):
                told.put(news)
                yield
        except GeneratorExit:
            told.cancel_join_thread()  # nobody hears it
            raise
        except Exception as error:
            told.put(error)
    told.put(None)
