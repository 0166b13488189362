"""The names most like a word, of however many."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

_COMPARED = 64  # names, letter by letter, which takes long
_AT_A_TIME = 1 << 13  # names of which the most promising are chosen


def nearest(word: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return the known names that begin with ``word``, then those most like it, whatever their case.

    Two letters that changed places come first: a short word shares no other pair of letters with it.
    """
    by_fold, fold = {name.casefold(): name for name in known}, word.casefold()
    begun = sorted((name for name in by_fold if fold and name.startswith(fold)), key=len)
    alike = get_close_matches(fold, _promising(fold, list(by_fold)), count, 0.6) if len(begun) < count else []
    swapped = (fold[:i] + fold[i : i + 2][::-1] + fold[i + 2 :] for i in range(len(fold) - 1))
    found = dict.fromkeys([*(text for text in swapped if text in by_fold), *begun, *alike])
    return [by_fold[near] for near in found][:count]


def _promising(word: str, names: list[str]) -> list[str]:
    """Return the few names that share most with a word."""
    if len(names) <= _COMPARED:
        return names
    import numpy as np  # which few words need: they are looked for among few names

    while len(names) > _COMPARED:
        parts = [names[i : i + _AT_A_TIME] for i in range(0, len(names), _AT_A_TIME)]
        best = [np.argsort(-_shared(word, part), kind="stable")[:_COMPARED] for part in parts]
        names = [part[i] for part, places in zip(parts, best, strict=True) for i in places]
    return names


def _shared(word: str, names: list[str]) -> Any:
    """Weigh the pairs of letters that each name shares with a word: those that few names have count more."""
    import numpy as np

    sizes = np.array([len(text) + 1 for text in (word, *names)])
    text = "\0".join(("", word, *names, "")).encode("utf-32-le", "surrogatepass")
    letters = np.frombuffer(text, np.uint32).astype(np.uint16)
    pairs = letters[:-1] * np.uint16(251) + letters[1:]  # those of rare scripts may meet in one number
    asked = np.unique(pairs[: sizes[0]])
    weights = np.zeros(1 << 16)
    weights[asked] = np.log(len(pairs) / np.bincount(pairs)[asked])
    shared: Any = np.add.reduceat(weights[pairs], sizes.cumsum()[:-1]) / np.sqrt(sizes[1:])
    return shared
