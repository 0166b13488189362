"""What is known of a graph, by name: search, facts of an entity, names that are meant."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from modulekge.answers.questions import Question, QuestionIds
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import UnknownNameError
from modulekge.server.facts import Direction, Facts, Group
from modulekge.server.search import Search, plain
from modulekge.server.views import (
    EntityCard,
    EntityItem,
    EntityPage,
    FactEnd,
    FactGroup,
    Name,
    RelationItem,
    RelationPage,
)

S = TypeVar("S")
T = TypeVar("T")
_SHOWN = 80  # characters of an unknown name that are repeated


class UnknownFieldError(UnknownNameError):
    """A name that the graph does not have, and the field of the request that holds it."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, eq=False)
class Lookup:
    """A graph that is looked things up in; its indices are built once.

    >>> Lookup(dataset).entities("fran", limit=3).items[0].label  # doctest: +SKIP
    'France'
    """

    dataset: Dataset

    @cached_property
    def facts(self) -> Facts:
        """The facts by entity."""
        return Facts.of(self.dataset)

    @cached_property
    def _entities(self) -> Search:
        return Search.of(self.dataset.entities, self.facts.degrees)

    @cached_property
    def _relations(self) -> Search:
        return Search.of(self.dataset.relations, self.facts.of_relation)

    @cached_property
    def by_degree(self) -> list[int]:
        """Every entity, the best-connected first."""
        order: list[int] = self._entities.by_weight.tolist()
        return order

    def prepare(self) -> None:
        """Build the indices, so that the first question does not wait for them."""
        for search, vocabulary in (
            (self._entities, self.dataset.entities),
            (self._relations, self.dataset.relations),
        ):
            search.find("")
            vocabulary.meant("")

    def relations(self, search: str, limit: int, offset: int = 0) -> RelationPage:
        """Return the relations that match, best first; of an empty search all, the most used first."""
        found = self._relations.find(search)
        ids, counts = found[offset : offset + limit].tolist(), self.facts.of_relation
        items = [RelationItem(**vars(self.relation(i)), triples=int(counts[i])) for i in ids]
        return RelationPage(len(found), items)

    def entities(self, search: str, limit: int, offset: int = 0) -> EntityPage:
        """Return the entities that match, best first; of an empty search all, the best-connected first."""
        found = self._entities.find(search)
        return EntityPage(len(found), [self.item(i) for i in found[offset : offset + limit].tolist()])

    def entity(
        self, name: str, relation: str | None, direction: Direction | None, limit: int, offset: int = 0
    ) -> EntityCard:
        """Return an entity with some facts of each relation and direction, or of those asked for."""
        i = self.find_entity(name, "name")
        wanted = None if relation is None else self.find_relation(relation, "relation")
        groups = [
            self._group(group, limit, offset)
            for group in self.facts.groups(i)
            if wanted in (None, group.relation) and direction in (None, group.direction)
        ]
        said, trained = self.dataset.entities.description(i), not self.dataset.untrained(i)
        return EntityCard(**vars(self.item(i)), description=said, trained=trained, facts=groups)

    def item(self, i: int) -> EntityItem:
        """Return an entity with its degree."""
        names = self.dataset.entities
        return EntityItem(names.names[i], names.label(i), int(self.facts.degrees[i]))

    def relation(self, i: int) -> Name:
        """Return a relation."""
        names = self.dataset.relations
        return Name(names.names[i], names.label(i))

    def _group(self, group: Group, limit: int, offset: int) -> FactGroup:
        names, shown = self.dataset.entities, slice(offset, offset + limit)
        items = [
            FactEnd(names.names[i], names.label(i), split)
            for i, split in zip(group.others[shown].tolist(), group.splits[shown], strict=True)
        ]
        return FactGroup(self.relation(group.relation), group.direction, len(group.others), items)

    def find_entity(self, text: str, field: str) -> int:
        """Return the id of an entity; of an unknown one, say in which field it is and what is near."""
        return _find(self.dataset.entities, self._entities, text, field)

    def find_relation(self, text: str, field: str) -> int:
        """Return the id of a relation, likewise."""
        return _find(self.dataset.relations, self._relations, text, field)

    def question(self, asked: Question, place: str = "") -> QuestionIds:
        """Return a question by ids."""
        head, relation, tail = self._ids((asked.head, asked.relation, asked.tail), place)
        return QuestionIds.of(head, relation, tail, len(self.dataset.relations))

    def questions(self, asked: Iterable[Question]) -> list[QuestionIds | UnknownFieldError]:
        """Return questions by ids; an error in the place of one that has an unknown name."""
        return [_or_error(self.question, each, f"questions[{i}].") for i, each in enumerate(asked)]

    def named(self, asked: QuestionIds) -> tuple[str | None, str | None, str | None]:
        """Return head, relation and tail of a question by name; what is asked for is None."""
        names, relations, n = (
            self.dataset.entities.names,
            self.dataset.relations.names,
            self.facts.n_relations,
        )
        if asked.for_relations:
            return names[asked.head], None, names[asked.other]
        if asked.other < n:
            return names[asked.head], relations[asked.other], None
        return None, relations[asked.other - n], names[asked.head]

    def triple(self, triple: tuple[str, str, str], place: str = "") -> tuple[int, int, int]:
        """Return a triple by ids."""
        head, relation, tail = (int(i or 0) for i in self._ids(triple, place))
        return head, relation, tail

    def triples(
        self, triples: Iterable[tuple[str, str, str]], part: str
    ) -> list[tuple[int, int, int] | UnknownFieldError]:
        """Return the triples of a part of a request by ids, likewise."""
        return [_or_error(self.triple, each, f"{part}[{i}].") for i, each in enumerate(triples)]

    def _ids(self, given: Iterable[str | None], place: str) -> Iterator[int | None]:
        """Yield the ids of head, relation and tail; what is asked for has none."""
        for part, text in zip(("head", "relation", "tail"), given, strict=True):
            find = self.find_relation if part == "relation" else self.find_entity
            yield None if text is None else find(text, place + part)


def _or_error(find: Callable[[T, str], S], given: T, place: str) -> S | UnknownFieldError:
    try:
        return find(given, place)
    except UnknownFieldError as error:
        return error


def _find(vocabulary: Vocabulary, search: Search, text: str, field: str) -> int:
    """Find a name; unlike the vocabulary's own advice, that of an index takes no look at every name."""
    found = vocabulary.meant(text)
    if len(found) == 1:
        return found[0]
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    if found:
        names = ", ".join(repr(vocabulary.names[i]) for i in found[:5])
        raise UnknownFieldError(
            f"{shown!r} is the label of {len(found)}; give one of the names {names}", field
        )
    alike = search.find(text)[:3].tolist() if plain(text) else []
    near = " or ".join(repr(vocabulary.label(i)) for i in alike)
    some = ", ".join(repr(vocabulary.label(i)) for i in range(min(3, len(vocabulary))))
    advice = f"did you mean {near}?" if near else f"there are {len(vocabulary):,}, such as {some}"
    raise UnknownFieldError(f"unknown {vocabulary.kind} {shown!r}; {advice}", field)
