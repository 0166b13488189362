r"""The weights of a mixture, fitted on one part of valid and checked on the rest.

Each of some weightings $g$ of the members ranks the questions of the first part. A relation, in one
direction, takes the one with the largest $\sum_{q \in r} 1/\mathrm{rank}_q(g) + \kappa\, \mathrm{MRR}(g)$:
its own questions and $\kappa$ more that behave as the mean of all, so that relations with few questions
take what is best for all.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from jaxtyping import Float, Int
from torch import Tensor

from modulekge.data.dataset import Dataset
from modulekge.data.filter_index import FilterIndex
from modulekge.data.splits import sample
from modulekge.machine import frugal
from modulekge.models.mixture import Mix
from modulekge.models.scorer import Scorer, batch_size
from modulekge.shapes import Triples

_SHRINKAGE = 32.0  # questions that count for all relations alike
_FITTED = 2 / 3  # share of valid on which weights are fitted
_MOST_WEIGHTINGS = 48
MOST_SCORES = 2_000_000_000  # of all members together, for which valid is ranked
_COPIES = 6  # of the scores: those of members, their sum, and what ranks are made of
_SCALED = 256  # questions that say how far apart the scores of a member lie

Gains = Float[Tensor, "q weightings"]  # 1 / rank of each question with each weighting
Watch = Callable[[Iterator[Gains]], Iterable[Gains]]


@dataclass(frozen=True, eq=False)
class Fitted:
    """Weights of members, and what they gave on the part of valid that they were not fitted on."""

    mix: Mix
    alone: tuple[float, ...]  # MRR of each member
    mixed: float  # and of all together
    best: int  # the member that is best where weights were fitted
    fitted_on: int  # questions
    checked_on: int

    @property
    def helps(self) -> bool:
        """Whether together they are better than the best of them."""
        return self.mixed > self.alone[self.best]


def fit(
    scorers: Sequence[Scorer], dataset: Dataset, watch: Watch = iter, most_questions: int | None = None
) -> Fitted:
    """Fit the weights of members on valid; where they do not help, the best member has all the weight."""
    dataset.check_split("valid", "to fit weights on")
    triples = fitted_triples(scorers, dataset, most_questions)
    triples = triples[torch.randperm(len(triples), generator=torch.Generator().manual_seed(0))]
    fitted = dataset.with_inverses(triples[: min(len(triples) - 1, round(_FITTED * len(triples))) or 1])
    checked = dataset.with_inverses(triples[len(fitted) // 2 :] if len(triples) > 1 else triples)
    grid = weightings(len(scorers))
    scale = _scales(scorers, fitted[torch.linspace(0, len(fitted) - 1, min(len(fitted), _SCALED)).long()])
    asked = _gains(scorers, torch.cat([fitted, checked]), dataset.known, grid / scale)
    gains, rest = torch.cat(list(watch(asked))).split([len(fitted), len(checked)])
    chosen = choose(gains, fitted[:, 1], scorers[0].n_relations)
    mixed = float(rest.gather(1, chosen[checked[:, 1]][:, None]).mean())
    single = [int((grid[:, m] == 1).nonzero()) for m in range(len(scorers))]
    alone = tuple(rest[:, single].mean(0).tolist())
    best = int(gains[:, single].mean(0).argmax())
    if mixed <= alone[best]:
        chosen = torch.full_like(chosen, single[best])
    return Fitted(Mix(grid[chosen], scale), alone, mixed, best, len(fitted), len(checked))


def fitted_triples(scorers: Sequence[Scorer], dataset: Dataset, most_questions: int | None = None) -> Triples:
    """Return the triples of valid that are ranked: no more questions than are affordable, or than told."""
    most = MOST_SCORES // sum(scorer.cost for scorer in scorers)
    return sample(dataset["valid"], max(1, min(most, most_questions or most) // 2))


def weightings(members: int) -> Float[Tensor, "weightings members"]:
    """Return all shares of members in steps as fine as makes not too many of them; each is 1 in all."""
    parts, found = 1, _shares(1, members)
    while members > 1 and parts < 16 and len(finer := _shares(parts + 1, members)) <= _MOST_WEIGHTINGS:
        parts, found = parts + 1, finer
    return found


def _shares(parts: int, members: int) -> Float[Tensor, "weightings members"]:
    whole = [share for share in product(range(parts + 1), repeat=members) if sum(share) == parts]
    return torch.tensor(whole) / parts


def choose(gains: Gains, relations: Int[Tensor, " q"], count: int) -> Int[Tensor, " relations"]:
    """Return the best weighting of each of so many relations, by its questions and by all."""
    own = torch.zeros(count, gains.shape[1], dtype=gains.dtype).index_add_(0, relations, gains)
    return (own + _SHRINKAGE * gains.mean(0)).argmax(1)


@torch.no_grad()
def _scales(scorers: Sequence[Scorer], questions: Triples) -> Float[Tensor, " members"]:
    """How far the scores of a question lie apart, of each member on average."""
    found = []
    for scorer in scorers:
        heads, relations, _ = questions.to(scorer.device).unbind(1)
        parts = zip(heads.split(scorer.at_once), relations.split(scorer.at_once), strict=True)
        found.append(torch.cat([scorer.scores(h, r).std(1) for h, r in parts]).mean().clamp(min=1e-6).cpu())
    return torch.stack(found)


@frugal
@torch.no_grad()
def _gains(
    scorers: Sequence[Scorer],
    questions: Triples,
    known: FilterIndex,
    grid: Float[Tensor, "weightings members"],
) -> Iterator[Gains]:
    """Yield 1 / rank of some questions at a time, with each of the weightings.

    No share is negative, so an entity that every member puts below the answer is below it in any mixture:
    only the others are weighed.
    """
    device = scorers[0].device
    questions, known, grid = questions.to(device), known.to(device), grid.to(device)
    room = max(1, batch_size(scorers[0].n_entities, device) // (_COPIES + len(scorers)))
    for some in questions.split(min(room, *(scorer.at_once for scorer in scorers))):
        heads, relations, tails = some.unbind(1)
        scores = torch.stack([scorer.scores(heads, relations) for scorer in scorers])
        own = scores.gather(2, tails.expand(len(scorers), -1)[:, :, None])
        rival = ~(scores < own).all(0)  # NaN is below nothing
        rival[known.of_questions(heads, relations)] = False
        rival.scatter_(1, tails[:, None], False)
        rows, others = rival.nonzero().unbind(1)
        above = ~(grid @ scores[:, rows, others] < (grid @ own[:, :, 0])[:, rows])
        ranks = 1 + torch.zeros(len(some), len(grid), device=device).index_add_(0, rows, above.T.float())
        yield (1 / ranks).cpu()
