"""Commands about models."""

import json
from itertools import chain

from modulekge import render
from modulekge.models.messages import is_message
from modulekge.models.references import reference
from modulekge.models.spec import MODELS, PATHS, named, specs
from modulekge.models.spec import parametrization as parametrization_named
from modulekge.models.table import ABLATIONS, COMPARED, CORRECTED, INTERPRETATIONS, TABLE_1, same_rows


def models(parametrization: str, cite: bool, as_json: bool) -> None:
    """Print Table 1 of the paper from the rows, with ablations and interpretations."""
    chosen = parametrization_named(parametrization)
    groups = {
        "Table 1": specs(TABLE_1),
        "Compared with": specs(COMPARED),
        "Ablations": specs(ABLATIONS),
        "Interpretations of ModulE-HH": specs(INTERPRETATIONS),
    }
    if as_json:
        found = [{"name": s.name, **s.words(), "query": s.query_size} for g in groups.values() for s in g]
        print(json.dumps(found))
        return
    out = render.console()
    if cite:
        for spec in chain(*groups.values()):
            out.print(f"{spec.name}: {reference(spec)}")
        return
    for title, rows in groups.items():
        out.print(title, style="bold")
        out.print(render.models_table(rows, chosen))
        out.print()
    out.print("Rows of Table 1 that differ from the paper's", style="bold")
    for name, difference in CORRECTED.items():
        out.print(f"- {name} {difference}")
    others = [name for name, spec in MODELS.items() if not is_message(spec)]
    out.print("\nRows along paths", style="bold")
    out.print(
        f"- {PATHS}-ROW sends messages along the edges by the row, such as {PATHS}-ModulE-HH; {PATHS} alone"
    )
    out.print(f"  is {named(PATHS).name}. Not as messages: {', '.join(others)}")
    out.print("\nOne row under several names", style="bold")
    for names in same_rows():
        out.print("- " + " = ".join(names))
