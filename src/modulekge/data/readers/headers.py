"""Whether the first row of a table is a header in words of its own, such as package, depends, target."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pyarrow as pa
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from modulekge.data.readers.tables import numbered

# Whether the first row is a header; None: to be found out; titles: if it is these, or in known words
Header = bool | tuple[str, ...] | None
Verdict = Literal["header", "doubtful", "fact"]
_ENOUGH = 20  # rows from which on one that is alone in its kind is no chance
_RARE = 0.1  # share of rows that may have a relation, or two entities, that stand nowhere else
_FEW = 0.05  # share of rows that may be as the first one, if it is to be doubted


def judged(titles: Sequence[str], table: pa.Table) -> Verdict:
    """Say what the first row of a table is, whose three names may occur nowhere else in it.

    It is a header if it is the only such row, more than 20 follow, and few of them have a relation, or a pair
    of entities, that occurs once: then a fact would seldom be such a row, and the first one. With fewer rows,
    or some like it, it is doubtful. Numbers and IRIs are no titles.
    """
    relations = _once(numbered([table["relation"]])[1])
    heads, tails = _once(numbered([table["head"], table["tail"]])[1]).chunk(2)
    alone = relations & heads & tails
    if not alone[0] or len(alone) < 3 or any(t.isdecimal() or "://" in t for t in titles):
        return "fact"
    rare, apart, alike = (part[1:].double().mean() for part in (relations, heads & tails, alone))
    if len(alone) > _ENOUGH and alike == 0 and rare <= _RARE and apart <= _RARE:
        return "header"
    return "doubtful" if alike <= _FEW and rare <= 0.5 else "fact"


def _once(ids: Int[Tensor, " cells"]) -> Bool[Tensor, " cells"]:
    """Say of each cell whether its name is in no other."""
    return torch.bincount(ids)[ids] == 1


def said(path: Path, number: int, titles: Sequence[str], verdict: Verdict) -> str:
    """Say what was made of a first row, and how to have it otherwise."""
    found = f"{path}:{number}: {titles[0]!r}, {titles[1]!r} and {titles[2]!r} never occur again"
    if verdict == "header":
        return f"{found}: taken for a header; --header no makes it a fact"
    return f"{found}, and are taken for a fact; is it a header? --header yes" if verdict == "doubtful" else ""
