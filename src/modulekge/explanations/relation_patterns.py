"""What a run's relations are to each other: read off what they do to entities, held against the facts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import sqrt
from pathlib import Path
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from modulekge.explanations.paths import Evidence, Walks, sample
from modulekge.frames import Columns, Table, columns_of
from modulekge.models.embedding import Embedding
from modulekge.run.run import Run, load
from modulekge.shapes import Ids

PatternKind = Literal[
    "symmetric", "antisymmetric", "inverse", "equal", "composition", "commuting", "not commuting"
]

_MOST_RELATIONS = 256  # those with the most facts are compared
_HEADS = 48  # of a relation on which it is compared with others; fewer where there are many relations
_ALL_HEADS = 1536  # over all relations
_CANDIDATES = 256  # entities against which moved heads are scored
_SPREADS = 3.0  # above the median of a run's similarities, from where on one counts
_LEAST_SIMILARITY = 0.3  # which counts in any run
_MOST_SIMILARITY = 0.95  # which always counts
_TOLD_APART = 0.9  # share of facts that a model of an antisymmetric relation puts above their reverse
_NEVER = 0.02  # share of facts that may stand both ways in an antisymmetric relation
_LEAST_PAIRS = 5  # on which a pattern is held against the facts
_MOST_PAIRS = 500  # pairs of relations held against the facts as compositions, or as not commuting
_THIRDS = 3  # relations that two in turn may amount to, the most alike first
_ENTITIES_AT_ONCE = 1 << 16
_AT_ONCE = 32  # relations whose moved heads are held at a time


@dataclass(frozen=True)
class Finding:
    """A pattern that relations of a run obey, as the model has it and as the facts have it.

    ``similarity`` is the model's: of what the two sides of the pattern make of entities, from -1 to 1; of
    "antisymmetric" and "not commuting", the share of cases that the model tells apart, by chance 0.5.
    ``evidence`` counts training pairs that agree; for "antisymmetric" and "not commuting" those that do
    not, so that a small share supports them.
    """

    kind: PatternKind
    relations: tuple[str, ...]
    labels: tuple[str, ...]
    similarity: float
    evidence: Evidence
    supported: bool  # by the facts; otherwise only the model believes it


@dataclass(frozen=True, repr=False)
class RelationPatterns(Table):
    """What a run's relations are to each other.

    ``claims`` are seen in the model and in the facts, ``beliefs`` in the model alone.
    """

    model: str
    dataset: str
    relations: int
    compared: int
    threshold: float  # similarity from which on two relations count as one, or as inverse
    composition_threshold: float
    commutative: bool  # every two relations commute, whatever was learned
    findings: tuple[Finding, ...]

    def _about(self) -> Mapping[str, object]:
        return {"model": self.model, "graph": self.dataset, "patterns": len(self.findings)}

    def _columns(self) -> Columns:
        return columns_of(Finding, self.findings)

    @property
    def claims(self) -> tuple[Finding, ...]:
        """What both the model and the facts say."""
        return tuple(finding for finding in self.findings if finding.supported)

    @property
    def beliefs(self) -> tuple[Finding, ...]:
        """What the model says and the facts do not."""
        return tuple(finding for finding in self.findings if not finding.supported)


def relation_patterns(run: Run | str | Path) -> RelationPatterns:
    """Return which relations are symmetric, inverse, equal, composed of others, and which commute or do not.

    >>> algebra = relation_patterns("runs/demo")  # doctest: +SKIP
    >>> [(finding.kind, finding.relations) for finding in algebra.claims]  # doctest: +SKIP
    [('symmetric', ('borders',))]
    """
    run = run if isinstance(run, Run) else load(run)
    with torch.no_grad():
        return _Comparison.of(run).algebra()


@dataclass(frozen=True, eq=False)
class _Comparison:
    """Relations of a run on samples of the heads they are used with, against a sample of entities.

    What a relation does is compared as a table of scores, $f(e, t)$ of moved heads $e$ and candidates
    $t$, without its means by row and column: the mark of an action on what the entities use, of no scale
    and the same for products and distances.
    """

    run: Run
    walks: Walks
    chosen: list[int]  # relations compared
    candidates: Int[Tensor, " candidates"]
    table: Tensor = field(repr=False)

    @classmethod
    def of(cls, run: Run) -> "_Comparison":
        dataset, model = run.dataset, run.embedding
        dataset.check_facts()
        counts = torch.bincount(dataset.train[:, 1], minlength=len(dataset.relations))
        most = counts.argsort(descending=True, stable=True)[:_MOST_RELATIONS]
        chosen = sorted(most[counts[most] > 0].tolist())
        candidates = sample(dataset.seen.nonzero()[:, 0], _CANDIDATES)
        return cls(run, Walks(dataset), chosen, candidates, model.entities(candidates))

    def algebra(self) -> RelationPatterns:
        alike, composed = self._similarities()
        upper = alike[torch.ones_like(alike).triu(1).bool()]
        threshold, composition_threshold = _threshold(upper), _threshold(composed[~composed.isnan()])
        commutative = self._commutative()
        found = [
            *self._pairs(alike, threshold),
            *self._antisymmetric(alike, threshold),
            *self._compositions(composed, composition_threshold),
            *([] if commutative else self._orders(composition_threshold)),
        ]
        dataset = self.run.dataset
        return RelationPatterns(
            self.run.config.model.name,
            dataset.name,
            len(dataset.relations),
            len(self.chosen),
            threshold,
            composition_threshold,
            commutative,
            tuple(found),
        )

    def _similarities(self) -> tuple[Float[Tensor, "q q"], Float[Tensor, "r r r"]]:
        """Return how alike relations and reciprocals are, and two in turn to a third; NaN where none are."""
        n, shift = len(self.chosen), len(self.run.dataset.relations)
        asked = self.chosen + [r + shift for r in self.chosen]
        alike, composed = torch.eye(2 * n), torch.full((n, n, n), torch.nan)
        for i, r in enumerate(asked):
            heads = self._heads(r)
            direct = self._profiles(heads, [(q,) for q in asked])
            alike[i] = direct @ direct[i]
            if i < n:
                after = (self._links[i] >= _LEAST_PAIRS).nonzero()[:, 0].tolist()
                through = self._profiles(heads, [(r, self.chosen[j]) for j in after])
                composed[i, after] = through @ direct[:n].T
        return (alike + alike.T) / 2, composed

    def _heads(self, relation: int) -> Ids:
        """Return heads of a relation, each as often as a sample of its facts has it."""
        count = max(8, min(_HEADS, _ALL_HEADS // len(self.chosen)))
        return sample(self.walks.pairs(relation)[:, 0], count)

    @cached_property
    def _links(self) -> Int[Tensor, "r r"]:
        """How many entities the first relation leads to and the second one starts at."""
        dataset, n = self.run.dataset, len(self.run.dataset.relations)
        questions, chosen = dataset.questions("train"), torch.tensor(self.chosen)
        links = torch.zeros(len(chosen), len(chosen))
        for start in range(0, len(dataset.entities), _ENTITIES_AT_ONCE):
            starts = torch.zeros(dataset.n_relations_with_inverses, _ENTITIES_AT_ONCE)
            some = questions[questions[:, 0] // _ENTITIES_AT_ONCE == start // _ENTITIES_AT_ONCE]
            starts[some[:, 1], some[:, 0] - start] = 1
            links += starts[chosen + n] @ starts[chosen].T
        return links.long()

    def _profiles(self, heads: Ids, moves: list[tuple[int, ...]]) -> Float[Tensor, "moves numbers"]:
        """Return what moves by one relation or two make of heads, as tables of scores of length 1."""
        parts = [torch.empty(0, len(heads) * len(self.candidates))]
        for start in range(0, len(moves), _AT_ONCE):
            some = torch.tensor(moves[start : start + _AT_ONCE]).repeat_interleave(len(heads), 0)
            scores = self._scores(heads.repeat(len(some) // len(heads)), some)
            scores = scores.view(-1, len(heads), len(self.candidates))
            scores = scores - scores.mean(2, keepdim=True)
            scores = scores - scores.mean(1, keepdim=True)
            parts.append(torch.nn.functional.normalize(scores.flatten(1), dim=1))
        return torch.cat(parts)

    def _scores(self, heads: Ids, moves: Int[Tensor, "b steps"]) -> Float[Tensor, "b candidates"]:
        return self.run.embedding.scores(self._moved(heads, moves), self.table, self.candidates)

    def _moved(self, heads: Ids, moves: Int[Tensor, "b steps"]) -> Tensor:
        model: Embedding = self.run.embedding
        if moves.shape[1] == 1:
            return model.queries(heads, moves[:, 0])
        return model.queries_through(heads, moves[:, 0], moves[:, 1])

    def _pairs(self, alike: Float[Tensor, "q q"], threshold: float) -> Iterator[Finding]:
        """Yield symmetric relations, then inverse and equal ones."""
        n, walks, shift = len(self.chosen), self.walks, len(self.run.dataset.relations)
        for i, r in enumerate(self.chosen):
            if alike[i, n + i] >= threshold:
                evidence = walks.evidence((r + shift,), r)
                yield self._finding("symmetric", (r,), alike[i, n + i], evidence, evidence.convincing)
        for i, j in combinations(range(n), 2):
            r, q = self.chosen[i], self.chosen[j]
            inverse, equal = (alike[i, n + j] + alike[n + i, j]) / 2, (alike[i, j] + alike[n + i, n + j]) / 2
            if inverse >= threshold:
                evidence = walks.mutual(r, q + shift)
                yield self._finding("inverse", (r, q), inverse, evidence, evidence.convincing)
            if equal >= threshold:
                evidence = walks.mutual(r, q)
                yield self._finding("equal", (r, q), equal, evidence, evidence.convincing)

    def _antisymmetric(self, alike: Float[Tensor, "q q"], threshold: float) -> Iterator[Finding]:
        """Yield relations whose facts never stand both ways though their entities stand on both sides."""
        n, shift = len(self.chosen), len(self.run.dataset.relations)
        for i, r in enumerate(self.chosen):
            facts = self.walks.pairs(r)
            facts = facts[facts[:, 0] != facts[:, 1]]
            both = torch.isin(facts[:, 0], facts[:, 1]) & torch.isin(facts[:, 1], facts[:, 0])
            facts = sample(facts[both], _ALL_HEADS)
            if alike[i, n + i] >= threshold or len(facts) < _LEAST_PAIRS:
                continue
            there, back = self._score(facts, r), self._score(facts.flip(1), r)
            share = float((there > back).double().mean())
            if share >= _TOLD_APART and _beyond_chance(share, len(facts)):
                reversed_too = float(self.walks.holds(facts, r + shift).double().mean())
                evidence = Evidence(reversed_too, 0.0, len(facts))
                yield self._finding("antisymmetric", (r,), share, evidence, reversed_too <= _NEVER)

    def _score(self, pairs: Int[Tensor, "b 2"], *moves: int) -> Float[Tensor, " b"]:
        """Return the score of each pair's tail with its head moved by these relations."""
        queries = self._moved(pairs[:, 0], torch.tensor([moves]).expand(len(pairs), -1))
        return self.run.embedding.scores_each(queries, pairs[:, 1:])[:, 0]

    def _compositions(self, composed: Float[Tensor, "r r r"], threshold: float) -> Iterator[Finding]:
        """Yield what two relations, one after the other, amount to: of three the first that facts bear."""
        values, thirds = composed.nan_to_num(-1).topk(min(_THIRDS, len(composed)))
        strongest = values[:, :, 0].flatten().argsort(descending=True, stable=True)[:_MOST_PAIRS]
        for i, j in sorted(divmod(place, len(values)) for place in strongest.tolist()):
            found = []
            for value, third in zip(values[i, j].tolist(), thirds[i, j].tolist(), strict=True):
                relations = self.chosen[i], self.chosen[j], self.chosen[third]
                if value >= threshold:
                    evidence = self.walks.evidence(relations[:2], relations[2])
                    found.append(
                        self._finding("composition", relations, value, evidence, evidence.convincing)
                    )
            if found and found[0].evidence.pairs >= _LEAST_PAIRS:
                yield next((finding for finding in found if finding.supported), found[0])

    def _commutative(self) -> bool:
        """Whether any two relations commute on any entities; seen on two of each."""
        last = len(self.run.embedding.relation_scaling) - 1
        heads = self.candidates[:2]
        moves = torch.tensor([[0, last]]).expand(len(heads), 2)
        there, back = self._moved(heads, moves), self._moved(heads, moves.flip(1))
        return torch.allclose(there, back, rtol=1e-4, atol=1e-6 * float(there.abs().max()))

    def _orders(self, threshold: float) -> Iterator[Finding]:
        """Yield pairs of relations that lead to the same in either order, or that the model tells apart."""
        both = torch.minimum(self._links, self._links.T).triu(1)
        strongest = both.flatten().argsort(descending=True, stable=True)[:_MOST_PAIRS]
        for i, j in sorted(divmod(place, len(both)) for place in strongest.tolist()):
            if both[i, j] < _LEAST_PAIRS:
                continue
            r, q = self.chosen[i], self.chosen[j]
            there, back = self.walks.joined((r, q)), self.walks.joined((q, r))
            there = there[torch.isin(there[:, 0], back[:, 0])]
            back = back[torch.isin(back[:, 0], there[:, 0])]
            n = len(self.run.dataset.entities)
            agreed = torch.isin(there[:, 0] * n + there[:, 1], back[:, 0] * n + back[:, 1])
            evidence = Evidence(float(agreed.double().mean()), 0.0, len(agreed))
            if len(agreed) >= _LEAST_PAIRS and evidence.share > 0.5:
                one, other = self._profiles(self._heads(r), [(r, q), (q, r)])
                if one @ other >= threshold:
                    yield self._finding("commuting", (r, q), one @ other, evidence, True)
                continue
            there, back = _one_each(there[~agreed], back)
            if len(there) < _LEAST_PAIRS:
                continue
            right = self._score(there, r, q) > self._score(back, r, q)
            wrong = self._score(there, q, r) > self._score(back, q, r)
            share = float((right.double() + (~wrong).double()).mean() / 2)
            if _beyond_chance(share, len(there)):
                yield self._finding("not commuting", (r, q), share, evidence, True)

    def _finding(
        self,
        kind: PatternKind,
        relations: tuple[int, ...],
        similarity: Tensor | float,
        evidence: Evidence,
        ok: bool,
    ) -> Finding:
        vocabulary = self.run.dataset.relations
        names = tuple(vocabulary.names[r] for r in relations)
        labels = tuple(vocabulary.label(r) for r in relations)
        return Finding(kind, names, labels, float(similarity), evidence, ok)


def _threshold(values: Float[Tensor, " values"]) -> float:
    """Return the median and 3 standard deviations, as the median deviation tells them; from 0.3 to 0.95."""
    if len(values) == 0:
        return _MOST_SIMILARITY
    middle = values.median()
    spread = 1.4826 * (values - middle).abs().median()
    return min(_MOST_SIMILARITY, max(_LEAST_SIMILARITY, float(middle + _SPREADS * spread)))


def _beyond_chance(share: float, count: int) -> bool:
    """Whether so large a share of so many cases is 3 standard deviations above one half."""
    return (share - 0.5) * 2 * sqrt(count) >= _SPREADS


def _one_each(
    there: Int[Tensor, "_m 2"], back: Int[Tensor, "_n 2"]
) -> tuple[Int[Tensor, "heads 2"], Int[Tensor, "heads 2"]]:
    """Return one pair of either kind for each head that has both."""
    ends = dict(back.tolist())
    chosen = {head: tail for head, tail in there.tolist() if head in ends}
    pairs = [
        torch.tensor([(h, side[h]) for h in chosen], dtype=torch.long).view(-1, 2) for side in (chosen, ends)
    ]
    return pairs[0], pairs[1]
