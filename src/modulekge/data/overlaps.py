"""Relations that say the same: duplicates, inverses, symmetric ones."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from modulekge.data.benchmarks import SPLITS
from modulekge.data.dataset import Dataset

Likeness = Literal["same", "inverse", "symmetric"]


@dataclass(frozen=True)
class Overlap:
    r"""How much of two relations is common: $|P_r \cap P_q| / \max(|P_r|, |P_q|)$.

    $P_r$ are the pairs (head, tail) of $r$; of an inverse those of $q$ are turned round.
    """

    relation: str
    other: str
    likeness: Likeness
    share: float
    pairs: int  # that the two have in common


def overlaps(dataset: Dataset, least: float = 0.8, pairs: int = 10) -> tuple[Overlap, ...]:
    """Return what overlaps at least so much, in so many pairs, over all splits; the greatest first."""
    heads, relations, tails = torch.cat([dataset[split] for split in SPLITS]).unbind(1)
    proper = heads != tails  # a loop is its own inverse and says nothing
    heads, relations, tails = heads[proper], relations[proper], tails[proper]
    n, r = len(dataset.entities), len(dataset.relations)
    codes = torch.cat([heads * n + tails, tails * n + heads])
    kinds = torch.cat([relations, relations + r])  # the second half are the relations turned round
    distinct = (codes * (2 * r) + kinds).unique()
    codes, kinds = distinct // (2 * r), distinct % (2 * r)
    sizes = torch.bincount(kinds, minlength=2 * r)
    found = []
    for a, b, count in _counted_pairs(codes, kinds, 2 * r).tolist():
        if a >= r or a % r > b % r:  # as (b, a), or as both turned round
            continue
        share = count / int(max(sizes[a], sizes[b]))
        if share >= least and count >= pairs:
            likeness: Likeness = "symmetric" if a == b - r else "inverse" if b >= r else "same"
            names = dataset.relations.label(a), dataset.relations.label(b % r)
            found.append(Overlap(*names, likeness, share, count))
    return tuple(sorted(found, key=lambda o: (-o.share, -o.pairs)))


def _counted_pairs(codes: Int[Tensor, " m"], kinds: Int[Tensor, " m"], n: int) -> Int[Tensor, "p 3"]:
    """Return (a, b, in how many codes both occur) for kinds a < b; codes come in order."""
    met = []
    step = 1
    while step < len(codes) and (same := codes[step:] == codes[:-step]).any():
        met.append((kinds[:-step] * n + kinds[step:])[same])
        step += 1
    if not met:
        return codes.new_zeros(0, 3)
    both, count = torch.cat(met).unique(return_counts=True)
    return torch.stack([both // n, both % n, count], dim=1)
