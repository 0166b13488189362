"""The table of data sets that are known by name."""

from collections.abc import Iterable

from rich.table import Table

from modulekge.data.benchmarks import WORLD, Benchmark
from modulekge.render.terminal import new_table


def datasets_table(benchmarks: Iterable[Benchmark], places: dict[str, str]) -> Table:
    """The known data sets and where each would be read from."""
    table = new_table("Name", " entities", " relations", " train", " valid", " test", "where", "licence")
    for b in benchmarks:
        sizes = (b.entities, b.relations, *b.triples.values())
        table.add_row(b.name, *(f"{size:,}" for size in sizes), places[b.name], _short(b.licence))
    table.add_row(WORLD, *("",) * 5, "in this package", "CC BY 4.0; Unicode License V3")
    return table


def _short(licence: str) -> str:
    return licence.split(" (")[0].split(";")[0]
