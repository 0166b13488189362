"""Tables of models."""

from collections.abc import Iterable

from rich.table import Table

from modulekge.algebra.groups import Group as NumberGroup
from modulekge.algebra.parametrizations import Parametrization
from modulekge.models.spec import ModelSpec
from modulekge.render.terminal import new_table


def models_table(specs: Iterable[ModelSpec], parametrization: Parametrization) -> Table:
    """Table 1 from the rows, with what an entity, a relation and a query cost per block."""
    table = new_table(
        "Model", "Scalar S", "Vector V", "Scaling T_S", "Rotation T_V", "Norm", "Score",
        " entity", " relation", " stored", " query",
    )  # fmt: skip
    for spec in specs:
        stored = spec.parametrized(parametrization)
        table.add_row(
            spec.name,
            *(word for column, word in spec.words().items() if column != "score"),
            f"N_{(spec.scalar if spec.vector.trivial else spec.vector).name}/R",
            spec.score.name,
            _per_block(g.freedom for g in spec.entity_groups),
            _per_block(g.freedom for g in spec.relation_groups),
            f"{_widths(stored.entity_groups)} / {_widths(stored.relation_groups)}",
            f"{spec.query_size}k",
        )
    return table


def _per_block(counts: Iterable[int]) -> str:
    return f"{sum(counts)}k"


def _widths(groups: Iterable[NumberGroup]) -> str:
    return _per_block(group.width for group in groups)
