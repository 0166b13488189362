"""Table 1 of the paper, its ablations, and the interpretations of ModulE-HH, as data: a model is a row.

Where the paper's table and its text or the models' own papers differ, the row follows the model (see
docs/paper.md); ``CORRECTED`` lists those rows.
"""

from typing import NamedTuple


class Row(NamedTuple):
    r"""A model in words: $(S, V, T_S, T_V)$ and the score of $T_{s_r}(s_h) \odot T_{v_r}(v_h)$."""

    name: str
    scalar: str
    vector: str
    scaling: str
    rotation: str
    score: str

    @property
    def words(self) -> tuple[str, ...]:
        """The row without its name."""
        return self[1:]


# fmt: off
TABLE_1 = (
    #   model        S    V      T_S        T_V       score
    Row("DistMult",  "R", "R",   "GL(1)",   "V^f",    "inner"),
    Row("RotatE",    "R", "C",   "S^f",     "U(1)",   "distance"),
    Row("HAKE",      "R", "R^2", "GL(1)+b", "SO(2)",  "split"),
    Row("NagE",      "R", "R^3", "S^f",     "SO(3)",  "distance"),
    Row("QuatE",     "R", "H",   "S^f",     "U_H(1)", "inner"),
    Row("ModulE-RC", "R", "C",   "GL(1)",   "U(1)",   "inner"),
    Row("ModulE-RH", "R", "H",   "GL(1)",   "U_H(1)", "inner"),
    Row("ModulE-HH", "H", "H",   "GL(1,H)", "U_H(1)", "inner"),
)
# fmt: on

RC, RH, HH = TABLE_1[-3:]

# fmt: off
COMPARED = (  # the other systems of Table 2, and what is published of their kind
    #   model           S        V            T_S            T_V       score
    Row("TransE",       "R",     "1",         "(R,+)",       "V^f",    "distance"),
    Row("TransE-L2",    "R",     "1",         "(R,+)",       "V^f",    "euclidean"),
    Row("ComplEx",      "C",     "1",         "GL(1,C)",     "V^f",    "inner"),
    Row("NagE-SU2",     "R",     "H",         "S^f",         "U_H(1)", "distance"),
    Row("DensE",        "R^3",   "1",         "R+ x SO(3)",  "V^f",    "weighted"),
    Row("HopfE",        "R^3",   "1",         "R+ x SO(3)",  "V^f",    "weighted"),
    Row("HopfE-fibre",  "R",     "R^3 x S^1", "GL(1)",       "SO(3)",  "lifted"),
    Row("GrpQ8",        "R[Q8]", "1",         "GL(1,R[Q8])", "V^f",    "inner"),
    Row("BiQUE",        "H_C",   "1",         "Aff(1,H_C)",  "V^f",    "inner"),
    Row("RotE",         "C",     "1",         "E(1,C)",      "V^f",    "squared"),
    # The entities of these in Cartesian coordinates, as code of their authors, where there is any, holds them
    Row("RotatE-xy",    "C",     "1",         "U(1)",        "V^f",    "distance"),
    Row("NagE-xy",      "R^3",   "1",         "SO(3)",       "V^f",    "distance"),
    Row("QuatE-xy",     "H",     "1",         "U_H(1)",      "V^f",    "inner"),
)
# fmt: on

ABLATIONS = (
    *(whole._replace(name=f"{whole.name}-scalar", vector="1", rotation="V^f") for whole in (RC, RH, HH)),
    *(whole._replace(name=f"{whole.name}-vector", scalar="1", scaling="S^f") for whole in (RC, RH, HH)),
    # The vector as what varies from head to tail: entities have both parts, relations rotate and no more
    *(whole._replace(name=f"{whole.name}-rotation", scaling="S^f") for whole in (RC, RH, HH)),
)

INTERPRETATIONS = (
    HH._replace(name="ModulE-HH-unit", scaling="U_H(1)"),
    HH._replace(name="ModulE-HH-left", scaling="GL(1,H) left", rotation="U_H(1) left"),
    HH._replace(name="ModulE-HH-outer", scaling="GL(1,H) left"),
    HH._replace(name="ModulE-HH-inner", rotation="U_H(1) left"),
)

CORRECTED = {  # rows of Table 1 that differ from the paper's, and in what
    "DistMult": "scores by inner product; the paper's table says distance",
    "HAKE": "has a bias and scores modulus and phase apart, as its authors do",
    "ModulE-HH": "scales by any quaternion; the paper's unit scaling is ModulE-HH-unit",
}

ROWS = {row.name: row for row in (*TABLE_1, *COMPARED, *ABLATIONS, *INTERPRETATIONS)}


def same_rows() -> list[tuple[str, ...]]:
    """Return the names of models that are one row: they score alike with the same weights."""
    names: dict[tuple[str, ...], tuple[str, ...]] = {}
    for row in ROWS.values():
        names[row.words] = (*names.get(row.words, ()), row.name)
    return [found for found in names.values() if len(found) > 1]
