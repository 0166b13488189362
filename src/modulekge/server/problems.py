"""What is said of errors, whatever they are answered over."""

import sys
from collections.abc import Iterable

from modulekge.errors import PointedError

INTERNAL = "internal error; the server's log has a line about it"


def said_of(error: Exception) -> str:
    """Return what a user can mend, in one line."""
    if isinstance(error, PointedError):
        return f"character {error.start + 1}: {error.finding}"
    return " ".join(str(error).split())


def log_internal(error: Exception) -> None:
    """Write the line about an error of ours; who asked is told nothing of it."""
    print(f"internal error: {type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)


def field_at(place: Iterable[str | int]) -> str | None:
    """Return where in a request something stands, such as questions[0].head."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".") or None
