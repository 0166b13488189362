"""A model is a row: what its scalars, vectors, scaling, rotation and score are."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from modulekge.algebra.algebra import Algebra, H
from modulekge.algebra.groups import (
    ROTATIONS,
    SCALARS,
    SCALINGS,
    VECTORS,
    Action,
    Group,
)
from modulekge.algebra.parametrizations import UNIT_PARAMETRIZATIONS, Parametrization
from modulekge.algebra.scores import SCORES, Score, lift, product
from modulekge.config import ModelConfig
from modulekge.errors import ConfigError, UnknownNameError, one_of, unknown
from modulekge.models.table import ROWS, Row
from modulekge.shapes import Elements, Numbers

Build = Callable[[Numbers, Numbers], Elements]  # scalars and vectors of entities to what is scored


@dataclass(frozen=True, repr=False)
class ModelSpec:
    r"""One row of Table 1: $(S, V, T_S, T_V)$ and the score of $T_{s_r}(s_h) \odot T_{v_r}(v_h)$."""

    name: str
    scalar: Group
    vector: Group
    scaling: Action
    rotation: Action
    score: Score

    def __post_init__(self) -> None:
        for holds, complaint in self._constraints():
            if not holds:
                raise ConfigError(f"model {self.name}: {complaint}")

    def _constraints(self) -> tuple[tuple[bool, str], ...]:
        """What a row must obey, and what to say where it does not."""
        s, v, ts, tv = self.scalar, self.vector, self.scaling.group, self.rotation.group
        scales, score = self.scaling.operation, self.score
        return (
            (
                not (s.trivial and v.trivial),
                "neither scalars nor vectors; choose one of them",
            ),
            (
                v.trivial or s.size == 1 or (_whole(s) and _whole(v) and _inside(s.algebra, v.algebra)),
                f"scalars {s.name} do not lie in the vectors {v.name}; choose V to hold S",
            ),
            (
                ts.trivial or (_inside(ts.algebra, s.algebra) and not s.trivial),
                f"{self.scaling.name} moves scalars out of {s.name}; choose a group over {s.name}",
            ),
            (
                not scales.adds or ts.algebra is s.algebra,
                f"{self.scaling.name} adds to scalars {s.name} what is none; choose a group over {s.name}",
            ),
            (
                tv.trivial or (_inside(tv.algebra, v.algebra) and not v.trivial),
                f"{self.rotation.name} moves vectors out of {v.name}; choose a group over {v.name}",
            ),
            *(
                (
                    action.group.trivial or action.operation.turns == (moved.factors[0] == 3),
                    f"{action.name} does not turn {moved.name}; SO(3) and R^3 go together",
                )
                for action, moved in ((self.scaling, s), (self.rotation, v))
            ),
            (
                (scales.name if scales.weighs else "") == score.scaling,
                f"the scaling {self.scaling.name} does not go with the score {score.name}: GL(1)+b goes with "
                "split and R+ x SO(3) with weighted, and with no other",
            ),
            (
                (len(v.factors) == 2) == (score.join is lift),
                "the vectors R^3 x S^1 and the score lifted go together",
            ),
            (
                len(score.weights) == len(SCORES[score.name].weights),
                f"the score {score.name} has {len(SCORES[score.name].weights)} weights; "
                "leave model.score_weights empty, or give as many",
            ),
            (
                score.join is product or (s.size == 1 and not s.trivial and not v.trivial),
                f"the score {score.name} wants scalars R and vectors that turn",
            ),
        )

    @property
    def tieable(self) -> bool:
        r"""Whether $f_r(h, t)$ is the score of $t$ moved by the adjoint of $r$ and compared with $h$.

        An inner product moves any multiplication to its other side; a distance only what keeps it.
        """
        ts, tv = self.scaling.group, self.rotation.group
        if any(action.operation.adjoint is None for action in (self.scaling, self.rotation)):
            return False
        if max(ts.algebra.dim, tv.algebra.dim) > H.dim:
            return False  # conjugation there is not the adjoint
        if self.scaling.operation.adds:
            return not self.score.bilinear and self.vector.trivial
        if self.score.bilinear:
            outside = _from("left", self.scaling, self.scalar) and _from("right", self.rotation, self.vector)
            return self.scalar.size == 1 or self.vector.trivial or outside  # s_r s_h v_h v_r
        return ts.parametrization.kind != "free" or self.scaling.operation.keeps

    @property
    def along_paths(self) -> bool:
        """Whether relations move messages along paths, and not entities to their answers."""
        return self.name.startswith(f"{PATHS}-")

    def check_tieable(self) -> None:
        """Refuse a row whose heads cannot be asked for with adjoints."""
        if not self.tieable:
            finding = "its relations have no adjoints to ask for heads with"
            raise ConfigError(f'model {self.name}: {finding}; set model.reciprocal = "own"')

    def check_linear(self) -> None:
        """Refuse a row whose relations cannot be predicted all at once."""
        if not (self.score.bilinear and self.scaling.linear and self.rotation.linear):
            finding = "its scores are not linear in the relation"
            raise ConfigError(f"model {self.name}: {finding}; set loss.relation_prediction = 0")

    @property
    def algebra(self) -> Algebra:
        """The algebra in which scalar and vector are multiplied: the larger of the two."""
        s, v = self.scalar.algebra, self.vector.algebra
        return s if s.dim > v.dim else v

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

    def query(
        self,
        scalar: Numbers,
        vector: Numbers,
        scaling: Numbers,
        rotation: Numbers,
        back: Bool[Tensor, " b"] | None = None,
    ) -> Elements:
        r"""$T_{s_r}(s_h) \odot T_{v_r}(v_h)$; in the rows that go ``back``, with the adjoints of $T$."""
        start = self.scalar.point(scalar), self.vector.point(vector)
        return self._join(*self._moved(*start, scaling, rotation, back))

    def unmoved(self, scalar: Numbers, vector: Numbers) -> Elements:
        """Return elements as queries that no relation has moved; where a scaling adds a weight, it is 1."""
        s, v = self.scalar.point(scalar), self.vector.point(vector)
        if self.scaling.operation.weighs:
            s = torch.cat([s, torch.ones_like(s[..., :1, :])], dim=-2)
        return self._join(s, v)

    def query_through(
        self, scalar: Numbers, vector: Numbers, moves: Sequence[tuple[Numbers, Numbers]]
    ) -> Elements:
        r"""$T_{s_q}(T_{s_r}(s_h)) \odot T_{v_q}(T_{v_r}(v_h))$: moved by one relation after another."""
        s, v = self.scalar.point(scalar), self.vector.point(vector)
        for scaling, rotation in moves:
            s, v = self._moved(self.scaling.operation.moved(s), v, scaling, rotation)
        return self._join(s, v)

    def _moved(
        self,
        s: Elements,
        v: Elements,
        scaling: Numbers,
        rotation: Numbers,
        back: Bool[Tensor, " b"] | None = None,
    ) -> tuple[Elements, Elements]:
        return (
            self.scaling.move(scaling, s, self.scalar.algebra, back),
            self.rotation.move(rotation, v, self.vector.algebra, back),
        )

    def relation_parts(self, s: Elements, v: Elements, t: Elements) -> Elements:
        r"""$\langle T_{e_i}(s) \odot T_{e_j}(v), t \rangle$ per block, over all basis elements $e_i, e_j$."""
        self.check_linear()
        moved = self._by_basis(self.scaling, s, self.scalar.algebra)
        turned = self._by_basis(self.rotation, v, self.vector.algebra)
        sizes = moved.shape[-2], turned.shape[-2]
        pairs = self.algebra.by_basis(t, "pair", *sizes)  # <e_p . e_q, t>
        half = (moved.unsqueeze(-2) * pairs.unsqueeze(-4)).sum(-3)
        return (half.unsqueeze(-3) * turned.unsqueeze(-4)).sum(-2).flatten(-3, -2)

    def relation_table(self, scaling: Numbers, rotation: Numbers) -> Elements:
        r"""$s_r \otimes v_r$ of relations, in the order of :meth:`relation_parts`."""
        a, b = self.scaling.group.point(scaling), self.rotation.group.point(rotation)
        return (a.unsqueeze(-2) * b.unsqueeze(-3)).flatten(-3, -2)

    @staticmethod
    def _by_basis(action: Action, x: Elements, a: Algebra) -> Float[Tensor, "b basis d n"]:
        """$T_e(x)$ for each basis element $e$ of the group."""
        if action.group.trivial:
            return x.unsqueeze(-3)
        return a.by_basis(x, action.operation.side or "right", action.group.size, x.shape[-2])

    def _join(self, s: Elements, v: Elements) -> Elements:
        if self.vector.trivial:
            return s  # s . 1
        if self.scalar.trivial:
            return v  # 1 . v
        return self.score.join(self.algebra, s, v)

    def parametrized(self, parametrization: Parametrization) -> "ModelSpec":
        """Return the same model with all unit elements under another parametrization."""
        return replace(
            self,
            vector=self.vector.parametrized(parametrization),
            scaling=self.scaling.parametrized(parametrization),
            rotation=self.rotation.parametrized(parametrization),
        )

    def __repr__(self) -> str:
        return f"{self.name} ({', '.join(f'{column} {word}' for column, word in self.words().items())})"

    def words(self) -> dict[str, str]:
        """Return the row in words, from which :func:`row` makes it again."""
        parts = (self.scalar, self.vector, self.scaling, self.rotation, self.score)
        return dict(zip(COLUMNS, (part.name for part in parts), strict=True))


PATHS, _USUAL_MESSAGE = "Paths", "DistMult"  # Paths-ROW sends messages by a row; Paths alone by this one
COLUMNS = ("scalar", "vector", "scaling", "rotation", "score")


def row(name: str, scalar: str, vector: str, scaling: str, rotation: str, score: str) -> ModelSpec:
    """Return the model whose row of Table 1 reads so.

    >>> row("ModulE-CH", "C", "H", "GL(1,C)", "U_H(1)", "inner").query_size
    4
    """
    return ModelSpec(
        name,
        one_of("scalar group", scalar, SCALARS),
        one_of("vector group", vector, VECTORS),
        one_of("scaling group", scaling, SCALINGS),
        one_of("rotation group", rotation, ROTATIONS),
        one_of("score", score, SCORES),
    )


def _from(side: str, action: Action, moved: Group) -> bool:
    """Whether an action can be written as a product from this side."""
    return action.group.trivial or action.operation.side == side or moved.algebra.dim < H.dim


def _whole(group: Group) -> bool:
    """Elements of the group have all components of its algebra, and can be multiplied in it."""
    return group.size == group.algebra.dim


@cache
def _inside(small: Algebra, large: Algebra) -> bool:
    """The first basis elements of the large algebra are those of the small one."""
    d = small.dim
    inner = large.constants[:d, :d]
    return d <= large.dim and torch.equal(inner[..., :d], small.constants) and not inner[..., d:].any()


def parametrization(name: str) -> Parametrization:
    """Return the parametrization of unit elements of this name."""
    return one_of("parametrization", name, UNIT_PARAMETRIZATIONS)


MODELS = {name: row(*words) for name, words in ROWS.items()}


def specs(rows: Iterable[Row]) -> list[ModelSpec]:
    """Return the models of rows."""
    return [MODELS[row.name] for row in rows]


def spec_of(config: ModelConfig) -> ModelSpec:
    """Return the row that a configuration names, with the words it gives in place of the row's own.

    A named row with other words is no longer that model: its name gets a star.
    """
    given = {column: word for column in COLUMNS if (word := getattr(config, column))}
    if len(given) == len(COLUMNS):
        spec = row(config.name, **given)
    else:
        try:
            known = named(config.name)
        except UnknownNameError as error:
            if not given:
                raise
            more = ", ".join(f"model.{column}" for column in COLUMNS if column not in given)
            raise UnknownNameError(f"{error}; a row of your own also needs {more}") from None
        spec = row(known.name, **{**known.words(), **given})
    published = MODELS.get(spec.name.removeprefix(f"{PATHS}-"))
    if published and published.words() != spec.words():
        spec = replace(spec, name=f"{spec.name}*")
    if config.score_weights:
        spec = replace(spec, score=replace(spec.score, weights=config.score_weights))
    return spec.parametrized(parametrization(config.parametrization))


def named(name: str) -> ModelSpec:
    """Return the row of this name, whatever its case; ``Paths-ROW`` is the row along paths."""
    first, dash, rest = name.partition("-")
    if first.casefold() == PATHS.casefold():
        found = named(rest if dash else _USUAL_MESSAGE)
        return replace(found, name=f"{PATHS}-{found.name}")
    for known, spec in MODELS.items():
        if known.casefold() == name.casefold():
            return spec
    raise unknown("model", name, MODELS, "'modulekge models' lists them all")
