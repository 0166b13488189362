"""A graph that grows: new facts after those it has, in ids that stay."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from modulekge.data.benchmarks import SPLITS
from modulekge.data.dataset import Dataset
from modulekge.data.filter_index import FilterIndex
from modulekge.data.reading import Facts
from modulekge.data.splits import without_repeats
from modulekge.data.vocabulary import PLURAL, Vocabulary
from modulekge.errors import DataError, UnknownNameError
from modulekge.shapes import Triples
from modulekge.suggest import nearest
from modulekge.wording import counted

_FEW, _MANY = 3, 10  # names of entities, and of relations, that are told


@dataclass(frozen=True, eq=False)
class Addition:
    """A graph before and after facts were added to the end of its train split."""

    before: Dataset
    after: Dataset
    known: int  # facts that were not added because a split has them
    repeated: int  # facts that were given more than once
    notes: tuple[str, ...] = ()

    @property
    def facts(self) -> Triples:
        """The facts that were added."""
        return self.after.train[len(self.before.train) :]

    @property
    def entities(self) -> int:
        """How many entities are new."""
        return len(self.after.entities) - len(self.before.entities)

    @property
    def relations(self) -> int:
        """How many relations are new."""
        return len(self.after.relations) - len(self.before.relations)

    def is_new(self, triples: Triples) -> Bool[Tensor, " m"]:
        """Say which triples, or questions, have an entity or a relation that is new."""
        n_entities, n_relations = len(self.before.entities), len(self.before.relations)
        relation_ids = triples[:, 1] % len(self.after.relations)  # that of a reciprocal too
        return (triples[:, [0, 2]] >= n_entities).any(1) | (relation_ids >= n_relations)

    @cached_property
    def answers(self) -> tuple[Tensor, Tensor]:
        """How often what is old answers each relation (a row), and relations what is new (a row)."""
        questions = self.after.questions("train")
        new = self.is_new(questions)
        _, relations, tails = questions.unbind(1)
        old = ~new & torch.isin(relations, relations[new])
        shape = self.after.n_relations_with_inverses, len(self.after.entities)
        with torch.sparse.check_sparse_tensor_invariants():  # to leave it open brings a warning
            return (
                _meetings(relations[old], tails[old], shape),
                _meetings(tails[new], relations[new], shape[::-1]),
            )

    def counts(self) -> dict[str, int]:
        """Return what came of the facts that were given."""
        return {
            "facts": len(self.facts),
            "entities": self.entities,
            "relations": self.relations,
            "between_known": int((~self.is_new(self.facts)).sum()),
            "known_before": self.known,
            "repeated": self.repeated,
        }


def _meetings(rows: Int[Tensor, " m"], columns: Int[Tensor, " m"], shape: tuple[int, int]) -> Tensor:
    """How often each row meets each column, without the many that never do."""
    places = torch.stack([rows, columns])
    return torch.sparse_coo_tensor(places, torch.ones(len(rows)), shape).coalesce()


def enlarge(dataset: Dataset, facts: Facts) -> Addition:
    """Add facts to train, but for those that a split has; new names get the ids after the old ones.

    A name is an old one's if it is written as that name, or as a label that no other has; a label that
    others have too is refused. Blank nodes of RDF are new.
    """
    dataset.check_facts()
    new = _apart(dataset.entities, facts.entities) if facts.blank else facts.entities
    entities, entity_ids = _joined(dataset.entities, new, lambda i: facts.first(i, (0, 2)))
    relations, relation_ids = _joined(dataset.relations, facts.relations, lambda i: facts.first(i, (1,)))
    heads, relation, tails = facts.triples.unbind(1)
    given = torch.stack([entity_ids[heads], relation_ids[relation], entity_ids[tails]], dim=1)
    distinct = without_repeats(given)
    old = torch.cat([dataset[split] for split in SPLITS])
    near = FilterIndex.of(old[torch.isin(old[:, 0], distinct[:, 0])], len(relations))
    known = near.among(distinct[:, 0], distinct[:, 1], distinct[:, 2:])[:, 0]
    if known.all():
        words = counted(len(known), "fact is", "facts are all")
        raise DataError(f"{dataset.name}: the {words} known; there is nothing to add")
    after = replace(
        dataset, entities=entities, relations=relations, train=torch.cat([dataset.train, distinct[~known]])
    )
    alike = [*_alike(dataset.entities, entities), *_new_relations(dataset.relations, relations)]
    return Addition(
        dataset, after, int(known.sum()), len(given) - len(distinct), notes=(*facts.notes, *alike)
    )


def _apart(old: Vocabulary, new: Vocabulary) -> Vocabulary:
    """Return new names in which blank nodes that are called as old ones have -2, -3, ... after the name."""
    known, given = set(old.names), (*new.names, *new.labels, *new.descriptions)
    taken = known.union(given)
    free = {
        name: next(other for i in count(2) if (other := f"{name}-{i}") not in taken)
        for name in given
        if name.startswith("_:") and name in known
    }
    return replace(
        new,
        names=tuple(free.get(name, name) for name in new.names),
        labels={free.get(name, name): text for name, text in new.labels.items()},
        descriptions={free.get(name, name): text for name, text in new.descriptions.items()},
    )


def _joined(
    old: Vocabulary, new: Vocabulary, place: Callable[[int], str]
) -> tuple[Vocabulary, Int[Tensor, " names"]]:
    """Return the old names with the new ones after them, and the id there of each name of ``new``."""
    names, ids = list(old.names), []
    for i, name in enumerate(new.names):
        try:
            known = old.exact(name)
        except UnknownNameError as error:
            raise UnknownNameError(f"{place(i)}: {error}") from None
        ids.append(len(names) if known is None else known)
        if known is None:
            names.append(name)
    told = {
        names[i]: text for name, i in zip(new.names, ids, strict=True) if (text := new.descriptions.get(name))
    }
    labels, descriptions = {**new.labels, **old.labels}, {**new.descriptions, **told, **old.descriptions}
    return Vocabulary(old.kind, tuple(names), labels, descriptions), torch.tensor(ids)


def _new_relations(old: Vocabulary, joined: Vocabulary) -> Iterator[str]:
    """Name the relations that are new, each with the known one that was perhaps meant."""
    known = {_last_part(text): text for text in (*old.labels.values(), *old.names)}
    found = []
    for name in joined.names[len(old) :]:
        near = nearest(_last_part(name), known, 1)
        found.append(repr(name) + (f" (did you mean {known[near[0]]!r}?)" if near else ""))
    if found:
        few = ", ".join(found[:_MANY]) + (f" and {len(found) - _MANY:,} more" if len(found) > _MANY else "")
        yield f"new to this run: {counted(len(found), 'relation')}: {few}"


def _last_part(name: str) -> str:
    """Return a name without what many have in common before it, as IRIs have."""
    return re.split(r"[/#]", name.rstrip("/#"))[-1]


def _alike(old: Vocabulary, joined: Vocabulary) -> Iterator[str]:
    """Say which new names differ from old ones in case only, which is seldom meant."""
    written = {text.casefold(): text for text in (*old.labels.values(), *old.names)}
    pairs = [(name, written.get(name.casefold())) for name in joined.names[len(old) :]]
    found = [f"{name} ({known})" for name, known in pairs if known]
    if found:
        few = ", ".join(found[:_FEW]) + (f" and {len(found) - _FEW:,} more" if len(found) > _FEW else "")
        yield f"new {PLURAL[old.kind]} that differ from known ones in case only: {few}"
