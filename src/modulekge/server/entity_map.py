"""The map of a run: where its entities lie on the plane, found once and kept with the run."""

import contextlib
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from modulekge.errors import RunError
from modulekge.run.checkpoint import weights_hash
from modulekge.run.run import Run
from modulekge.run.tensors import read_tensors, write_tensors
from modulekge.server.facts import DIRECTIONS
from modulekge.server.lookup import Lookup
from modulekge.server.projection import Places, project
from modulekge.server.views import EntityMap, MapGroup

_DIGITS = 4  # of a place, behind the point


def places_of(run: Run) -> Places:
    """Return where the entities of a run lie: read from its folder, or found and kept there."""
    path, model = run.folder.map_file, run.embedding
    about = {"weights": weights_hash(model)}
    with contextlib.suppress(RunError, KeyError):
        tensors, said = read_tensors(path)
        if said == about:
            return tensors["places"]
    places = project(model.entities())
    with contextlib.suppress(RunError):
        write_tensors(path, {"places": places}, about)
    return places


@dataclass(frozen=True, eq=False)
class MapMaker:
    """Maps of any number of entities of one run.

    An entity is of the group of the relation and direction it occurs in most.
    """

    lookup: Lookup
    places: Places

    @cached_property
    def _questions(self) -> list[int]:
        """The question of each entity: a relation, or r + |R| as its tail; -1 where it has no facts."""
        found: list[int] = self.lookup.facts.most_asked().tolist()
        return found

    def of_best(self, limit: int) -> EntityMap:
        """Return the best-connected entities."""
        chosen, names = self.lookup.by_degree[:limit], self.lookup.dataset.entities
        asked = [self._questions[i] for i in chosen]
        counts = [(q, count) for q, count in Counter(asked).most_common() if q >= 0]
        place = {q: i for i, (q, _) in enumerate(counts)}
        x, y = ([round(v, _DIGITS) for v in axis] for axis in self.places[chosen].T.tolist())
        return EntityMap(
            names=[names.names[i] for i in chosen],
            labels=[names.label(i) for i in chosen],
            x=x,
            y=y,
            group=[place.get(q, -1) for q in asked],
            groups=[self._group(q, count) for q, count in counts],
        )

    def _group(self, question: int, count: int) -> MapGroup:
        n = len(self.lookup.dataset.relations)
        return MapGroup(self.lookup.relation(question % n), DIRECTIONS[question // n], count)
