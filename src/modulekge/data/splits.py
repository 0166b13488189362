"""One set of triples into three, so that nothing is asked about what was never seen."""

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from modulekge.errors import DataError
from modulekge.shapes import Triples
from modulekge.wording import counted

_SHARE = 0.1  # of the triples, for valid and for test each, where that many can be spared
_MOST = 4000  # triples of either: they tell an MRR to within .01, and more would cost minutes


def split_triples(
    triples: Triples, n_entities: int, n_relations: int, seed: int
) -> tuple[Triples, Triples, Triples]:
    """Split at random, keeping a triple of every entity and every relation in train.

    Triples come out in the order in which they came in; a repeated triple is kept once.
    """
    triples = without_repeats(triples)
    order = torch.randperm(len(triples), generator=torch.Generator().manual_seed(seed))
    spare = order[~_first_mentions(triples[order], n_entities, n_relations)]
    size = min(max(1, int(_SHARE * len(triples))), _MOST, len(spare) // 2)
    if size == 0:
        raise DataError(
            f"{counted(len(triples), 'triple is', 'triples are')} too few to split without losing an entity "
            "or a relation from train; give a folder with train, valid and test files"
        )
    valid, test = spare[:size], spare[size : 2 * size]
    held = torch.zeros(len(triples), dtype=torch.bool)
    held[torch.cat([valid, test])] = True
    return triples[~held], triples[valid.sort().values], triples[test.sort().values]


def sample(triples: Triples, most: int) -> Triples:
    """Return at most so many of the triples, drawn with the same seed each time, in the order they had."""
    if len(triples) <= most:
        return triples
    order = torch.randperm(len(triples), generator=torch.Generator().manual_seed(0))
    return triples[order[:most].sort().values]


def without_repeats(triples: Triples) -> Triples:
    """Return the triples without repetitions, each where it stood first."""
    order = torch.from_numpy(np.lexsort(triples.T.numpy()))  # stable: of equal triples the first comes first
    ordered = triples[order]
    fresh = torch.ones(len(triples), dtype=torch.bool)
    fresh[1:] = (ordered[1:] != ordered[:-1]).any(1)
    return triples[order[fresh].sort().values]


def _first_mentions(triples: Triples, n_entities: int, n_relations: int) -> Bool[Tensor, " m"]:
    """Which triples are the first to mention one of their entities or their relation."""
    m = len(triples)
    first = torch.zeros(m, dtype=torch.bool)
    for ids, n in (
        (triples[:, [0, 2]].flatten(), n_entities),
        (triples[:, 1].repeat_interleave(2), n_relations),
    ):
        earliest = torch.full((n,), m)
        earliest.scatter_reduce_(0, ids, torch.arange(m).repeat_interleave(2), "amin")
        first[earliest[earliest < m]] = True
    return first
