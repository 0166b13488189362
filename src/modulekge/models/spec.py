"""A model is a row: what its scalars, vectors, scaling, rotation and score are."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import torch

from modulekge.algebra.algebra import Algebra
from modulekge.algebra.groups import (
    ACTIONS,
    SCALARS,
    UNIT_CHARTS,
    VECTORS,
    Action,
    Chart,
    Group,
    both,
    mixed,
)
from modulekge.algebra.scores import SCORES, Score, pair
from modulekge.errors import ConfigError, unknown
from modulekge.shapes import Elements, Numbers

Value = TypeVar("Value")


@dataclass(frozen=True)
class ModelSpec:
    r"""One row of Table 1: $(S, V, T_S, T_V)$ and the score of $T_{s_r}(s_h) \odot T_{v_r}(v_h)$."""

    name: str
    scalar: Group
    vector: Group
    scaling: Action
    rotation: Action
    score: Score

    def __post_init__(self) -> None:
        for holds, complaint in self._laws():
            if not holds:
                raise ConfigError(f"model {self.name}: {complaint}")

    def _laws(self) -> tuple[tuple[bool, str], ...]:
        """What a row must obey, and what to say where it does not."""
        s, v, ts, tv = self.scalar, self.vector, self.scaling.group, self.rotation.group
        return (
            (
                v.trivial or (s.size <= v.size and (s.size == 1 or v.size == v.algebra.dim)),
                f"scalars {s.name} do not lie in the vectors {v.name}; choose V to hold S",
            ),
            (
                ts.trivial or (ts.algebra.dim <= s.algebra.dim and not s.trivial),
                f"{self.scaling.name} moves scalars out of {s.name}; choose a group over {s.name}",
            ),
            (
                tv.trivial or tv.algebra.dim <= v.algebra.dim,
                f"{self.rotation.name} moves vectors out of {v.name}; choose a group over {v.name}",
            ),
            (
                tv.trivial or (self.rotation.law is both) == (v.size == 3),
                f"{self.rotation.name} does not turn {v.name}; SO(3) and R^3 go together",
            ),
            (
                self.scaling.law is not both and self.rotation.law is not mixed,
                f"{self.scaling.name} is no scaling or {self.rotation.name} no rotation; exchange them",
            ),
            (
                (self.scaling.law is mixed) == (self.score.join is pair),
                "the scaling GL(1)+b and the score split go together",
            ),
            (
                self.score.join is not pair or (s.size == 1 and not s.trivial and not v.trivial),
                "the score split wants scalars R and vectors that turn",
            ),
        )

    @property
    def algebra(self) -> Algebra:
        """The algebra in which scalar and vector are multiplied: the larger of the two."""
        return max(self.scalar.algebra, self.vector.algebra, key=lambda a: a.dim)

    @property
    def entity_groups(self) -> tuple[Group, Group]:
        """Where an entity's numbers live: scalar and vector."""
        return self.scalar, self.vector

    @property
    def relation_groups(self) -> tuple[Group, Group]:
        """Where a relation's numbers live: scaling and rotation."""
        return self.scaling.group, self.rotation.group

    @cached_property
    def query_size(self) -> int:
        """Components of a query per block; times k, the length of the vector that meets the table."""
        s, v, g, r = (torch.ones(1, x.width, 1) for x in (*self.entity_groups, *self.relation_groups))
        return self.query(s, v, g, r).shape[-2]

    def entity(self, scalar: Numbers, vector: Numbers) -> Elements:
        r"""$s_e \odot v_e$."""
        return self._join(self.scalar.point(scalar), self.vector.point(vector))

    def query(self, scalar: Numbers, vector: Numbers, scaling: Numbers, rotation: Numbers) -> Elements:
        r"""$T_{s_r}(s_h) \odot T_{v_r}(v_h)$."""
        return self._join(
            self.scaling.move(scaling, self.scalar.point(scalar)),
            self.rotation.move(rotation, self.vector.point(vector)),
        )

    def _join(self, s: Elements, v: Elements) -> Elements:
        if self.vector.trivial:
            return s  # s . 1
        if self.scalar.trivial:
            return v  # 1 . v
        return self.score.join(self.algebra, s, v)

    def charted(self, chart: Chart) -> "ModelSpec":
        """Return the same model with all unit elements under another chart."""
        return replace(
            self,
            vector=self.vector.charted(chart),
            scaling=self.scaling.charted(chart),
            rotation=self.rotation.charted(chart),
        )

    def words(self) -> dict[str, str]:
        """Return the row in words, from which :func:`row` makes it again."""
        parts = (self.scalar, self.vector, self.scaling, self.rotation, self.score)
        return dict(zip(COLUMNS, (part.name for part in parts), strict=True))


COLUMNS = ("scalar", "vector", "scaling", "rotation", "score")


def row(name: str, scalar: str, vector: str, scaling: str, rotation: str, score: str) -> ModelSpec:
    """Return the model whose row of Table 1 reads so.

    >>> row("ModulE-CH", "C", "H", "GL(1,C)", "U_H(1)", "inner").query_size
    4
    """
    return ModelSpec(
        name,
        _value("scalar group", scalar, SCALARS),
        _value("vector group", vector, VECTORS),
        _value("scaling group", scaling, ACTIONS),
        _value("rotation group", rotation, ACTIONS),
        _value("score", score, SCORES),
    )


def chart(name: str) -> Chart:
    """Return the chart of unit elements of this name."""
    return _value("chart", name, UNIT_CHARTS)


def _value(kind: str, name: str, known: Mapping[str, Value]) -> Value:
    if name not in known:
        raise unknown(kind, name, known, f"choose one of {', '.join(known)}")
    return known[name]
