"""Commands that say why: what speaks for a triple, and what relations are to each other."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from modulekge import render
from modulekge.cli.app import Json, RunArgument, app, print_notes, print_untrained
from modulekge.explain.explanation import explain as explain_by_name
from modulekge.explain.relation_patterns import relation_patterns
from modulekge.run.run import load


@app.command(epilog="Example: modulekge explain runs/demo France borders Spain -k 3")
def explain(
    run: RunArgument,
    head: Annotated[str, typer.Argument(metavar="HEAD", help="An entity, by name or label.")],
    relation: Annotated[str, typer.Argument(metavar="RELATION", help="A relation, by name or label.")],
    tail: Annotated[str, typer.Argument(metavar="TAIL", help="An entity, by name or label.")],
    k: Annotated[int, typer.Option("-k", help="How many of each kind at most.")] = 5,
    as_json: Json = False,
) -> None:
    """Say why a triple scores as it does: training facts, paths and like entities that speak for it."""
    loaded = load(run)
    print_notes(loaded.dataset)
    explanation = explain_by_name(loaded, head, relation, tail, k)
    print_untrained(loaded.dataset, head, tail)
    if as_json:
        print(json.dumps(asdict(explanation), ensure_ascii=False))
    else:
        render.console().print(render.explanation_view(explanation))


@app.command(epilog="Example: modulekge relations runs/demo --all")
def relations(
    run: RunArgument,
    every: Annotated[bool, typer.Option("--all", help="Show all that the model alone believes.")] = False,
    as_json: Json = False,
) -> None:
    """Say what relations are to each other: symmetric, inverse, equal, composed, commuting."""
    algebra = relation_patterns(run)
    if as_json:
        print(json.dumps(asdict(algebra), ensure_ascii=False))
    else:
        render.console().print(render.relation_patterns_view(algebra, every))
