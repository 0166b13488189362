"""Commands about data sets."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from modulekge import render
from modulekge.cli.graph import GraphOptions
from modulekge.commands.graph import open_graph, print_found
from modulekge.data.dataset import Dataset
from modulekge.data.doctor import STAGES, Finding, Findings, doctor, examine_files
from modulekge.data.readers.columns import named_columns
from modulekge.data.statistics import statistics_of
from modulekge.data.synthetic.generate import STRUCTURES, synthesise
from modulekge.data.writing import structure, totals, write_graph
from modulekge.errors import DataError
from modulekge.run import portfolio
from modulekge.run.estimate import Estimate, needs
from modulekge.run.plan import plan


def data_info(graph: GraphOptions, every: bool, as_json: bool) -> None:
    """Count a data set: sizes, unseen entities, leaks, cardinality of each relation."""
    found = statistics_of(open_graph(graph))
    print_found(asdict(found), lambda: render.statistics_view(found, every), as_json)


def data_doctor(graph: GraphOptions, model: str | None, as_json: bool) -> None:
    """Look for what would spoil training or its figures, and reckon what training needs here."""
    try:
        dataset, found, needed = _examined(graph, model)
    except DataError as error:
        path, columns = Path(graph.data), named_columns(graph.columns)
        found = examine_files(path, columns, graph.header.chosen) if path.exists() else Findings()
        if as_json:
            _print_json(found or [Finding("problem", str(error), "")], None)
        if as_json or len(found) < 2:
            raise
        render.console().print(render.findings_view(graph.data, found))
        raise DataError(f"{graph.data}: cannot be read; mend the lines above") from error
    if as_json:
        _print_json(found, needed)
    else:
        render.console().print(render.findings_view(dataset.name, found), render.estimate_view(needed))


def _examined(graph: GraphOptions, model: str | None) -> tuple[Dataset, Findings, Estimate]:
    with render.stages_display(2 + len(STAGES)) as begin:
        begin("reading")
        dataset = open_graph(graph)
        found = doctor(dataset, begin)
        begin("reckoning what training needs")
        if model is None and portfolio.is_default(dataset):
            return dataset, found, portfolio.needs_of_mixture(dataset)
        planned = plan(dataset, model)
        return dataset, found, needs(dataset, planned.config, planned.pace)


def _print_json(found: Sequence[Finding], needed: Estimate | None) -> None:
    parts = {"findings": [asdict(finding) for finding in found], "needs": needed and asdict(needed)}
    print(json.dumps(parts, ensure_ascii=False))


def data_synth(
    entities: int,
    relations: int,
    triples: int,
    pattern: list[str] | None,
    held_out: int,
    seed: int,
    packed: bool,
    out: Path,
    as_json: bool,
) -> None:
    """Make a graph of any size with known structure, so that quality can be checked at size."""
    graph = synthesise(entities, relations, triples, pattern or STRUCTURES, held_out, seed)
    with render.progress_display("writing", triples, len) as watch:
        write_graph(graph, out, packed, watch)
    if as_json:
        print(json.dumps({**structure(graph), "path": str(out)}))
    else:
        render.console().print(render.synthetic_view(graph, totals(graph)))
    render.console(stderr=True).print(f"kept in {out}; train on it: modulekge train {out}")
