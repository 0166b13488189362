"""What surrounds an entity: some of its facts, and the links that are most probably missing."""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, zip_longest

import numpy as np

from modulekge.serving.asking import Answer, Question
from modulekge.serving.facts import Facts
from modulekge.serving.lookup import Lookup
from modulekge.serving.predictor import Predictor
from modulekge.serving.views import DrawnLink, Neighbourhood

_QUESTIONS = 16  # relations and directions of an entity that are asked, all at once
_SPARE = 4  # answers to a question beyond those wanted, since some are ruled out

_Around = tuple[int, int, Answer | None]  # question, other end, and the answer of a new link


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Draws the neighbourhood of any entity of a run.

    As among the links of a whole graph, a second answer is left out where each question has one.
    """

    asked: Predictor
    lookup: Lookup

    @property
    def _facts(self) -> Facts:
        return self.lookup.facts

    @cached_property
    def _single(self) -> frozenset[int]:
        return frozenset(self.asked.run.dataset.single.nonzero()[:, 0].tolist())

    def of(self, entity: int, known: int, predicted: int) -> Neighbourhood:
        """Return at most so many known facts, of each relation in turn, and so many new links."""
        groups = self._facts.groups(entity)
        turns = zip_longest(
            *([(group.question, other) for other in group.others.tolist()] for group in groups)
        )
        facts = islice((fact for fact in chain.from_iterable(turns) if fact), known)
        links: list[_Around] = [(question, other, None) for question, other in facts]
        links += self._predicted(entity, predicted) if predicted else []
        nodes = dict.fromkeys([entity, *(other for _, other, _ in links)])
        return Neighbourhood(
            [self.lookup.item(i) for i in nodes], [self._drawn(entity, *link) for link in links]
        )

    def _predicted(self, entity: int, count: int) -> list[_Around]:
        """Ask the relations that an entity has, or else the most used ones, in one batch."""
        n, dataset = self._facts.n_relations, self.asked.run.dataset
        have = [group.question for group in self._facts.groups(entity)]
        used = np.argsort(-np.tile(self._facts.of_relation, 2), kind="stable").tolist()
        asked = [q for q in have or used if not (have and q in self._single)][:_QUESTIONS]
        name = dataset.entities.names[entity]
        questions = [
            Question(name, dataset.relations.names[q])
            if q < n
            else Question(None, dataset.relations.names[q - n], name)
            for q in asked
        ]
        rows = self.asked.predict_many(questions, min(count + _SPARE, len(dataset.entities)), "exclude")
        found: list[tuple[int, int, Answer]] = [
            (question, other, answer)
            for question, row in zip(asked, rows, strict=True)
            for answer in row
            if self._open(question, other := dataset.entities.find(answer.name))
        ]
        found.sort(key=lambda link: _order(link[2]))
        return [*found[:count]]

    def _open(self, question: int, other: int) -> bool:
        """Say whether the other end may be asked for at all: it has no answer yet, or may have several."""
        n = self._facts.n_relations
        back = (question + n) % (2 * n)
        return back not in self._single or back not in self._facts.around(other)[:, 0]

    def _drawn(self, entity: int, question: int, other: int, answer: Answer | None) -> DrawnLink:
        n, names = self._facts.n_relations, self.asked.run.dataset.entities.names
        head, tail = (entity, other) if question < n else (other, entity)
        relation = self.lookup.relation(question % n)
        probability = None if answer is None else answer.probability
        return DrawnLink(names[head], relation.name, relation.label, names[tail], answer is None, probability)


def _order(answer: Answer) -> tuple[float, int]:
    """The most probable first; without probabilities the best of each question, for they do not compare."""
    return (0.0 if answer.probability is None else -answer.probability, answer.rank)
