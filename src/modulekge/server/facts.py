"""The facts of a graph around its entities, found without looking through them all."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from modulekge.data.benchmarks import SPLITS, Split
from modulekge.data.dataset import Dataset

Direction = Literal["out", "in"]
DIRECTIONS: tuple[Direction, ...] = ("out", "in")

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Group:
    """The facts of one entity with one relation in one direction: the entities at the other end."""

    question: int
    relation: int
    direction: Direction
    others: Ids
    splits: list[Split]


@dataclass(frozen=True, eq=False)
class Facts:
    """Every fact of any split once, ordered by entity, question and other end.

    A question is a relation, or r + |R| where the entity is the tail.
    """

    n_relations: int
    rows: Ids  # (2 m, 3): question, other end, place of the split
    starts: Ids  # of each entity in ``rows``
    of_relation: Ids  # facts of each relation

    @classmethod
    def of(cls, dataset: Dataset) -> "Facts":
        """Sort the facts of a graph; what stands in two splits is of the first."""
        parts = [dataset[split].numpy() for split in SPLITS]
        triples, splits = np.concatenate(parts), np.repeat(np.arange(len(SPLITS)), [len(p) for p in parts])
        _, first = np.unique(triples, axis=0, return_index=True)
        triples, splits = triples[first], splits[first]
        n = len(dataset.relations)
        heads, relations, tails = triples.T
        entities = np.concatenate([heads, tails])
        rows = np.stack(
            [
                np.concatenate([relations, relations + n]),
                np.concatenate([tails, heads]),
                np.concatenate([splits, splits]),
            ],
            axis=1,
        )
        order = np.lexsort((rows[:, 1], rows[:, 0], entities))
        counts = np.bincount(entities, minlength=len(dataset.entities))
        starts = np.concatenate([[0], counts.cumsum()])
        return cls(n, rows[order], starts, np.bincount(relations, minlength=n))

    @cached_property
    def degrees(self) -> Ids:
        """In how many facts each entity occurs; one with itself counts twice."""
        return np.diff(self.starts)

    @cached_property
    def entities(self) -> Ids:
        """The entity of each row."""
        return np.repeat(np.arange(len(self.degrees)), self.degrees)

    def around(self, entity: int) -> Ids:
        """Return (question, other end, place of the split) of each fact of an entity."""
        return self.rows[self.starts[entity] : self.starts[entity + 1]]

    def groups(self, entity: int) -> list[Group]:
        """Return the facts of an entity by relation and direction, the largest group first."""
        rows, found = self.around(entity), []
        questions, first = np.unique(rows[:, 0], return_index=True)
        for question, part in zip(questions.tolist(), np.split(rows, first)[1:], strict=True):
            direction = DIRECTIONS[question // self.n_relations]
            splits = [SPLITS[i] for i in part[:, 2].tolist()]
            found.append(Group(question, question % self.n_relations, direction, part[:, 1], splits))
        return sorted(found, key=lambda group: -len(group.others))

    def pairs(self, relation: int) -> Ids:
        """Return (head, tail, place of the split) of each fact of a relation."""
        rows = np.flatnonzero(self.rows[:, 0] == relation)
        return np.column_stack([self.entities[rows], self.rows[rows, 1:]])

    def most_asked(self) -> Ids:
        """Return the question that each entity occurs in most; -1 where it occurs in none."""
        keys, counts = np.unique(self.entities * 2 * self.n_relations + self.rows[:, 0], return_counts=True)
        owners, questions = keys // (2 * self.n_relations), keys % (2 * self.n_relations)
        order = np.lexsort((questions, -counts, owners))
        found, first = np.unique(owners[order], return_index=True)
        most = np.full(len(self.degrees), -1)
        most[found] = questions[order][first]
        return most
