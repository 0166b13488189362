"""What the last step between two releases says about the next one."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from modulekge.studies.releases import MOST, Need, Predicted, Release, best

_FEW = 5  # sources of which packages moved alike, that others may follow
_STEPS, _RATE = 150, 0.1


@dataclass(frozen=True, eq=False)
class Step:
    r"""$P(p \text{ gains } y) = \sigma(b_y + \sum_{x \in p} w_{xy})$ over the links $x$ that a package has.

    Learned from what packages of one release had gained in the next, and asked of that one for the release
    after it. A link is ``(relation, tail)``.
    """

    had: dict[Need, int]
    gained: dict[Need, int]
    weights: Float[Tensor, "had gained"]
    bias: Float[Tensor, " gained"]

    @classmethod
    def between(cls, first: Release, old: Release) -> "Step":
        """Learn from one step, by the cross-entropy and half the sum of squares of the weights.

        The links are those that packages of five sources had who gained the same. The packages of a source
        move together, so they weigh as much as one. Who was removed gained nothing, and what a package has
        already it cannot gain.
        """
        gains: dict[str, set[Need]] = defaultdict(set)
        for package, relation, tail in first.added_by(old):
            gains[package].add((relation, tail))
        had, gained = _moves(first, gains)
        counts = Counter(first.sources[p] for p, needs in first.needs.items() if needs & had.keys())
        rows: dict[tuple[frozenset[Need], frozenset[Need]], float] = defaultdict(float)
        made: dict[tuple[tuple[frozenset[Need], frozenset[Need]], Need], float] = defaultdict(float)
        for package, needs in first.needs.items():
            if needs & had.keys():
                alike = frozenset(needs & had.keys()), frozenset(needs & gained.keys())
                rows[alike] += 1 / counts[first.sources[package]]
                for need in gains.get(package, set()) & gained.keys():
                    made[alike, need] += 1 / counts[first.sources[package]]
        inputs = _ones([row[0] for row in rows], had)
        could = (1 - _ones([row[1] for row in rows], gained).to_dense()) * torch.tensor([*rows.values()])[
            :, None
        ]
        places = {row: i for i, row in enumerate(rows)}
        did = torch.zeros(len(rows), len(gained))
        for (row, need), share in made.items():
            did[places[row], gained[need]] = share
        return cls(had, gained, *_fitted(inputs, could, did))

    def predict(self, release: Release, most: int = MOST) -> Predicted:
        """Return the links that packages of a release most probably gain in the next one."""
        packages = [package for package, needs in release.needs.items() if needs & self.had.keys()]
        inputs = _ones([release.needs[package] for package in packages], self.had)
        chances = (torch.sparse.mm(inputs, self.weights) + self.bias).sigmoid()
        chances[_ones([release.needs[package] for package in packages], self.gained).to_dense() > 0] = -1
        chances[:, [i for (_, tail), i in self.gained.items() if tail not in release.names]] = -1
        top, needs = chances.flatten().topk(min(most, chances.numel())), list(self.gained)
        found = (
            (chance, (packages[place // len(needs)], *needs[place % len(needs)]))
            for chance, place in zip(top.values.tolist(), top.indices.tolist(), strict=True)
        )
        return best(((p, link) for p, link in found if p >= 0 and link[0] != link[2]), most)


def _fitted(
    inputs: Tensor, could: Float[Tensor, "r gained"], did: Float[Tensor, "r gained"]
) -> tuple[Float[Tensor, "had gained"], Float[Tensor, " gained"]]:
    """Return weights and biases, of so many that could gain and that did, by rows of equal inputs."""
    weights = torch.zeros(inputs.shape[1], did.shape[1], requires_grad=True)
    bias = torch.full((did.shape[1],), -4.0, requires_grad=True)
    optimizer = torch.optim.Adam([weights, bias], lr=_RATE)
    for _ in range(_STEPS):
        optimizer.zero_grad()
        odds = torch.sparse.mm(inputs, weights) + bias
        loss = (could * softplus(odds) - did * odds).sum() + weights.square().sum() / 2
        loss.backward()
        optimizer.step()
    return weights.detach(), bias.detach()


def _moves(first: Release, gains: Mapping[str, set[Need]]) -> tuple[dict[Need, int], dict[Need, int]]:
    """Number the links that packages of enough sources had, and those that they then gained."""
    sources: dict[tuple[Need, Need], set[str]] = defaultdict(set)
    for package, gained in gains.items():
        for x in first.needs.get(package, ()):
            for y in gained:
                sources[x, y].add(first.sources[package])
    enough = sorted(pair for pair, some in sources.items() if len(some) >= _FEW)
    had, gained_ = (dict.fromkeys(pair[side] for pair in enough) for side in (0, 1))
    return {x: i for i, x in enumerate(had)}, {y: i for i, y in enumerate(gained_)}


def _ones(
    rows: list[Collection[Need]] | list[frozenset[Need]] | list[set[Need]], columns: Mapping[Need, int]
) -> Tensor:
    """1 where a row has a link, as a sparse matrix."""
    places = [(i, columns[x]) for i, row in enumerate(rows) for x in row if x in columns]
    index = torch.tensor(places, dtype=torch.long).view(-1, 2).T
    shape = len(rows), len(columns)
    return torch.sparse_coo_tensor(index, torch.ones(len(places)), shape, check_invariants=True).coalesce()
