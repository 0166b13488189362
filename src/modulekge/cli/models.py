"""Commands about models."""

import json
from itertools import chain
from typing import Annotated

import typer

from modulekge import render
from modulekge.algebra.parametrizations import UNIT_PARAMETRIZATIONS
from modulekge.cli.app import Json, app
from modulekge.models.references import reference
from modulekge.models.spec import parametrization as parametrization_named
from modulekge.models.table import ABLATIONS, COMPARED, CORRECTED, READINGS, TABLE_1, same_rows


@app.command(epilog="Example: modulekge models --parametrization exponential")
def models(
    parametrization: Annotated[
        str, typer.Option(help=f"Parametrization of unit elements: {', '.join(UNIT_PARAMETRIZATIONS)}.")
    ] = "normalised",
    cite: Annotated[bool, typer.Option(help="Print the reference of each model instead.")] = False,
    as_json: Json = False,
) -> None:
    """Print Table 1 of the paper from the rows, with ablations and readings.

    Columns entity and relation count parameters (the dimension of the groups), stored the numbers kept
    under the parametrization (entity / relation), query the length of the vector that meets the entity table;
    k is the number of blocks.
    """
    chosen = parametrization_named(parametrization)
    groups = {
        "Table 1": TABLE_1,
        "Compared with": COMPARED,
        "Ablations": ABLATIONS,
        "Readings of ModulE-HH": READINGS,
    }
    if as_json:
        rows = [{"name": s.name, **s.words(), "query": s.query_size} for g in groups.values() for s in g]
        print(json.dumps(rows))
        return
    out = render.console()
    if cite:
        for spec in chain(*groups.values()):
            out.print(f"{spec.name}: {reference(spec)}")
        return
    for title, specs in groups.items():
        out.print(title, style="bold")
        out.print(render.models_table(specs, chosen))
        out.print()
    out.print("Rows of Table 1 that differ from the paper's", style="bold")
    for name, difference in CORRECTED.items():
        out.print(f"- {name} {difference}")
    out.print("\nOne row under several names", style="bold")
    for names in same_rows():
        out.print("- " + " = ".join(names))
