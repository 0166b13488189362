"""One process at a time may train a run; the lock goes with the process, however it ends."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from modulekge.errors import RunError
from modulekge.run.run_files import RunFiles

_LOCK = ".lock"


def is_training(folder: RunFiles) -> bool:
    """Whether a process is training this run now."""
    try:
        with (folder.path / _LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no lock was ever taken, or it is not ours to ask
        return False
    return False


@contextmanager
def only_one(folder: RunFiles) -> Iterator[None]:
    """Hold the folder against a second training; the lock goes with the process, however it ends."""
    try:
        lock = (folder.path / _LOCK).open("w")
    except OSError as error:
        raise RunError(
            f"{folder.path}: cannot be written ({error.strerror}); copy the run elsewhere"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunError(f"{folder.path}: another process is at work on this run; wait for it") from None
        yield
