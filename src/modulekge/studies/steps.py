"""What the last step between two releases says about the next one."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import log, log1p

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from modulekge.answers.triples import Named
from modulekge.studies.releases import LINKS, MOST, Need, Predicted, Release, best

_FEW = 5  # sources of which packages moved alike, that others may follow
_STEPS, _RATE = 150, 0.1
_ALL = 1 << 18  # predictions of a step
_LEAST, _MOST = 0.02, 1 - 1e-6  # probability of a move whose outcome teaches something
_DECAY = 5.0  # of the squares of weights, times half


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


@dataclass(frozen=True, eq=False)
class Steps:
    r"""$P = \sigma(b + \langle w, z \rangle)$ of what the last step predicts, $z$ saying more of each link.

    Learned from what the step before that one had predicted, and what became of it: who stayed behind once
    moves less readily, and a package may be gone. $z$ has the log-odds of the step, by which other relation
    the package has that name already (a suggestion becomes a recommendation), how many packages need this
    one or another of its source, and how much it and its source changed in the step.
    """

    step: Step
    last: tuple[Release, Release]
    mean: Float[Tensor, " z"]
    deviation: Float[Tensor, " z"]
    weights: Float[Tensor, " z"]
    bias: Float[Tensor, ""]

    @classmethod
    def between(cls, first: Release, second: Release, old: Release) -> "Steps":
        """Learn from two steps: from the first how to trust the second."""
        inputs, links = _about(Step.between(first, second), first, second)
        came = torch.tensor([link in old.links for link in links], dtype=torch.float64)
        mean, deviation = inputs.mean(0), inputs.std(0).clamp(min=1e-9)
        weights, bias = _logistic((inputs - mean) / deviation, came)
        return cls(Step.between(second, old), (second, old), mean, deviation, weights, bias)

    def predict(self, most: int = MOST) -> Predicted:
        """Return the links that packages of the last release most probably gain in the next one."""
        inputs, links = _about(self.step, *self.last)
        chances = ((inputs - self.mean) / self.deviation @ self.weights + self.bias).sigmoid()
        return best(zip(chances.tolist(), links, strict=True), most)


def _about(step: Step, before: Release, release: Release) -> tuple[Float[Tensor, "m z"], list[Named]]:
    """Return what is known of each link that a step predicts, and the links."""
    found = [(min(p, _MOST), link) for p, link in step.predict(release, _ALL) if p >= _LEAST]
    changes = Counter(head for head, _, _ in release.links.keys() ^ before.links.keys())
    needed = Counter(tail for _, _, tail in release.links)
    by_source: dict[str, Counter[str]] = defaultdict(Counter)
    for package, source in release.sources.items():
        by_source[source].update(changes=changes[package], needed=needed[package])
    rows = []
    for p, (package, relation, tail) in found:
        odds, own = log(p / (1 - p)), by_source[release.sources[package]]
        has = [(other, tail) in release.needs[package] for other in LINKS]
        switch = [had and relation == asked for had in has for asked in LINKS]
        sizes = changes[package], own["changes"], needed[package], own["needed"]
        rows.append(
            [
                odds,
                p,
                *switch,
                *(odds * each for each in switch),
                *map(log1p, sizes),
                package not in before.sources,
            ]
        )
    return torch.tensor(rows, dtype=torch.float64), [link for _, link in found]


def _logistic(
    inputs: Float[Tensor, "m z"], came: Float[Tensor, " m"]
) -> tuple[Float[Tensor, " z"], Float[Tensor, ""]]:
    """Return weights and bias of the least cross-entropy and squares of the weights."""
    weights, bias = (inputs.new_zeros(shape).requires_grad_() for shape in ((inputs.shape[1],), ()))
    optimizer = torch.optim.LBFGS([weights, bias], max_iter=_STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        odds = inputs @ weights + bias
        total = (softplus(odds) - came * odds).sum() + _DECAY * weights.square().sum()
        total.backward()
        return total

    optimizer.step(loss)
    return weights.detach(), bias.detach()


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
