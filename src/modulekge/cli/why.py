"""Commands that say why a run answers as it does (explain), and what its relations are to each other."""

from typing import Annotated

import typer

from modulekge.cli.app import Json, RunArgument, command


@command(epilog="Example: modulekge explain runs/demo France borders Spain -k 3")
def explain(
    run: RunArgument,
    head: Annotated[str, typer.Argument(metavar="HEAD", help="An entity, by name or label.")],
    relation: Annotated[str, typer.Argument(metavar="RELATION", help="A relation, by name or label.")],
    tail: Annotated[str, typer.Argument(metavar="TAIL", help="An entity, by name or label.")],
    k: Annotated[int, typer.Option("-k", help="How many of each kind at most.")] = 5,
    as_json: Json = False,
) -> None:
    """Say why a triple scores as it does: training facts, paths and like entities that speak for it."""


@command(epilog="Example: modulekge relations runs/demo --all")
def relations(
    run: RunArgument,
    every: Annotated[bool, typer.Option("--all", help="Show all that the model alone believes.")] = False,
    as_json: Json = False,
) -> None:
    """Say what relations are to each other: symmetric, inverse, equal, composed, commuting."""
