"""Write docs/models.md, every model with its size, the test of its formula and its results, from results/.

python scripts/tabulate_models.py docs/models.md
"""

import io
import json
import sys
from pathlib import Path

from rich.console import Console

from modulekge import render
from modulekge.algebra.parametrizations import UNIT_PARAMETRIZATIONS
from modulekge.models.references import reference
from modulekge.models.spec import specs
from modulekge.models.table import COMPARED, TABLE_1

RESULTS = Path(__file__).parent.parent / "results" / "small-graphs.json"
GRAPHS = ("UMLS", "Nations", "world")
TESTS = {  # in tests/models/test_table.py, each against a formula written out by hand
    "DistMult": "test_distmult",
    "RotatE": "test_rotate",
    "HAKE": "test_hake",
    "NagE": "test_nage_turns_by_true_rotation_matrices",
    "QuatE": "test_quate",
    "ModulE-RC": "test_rc_is_complex_in_polar_coordinates",
    "ModulE-RH": "test_rh",
    "ModulE-HH": "test_hh_and_its_interpretations",
    "TransE": "test_transe",
    "TransE-L2": "test_transe",
    "ComplEx": "test_complex",
    "NagE-SU2": "test_nage_su2_acts_on_pairs_of_complex_numbers_by_unitary_matrices",
    "DensE": "test_dense_is_the_mean_of_the_distances_there_and_back",
    "HopfE": "test_dense_is_the_mean_of_the_distances_there_and_back",
    "HopfE-fibre": "test_hopfe_lifts_to_the_fibre_of_the_hopf_map",
    "GrpQ8": "test_grpq8_multiplies_in_the_group_algebra_of_the_quaternion_group",
    "BiQUE": "test_bique_multiplies_quaternions_with_complex_components_after_a_translation",
    "RotE": "test_rote_translates_and_turns",
    "RotatE-xy": "test_the_cartesian_forms_score_as_the_polar_ones",
    "NagE-xy": "test_the_cartesian_forms_score_as_the_polar_ones",
    "QuatE-xy": "test_the_cartesian_forms_score_as_the_polar_ones",
}
ROWS = """# Models

Which models there are, what they are made of, how many numbers they store and how well they rank.

An entity is a scalar s in S and a unit vector v in V, joined as s ⊙ v; a relation moves s by T_S and v by
T_V; the score compares the moved head with the tail. A model is a row of this table (`modulekge models`;
with `--cite` references), and [a new model is one line](adding-a-model.md). Sizes are in units of k, the
number of blocks.
"""
HEAD = """Three rows differ from the paper's: DistMult, HAKE and ModulE-HH ([why](paper.md#interpretations)).

## Sizes, tests and results

Parameters are those of one entity and one relation for k blocks. Test MRR is that of the tuned recipe, seed
0, [filtered](evaluation.md). Each recipe is the best on valid of a few settings, not as many for each model,
so the order means little (`results/README.md`). Each formula is tested in `tests/models/test_table.py`
against one written out by hand, and some against PyKEEN (`make peers`). HopfE's row is DensE's word for
word; what distinguishes HopfE, the inverse Hopf map, is the row HopfE-fibre.
"""


def main(path: str) -> None:
    """Write the table."""
    found = {(r["dataset"], r["model"]): r["test_mrr"] for r in json.loads(RESULTS.read_text("utf-8"))}
    titles = ["model", "entity", "relation", "test of the formula", *GRAPHS, "proposed in"]
    rows = [titles, ["---"] * len(titles)]
    for spec in specs((*TABLE_1, *COMPARED)):
        sizes = [
            f"{sum(g.freedom for g in groups)}k" for groups in (spec.entity_groups, spec.relation_groups)
        ]
        scores = [f"{found[graph, spec.name]:.4f}" for graph in GRAPHS]
        rows.append([spec.name, *sizes, f"`{TESTS[spec.name]}`", *scores, reference(spec)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    Path(path).write_text(f"{ROWS}\n{table_1()}\n{HEAD}\n{table}\n", "utf-8")


def table_1() -> str:
    """The table of the paper as the program prints it, as a block of code."""
    console = Console(file=io.StringIO(), width=160)
    console.print(render.models_table(specs(TABLE_1), UNIT_PARAMETRIZATIONS["normalised"]))
    return "".join(f"    {line.rstrip()}\n" for line in console.file.getvalue().splitlines())


if __name__ == "__main__":
    main(sys.argv[1])
