"""Names that differ in case, in Unicode normal form or in spaces only: often one thing, learned as two."""

import unicodedata
from collections.abc import Iterable


def alike(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the groups of names that are spelt alike, in the order of their first names."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(_folded(name), []).append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _folded(name: str) -> str:
    text = "".join(name.split()).casefold()
    return text if text.isascii() else unicodedata.normalize("NFC", text)
