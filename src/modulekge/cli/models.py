"""Commands about models."""

from typing import Annotated

import typer

from modulekge.choices import PARAMETRIZATIONS
from modulekge.cli.app import Json, command


@command(epilog="Example: modulekge models --parametrization exponential")
def models(
    parametrization: Annotated[
        str, typer.Option(help=f"Parametrization of unit elements: {', '.join(PARAMETRIZATIONS)}.")
    ] = "normalised",
    cite: Annotated[bool, typer.Option(help="Print the reference of each model instead.")] = False,
    as_json: Json = False,
) -> None:
    """Print Table 1 of the paper from the rows, with ablations and interpretations.

    Columns entity and relation count parameters (the dimension of the groups), stored the numbers kept
    under the parametrization (entity / relation), query the length of the vector that meets the entity table;
    k is the number of blocks.
    """
