"""A knowledge graph in ids: two vocabularies and three splits."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch

from modulekge.data.benchmarks import SPLITS, Split
from modulekge.data.filter_index import FilterIndex
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import DataError
from modulekge.frames import Shown
from modulekge.shapes import Triples
from modulekge.suggest import nearest

_MUTUAL = 0.8  # share of a relation's facts whose reverse is a fact, from which it says the same both ways
ENOUGH = 20  # facts of a relation from which what none of them shows is taken to be no fact


def with_inverses(triples: Triples, n_relations: int) -> Triples:
    """Return the triples, then their reciprocals $(t, r + |R|, h)$."""
    return torch.cat([triples, triples.flip(1) + torch.tensor([0, n_relations, 0])])


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(Shown):
    """Triples (head, relation, tail) of a graph, split into train, valid and test.

    Head prediction is tail prediction of the reciprocal relation ``r + |R|``: below this class there
    is one direction only, and twice as many relations.
    """

    name: str
    entities: Vocabulary
    relations: Vocabulary
    train: Triples
    valid: Triples
    test: Triples
    notes: tuple[str, ...] = field(default=(), kw_only=True)  # what was left out when it was read, for people
    facts: bool = field(default=True, kw_only=True)  # False: a shared run, whose triples were left out
    digest: str = field(default="", kw_only=True)  # its fingerprint, where names are not held to make it of

    def __post_init__(self) -> None:
        if self.facts and len(self.train) == 0:
            raise DataError(f"{self.name}: the train split has no triples; there is nothing to learn from")
        for split in SPLITS:
            if self[split].dim() != 2 or self[split].shape[1] != 3:
                raise DataError(
                    f"{self.name}: {split} is of shape {tuple(self[split].shape)}, expected (m, 3)"
                )
        bounds = torch.tensor([len(self.entities), len(self.relations), len(self.entities)])
        for split in SPLITS:
            bad = ((self[split] < 0) | (self[split] >= bounds)).nonzero()
            if len(bad):
                i, column = bad[0].tolist()
                raise DataError(
                    f"{self.name}: {split} triple {i + 1}: {('head', 'relation', 'tail')[column]} id "
                    f"{int(self[split][i, column])} is out of range 0..{int(bounds[column]) - 1}"
                )

    def _about(self) -> Mapping[str, object]:
        return {
            "name": self.name,
            "entities": len(self.entities),
            "relations": len(self.relations),
            **{split: len(self[split]) for split in SPLITS},
            **({"notes": "; ".join(self.notes)} if self.notes else {}),
        }

    def __getitem__(self, split: str) -> Triples:
        if split not in SPLITS:
            raise DataError(f"no split {split!r}; expected train, valid or test")
        triples: Triples = getattr(self, split)
        return triples

    @property
    def n_relations_with_inverses(self) -> int:
        """Relations with their reciprocals: the rows of a model's relation tables."""
        return 2 * len(self.relations)

    def questions(self, split: Split) -> Triples:
        """Return the triples of a split, then their reciprocals."""
        return self.with_inverses(self[split])

    def with_inverses(self, triples: Triples) -> Triples:
        """Return the triples, then their reciprocals $(t, r + |R|, h)$."""
        return with_inverses(triples, len(self.relations))

    def with_relations(self, relations: Vocabulary) -> "Dataset":
        """Return the graph with the numbers of another one's relations, which have to hold all of its own."""
        ids = {name: i for i, name in enumerate(relations.names)}
        for name in self.relations.names:
            if name not in ids:
                near = nearest(name, ids, 1)
                hint = f"did you mean {near[0]!r}? Else leave" if near else "leave"
                raise DataError(f"{self.name}: relation {name!r} is not known; {hint} its facts out")
        place = torch.tensor([ids[name] for name in self.relations.names])

        def moved(triples: Triples) -> Triples:
            heads, own, tails = triples.unbind(1)
            return torch.stack([heads, place[own], tails], dim=1)

        train, valid, test = moved(self.train), moved(self.valid), moved(self.test)
        return replace(self, relations=relations, train=train, valid=valid, test=test)

    def split_of(self, triple: tuple[int, int, int]) -> Split | None:
        """Return the split that holds a triple, if any does."""
        wanted = torch.tensor(triple)
        return next((split for split in SPLITS if (self[split] == wanted).all(1).any()), None)

    def check_facts(self) -> None:
        """Refuse a graph that was shared without its triples."""
        if not self.facts:
            raise DataError(f"{self.name}: shared without its facts, which this needs; use the run it is of")

    def check_split(self, split: Split, purpose: str) -> None:
        """Refuse a split that has no triples for a purpose; with it, what to do is said."""
        self.check_facts()
        if len(self[split]) == 0:
            raise DataError(f"{self.name}: the {split} split has no triples {purpose}")

    @cached_property
    def known(self) -> FilterIndex:
        """Every answer in any split: what a filtered ranking leaves out."""
        return FilterIndex.of(
            torch.cat([self.questions(split) for split in SPLITS]), self.n_relations_with_inverses
        )

    @cached_property
    def known_in_train(self) -> FilterIndex:
        """Every answer in train."""
        return FilterIndex.of(self.questions("train"), self.n_relations_with_inverses)

    @cached_property
    def irreflexive(self) -> torch.Tensor:
        """Which relations, reciprocal ones too, never join an entity to itself: no country borders itself."""
        heads, relations, tails = torch.cat([self.questions(split) for split in SPLITS]).unbind(1)
        facts = relations.bincount(minlength=self.n_relations_with_inverses)
        return (facts >= ENOUGH) & (
            relations[heads == tails].bincount(minlength=self.n_relations_with_inverses) == 0
        )

    @cached_property
    def functional(self) -> torch.Tensor:
        """Which relations, reciprocal ones too, never have two answers: a country has one capital."""
        answers = self.known.starts.diff()
        relations, none = (
            self.known.keys % self.n_relations_with_inverses,
            torch.zeros(self.n_relations_with_inverses, dtype=torch.long),
        )
        facts = none.index_add(0, relations, answers)
        return (facts >= ENOUGH) & (none.scatter_reduce(0, relations, answers, "amax") == 1)

    @cached_property
    def symmetric(self) -> torch.Tensor:
        """Which relations say the same both ways: of most of their facts the reverse is a fact too."""
        count, size = len(self.relations), len(self.entities)
        heads, relations, tails = torch.cat([self[split] for split in SPLITS]).unbind(1)
        apart = heads != tails
        heads, relations, tails = heads[apart], relations[apart], tails[apart]
        both = torch.isin(
            (heads * size + tails) * count + relations, (tails * size + heads) * count + relations
        )
        facts, mutual = relations.bincount(minlength=count), relations[both].bincount(minlength=count)
        return (facts >= ENOUGH) & (mutual >= _MUTUAL * facts)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the names and the triples: equal for equal graphs, wherever they were read."""
        if self.digest:
            return self.digest
        made = hashlib.sha256()
        for vocabulary in (self.entities, self.relations):
            made.update("\n".join(vocabulary.names).encode() + b"\0")
        for split in SPLITS:
            made.update(self[split].numpy().astype("<i8").tobytes() + b"\0")
        return made.hexdigest()

    @cached_property
    def seen(self) -> torch.Tensor:
        """Which entities occur in train; the others can only be guessed."""
        seen = torch.zeros(len(self.entities), dtype=torch.bool)
        seen[self.train[:, [0, 2]].flatten()] = True
        return seen

    def untrained(self, entity: int) -> bool:
        """Whether an entity is in no training fact, so that its row is as it was drawn."""
        return bool(self.facts and not self.seen[entity])
