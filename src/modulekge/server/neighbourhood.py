"""What surrounds an entity: some of its facts, and the links that are most probably missing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, zip_longest

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from modulekge.answers.links import answered
from modulekge.answers.predictor import Predictor
from modulekge.answers.questions import Answer
from modulekge.data.type_constraints import Types
from modulekge.server.lookup import Lookup
from modulekge.server.views import DrawnLink, Neighbourhood

_QUESTIONS = 16  # relations and directions of an entity that are asked

_Around = tuple[int, int, Answer | None]  # question, other end, and the answer of a new link


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Draws the neighbourhood of any entity of a run.

    As among the links of a whole graph, a second answer is left out where each question has one, and other
    ends of a type that the relation does not hold there.
    """

    asked: Predictor
    lookup: Lookup

    @cached_property
    def _functional(self) -> frozenset[int]:
        return frozenset(self.asked.run.dataset.functional.nonzero()[:, 0].tolist())

    def of(
        self,
        entity: int,
        known: int,
        predicted: int,
        types: Types = "constrained",
        relation: int | None = None,
    ) -> Neighbourhood:
        """Return at most so many known facts, of each relation or of one, and so many new links."""
        every = self.lookup.facts.groups(entity)
        groups = [group for group in every if relation in (None, group.relation)]
        turns = zip_longest(
            *([(group.question, other, None) for other in group.others.tolist()] for group in groups)
        )
        facts = self._distinct(entity, (fact for fact in chain.from_iterable(turns) if fact))
        new = self._predicted(entity, predicted, types, relation) if predicted else []
        links = [*islice(facts, known), *new]
        nodes = dict.fromkeys([entity, *(other for _, other, _ in links)])
        return Neighbourhood(
            [self.lookup.item(i) for i in nodes], [self._drawn(entity, *link) for link in links]
        )

    def _predicted(self, entity: int, count: int, types: Types, relation: int | None) -> list[_Around]:
        """Ask a relation, or those that an entity has, or else the most used ones, as many as fit at once."""
        dataset, kind, device = self.asked.run.dataset, self.asked.entities, self.asked.run.scorer.device
        have = [group.question for group in self.lookup.facts.groups(entity)]
        used = np.argsort(-np.tile(self.lookup.facts.of_relation, 2), kind="stable").tolist()
        open_ = [q for q in have or used if not (have and q in self._functional)]
        asked = [q for q in open_ if relation in (None, q % len(dataset.relations))][:_QUESTIONS]
        found: list[_Around] = []
        for first in range(0, len(asked), kind.at_once):
            part = asked[first : first + kind.at_once]
            heads, relations = torch.tensor([[entity] * len(part), part], device=device)
            scored = kind.rate(heads, relations)
            taken = torch.stack([self._taken(question, device) for question in part])
            closed = scored.known | scored.loops | taken
            if types == "constrained":
                closed |= ~self.asked.type_constraints.mask(relations)
            rows = kind.best(scored, heads, relations, closed, min(count, len(dataset.entities)))
            found += [
                (question, dataset.entities.find(answer.name), answer)
                for question, row in zip(part, rows, strict=True)
                for answer in row
            ]
        return [*islice(self._distinct(entity, sorted(found, key=_order)), count)]

    def _taken(self, question: int, device: torch.device) -> Bool[Tensor, " e"]:
        """Say which other ends are asked for no more: they have one answer already, and no more than one."""
        n = self.lookup.facts.n_relations
        return answered(self.asked.run.dataset, (question + n) % (2 * n), device)

    def _distinct(self, entity: int, links: Iterable[_Around]) -> Iterator[_Around]:
        """Leave out what came before, and of a relation that holds both ways here, the other way round."""
        seen: set[tuple[int, int, int]] = set()
        mutual = self._mutual(entity)
        for link in links:
            head, relation, tail = triple = self._triple(entity, *link[:2])
            if triple not in seen:
                seen |= {triple, (tail, relation, head)} if relation in mutual else {triple}
                yield link

    def _mutual(self, entity: int) -> set[int]:
        """Return the relations by which an entity is joined to another one both ways."""
        ends: dict[int, list[set[int]]] = {}
        for group in self.lookup.facts.groups(entity):
            ends.setdefault(group.relation, []).append({*group.others.tolist()} - {entity})
        return {relation for relation, sides in ends.items() if len(sides) == 2 and sides[0] & sides[1]}

    def _triple(self, entity: int, question: int, other: int) -> tuple[int, int, int]:
        n = self.lookup.facts.n_relations
        return (entity, question, other) if question < n else (other, question - n, entity)

    def _drawn(self, entity: int, question: int, other: int, answer: Answer | None) -> DrawnLink:
        head, r, tail = self._triple(entity, question, other)
        names, relation = self.asked.run.dataset.entities.names, self.lookup.relation(r)
        probability = None if answer is None else answer.probability
        return DrawnLink(names[head], relation.name, relation.label, names[tail], answer is None, probability)


def _order(link: _Around) -> tuple[float, int]:
    """The most probable first; without probabilities the best of each question, for they do not compare."""
    answer = link[2]
    assert answer is not None
    return (0.0 if answer.probability is None else -answer.probability, answer.rank)
