"""What people read about names: files of labels and of descriptions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from modulekge.data.readers.delimited import read_text, two_columns

TextKind = Literal["label", "description"]
LONGEST = 2000  # characters of a description: what a card shows without becoming a page


def read_texts(path: Path, kind: TextKind) -> dict[str, str]:
    """Read a file of ``name text``, separated by a tab, or by a comma where it ends in .csv."""
    table = read_text(path, two_columns(path, kind))
    return dict(zip(table["name"].to_pylist(), table[kind].to_pylist(), strict=True))


def bounded(descriptions: Mapping[str, str]) -> tuple[dict[str, str], int]:
    """Return descriptions cut at ``LONGEST`` characters, without blank ones, and how many were cut."""
    whole = {name: text.strip() for name, text in descriptions.items()}
    cut = {name: f"{text[: LONGEST - 1]}…" for name, text in whole.items() if len(text) > LONGEST}
    return {name: cut.get(name, text) for name, text in whole.items() if text}, len(cut)
