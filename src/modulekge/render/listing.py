"""The tables of runs and of data sets known by name, which need no PyTorch."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from modulekge.data.benchmarks import WORLD, Benchmark
from modulekge.render.terminal import format_number, new_table
from modulekge.run.listing import RunLine

_STYLES = {"finished": "green", "training": "cyan", "damaged": "red"}


def runs_table(lines: Iterable[RunLine]) -> Table:
    """A line for each run."""
    table = new_table(
        "run", "data", "model", " k", " epochs", " valid MRR", " test MRR", " seconds", "state"
    )  # fmt: skip
    for line in lines:
        done = "" if line.epochs is None else f"{line.epochs} of {line.asked}"
        seconds = "" if line.seconds is None else f"{line.seconds:,.1f}"
        state = f"{line.state}: {line.reason}" if line.reason else line.state
        table.add_row(
            line.name, line.data or "", line.model or "", str(line.k or ""), done,
            format_number(line.valid_mrr), format_number(line.test_mrr), seconds,
            Text(state, _STYLES.get(line.state, "")),
        )  # fmt: skip
    return table


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
