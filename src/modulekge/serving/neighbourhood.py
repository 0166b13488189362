"""What surrounds an entity: some of its facts, and the links that are most probably missing."""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, zip_longest

import numpy as np

from modulekge.serving.asking import Answer, Question
from modulekge.serving.facts import DIRECTIONS, Facts, Ids
from modulekge.serving.links import ENOUGH
from modulekge.serving.predictor import Predictor
from modulekge.serving.views import DrawnLink, EntityItem, Neighbourhood

_QUESTIONS = 16  # relations and directions of an entity, asked at once
_SPARE = 4  # answers to a question beyond those wanted, since some are ruled out


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Draws the neighbourhood of any entity of a run."""

    asked: Predictor
    facts: Facts

    @cached_property
    def _single(self) -> Ids:
        """Questions that never have two answers, though they have many: a country has one capital."""
        n = 2 * self.facts.n_relations
        entities = np.repeat(np.arange(len(self.facts.degrees)), self.facts.degrees)
        keys, counts = np.unique(entities * n + self.facts.rows[:, 0], return_counts=True)
        most = np.zeros(n, np.int64)
        np.maximum.at(most, keys % n, counts)
        return np.flatnonzero((most == 1) & (np.tile(self.facts.of_relation, 2) >= ENOUGH))

    @cached_property
    def _loopless(self) -> Ids:
        """Relations that never join an entity to itself, though they have many facts."""
        entities = np.repeat(np.arange(len(self.facts.degrees)), self.facts.degrees)
        loops = np.unique(self.facts.rows[entities == self.facts.rows[:, 1], 0] % self.facts.n_relations)
        rich = np.flatnonzero(self.facts.of_relation >= ENOUGH)
        return np.setdiff1d(rich, loops)

    def of(self, entity: int, known: int, predicted: int) -> Neighbourhood:
        """Return at most so many known facts, of each relation in turn, and so many new links."""
        groups = self.facts.groups(entity)
        turns = zip_longest(
            *([(g.relation, g.direction == "out", other) for other in g.others.tolist()] for g in groups)
        )
        facts = islice((fact for fact in chain.from_iterable(turns) if fact), known)
        links = [self._link(entity, *fact, None) for fact in facts]
        links += self._predicted(entity, predicted) if predicted else []
        names = self.asked.run.dataset.entities
        around = dict.fromkeys(
            [names.names[entity], *(end for link in links for end in (link.head, link.tail))]
        )
        nodes = [names.meant(name)[0] for name in around]
        degrees = self.facts.degrees
        return Neighbourhood(
            [EntityItem(names.names[i], names.label(i), int(degrees[i])) for i in nodes], links
        )

    def _predicted(self, entity: int, count: int) -> list[DrawnLink]:
        """Ask the relations that an entity has, or else the most used ones, in one batch."""
        n, dataset = self.facts.n_relations, self.asked.run.dataset
        have = [g.relation + n * DIRECTIONS.index(g.direction) for g in self.facts.groups(entity)]
        used = np.argsort(-np.tile(self.facts.of_relation, 2), kind="stable").tolist()
        closed = set(self._single.tolist()) & set(have)
        asked = [q for q in have or used if q not in closed][:_QUESTIONS]
        name = dataset.entities.names[entity]
        questions = [
            Question(name, dataset.relations.names[q], None) if q < n
            else Question(None, dataset.relations.names[q - n], name)
            for q in asked
        ]  # fmt: skip
        k = min(count + _SPARE, len(dataset.entities))
        rows = self.asked.predict_many(questions, k, "exclude") if questions else []
        found = [
            (answer, question, other)
            for question, row in zip(asked, rows, strict=True)
            for answer in row
            if self._open(entity, question, other := dataset.entities.meant(answer.name)[0])
        ]
        found.sort(key=lambda item: _order(item[0]))
        return [self._link(entity, q % n, q < n, other, answer) for answer, q, other in found[:count]]

    def _open(self, entity: int, question: int, other: int) -> bool:
        """Say whether nothing rules a new link out."""
        n = self.facts.n_relations
        if other == entity and question % n in self._loopless:
            return False
        back = (question + n) % (2 * n)
        return back not in self._single or back not in self.facts.around(other)[:, 0]

    def _link(self, entity: int, relation: int, out: bool, other: int, answer: Answer | None) -> DrawnLink:
        dataset = self.asked.run.dataset
        ends = [dataset.entities.names[i] for i in ((entity, other) if out else (other, entity))]
        name, label = dataset.relations.names[relation], dataset.relations.label(relation)
        return DrawnLink(
            ends[0], name, label, ends[1], answer is None, None if answer is None else answer.probability
        )


def _order(answer: Answer) -> tuple[float, int]:
    """The most probable first; without probabilities the best of each question, which cannot be compared."""
    return (0.0 if answer.probability is None else -answer.probability, answer.rank)
