"""Table 1 of the paper, its ablations, and the readings of ModulE-HH, as data.

Where the paper's table and its text or the models' own papers differ, the row follows the model (see
docs/paper.md): DistMult scores by inner product; HAKE scores modulus and phase apart and has a bias;
ModulE-HH scales by any quaternion, and its unit form is the reading "ModulE-HH-unit".
"""

from dataclasses import replace

from modulekge.algebra.algebra import H
from modulekge.algebra.groups import FIXED_SCALE, FIXED_TURN, TRIVIAL, left, rotation, scaling
from modulekge.config import ModelConfig
from modulekge.errors import unknown
from modulekge.models.spec import COLUMNS, ModelSpec, parametrization, row

# fmt: off
TABLE_1 = (
    #   model        S    V      T_S        T_V       score
    row("DistMult",  "R", "R",   "GL(1)",   "V^f",    "inner"),
    row("RotatE",    "R", "C",   "S^f",     "U(1)",   "distance"),
    row("HAKE",      "R", "R^2", "GL(1)+b", "SO(2)",  "split"),
    row("NagE",      "R", "R^3", "S^f",     "SO(3)",  "distance"),
    row("QuatE",     "R", "H",   "S^f",     "U_H(1)", "inner"),
    row("ModulE-RC", "R", "C",   "GL(1)",   "U(1)",   "inner"),
    row("ModulE-RH", "R", "H",   "GL(1)",   "U_H(1)", "inner"),
    row("ModulE-HH", "H", "H",   "GL(1,H)", "U_H(1)", "inner"),
)
# fmt: on

RC, RH, HH = TABLE_1[-3:]

# fmt: off
COMPARED = (  # the other systems of Table 2, and what is published of their kind
    #   model           S        V            T_S            T_V       score
    row("TransE",       "R",     "1",         "(R,+)",       "V^f",    "distance"),
    row("TransE-L2",    "R",     "1",         "(R,+)",       "V^f",    "euclidean"),
    row("ComplEx",      "C",     "1",         "GL(1,C)",     "V^f",    "inner"),
    row("NagE-SU2",     "R",     "H",         "S^f",         "U_H(1)", "distance"),
    row("DensE",        "R^3",   "1",         "R+ x SO(3)",  "V^f",    "weighted"),
    row("HopfE",        "R^3",   "1",         "R+ x SO(3)",  "V^f",    "weighted"),
    row("HopfE-fibre",  "R",     "R^3 x S^1", "GL(1)",       "SO(3)",  "lifted"),
    row("GrpQ8",        "R[Q8]", "1",         "GL(1,R[Q8])", "V^f",    "inner"),
    row("BiQUE",        "H_C",   "1",         "Aff(1,H_C)",  "V^f",    "inner"),
    row("RotE",         "C",     "1",         "E(1,C)",      "V^f",    "squared"),
    # The entities of these in Cartesian coordinates, as code of their authors, where there is any, holds them
    row("RotatE-xy",    "C",     "1",         "U(1)",        "V^f",    "distance"),
    row("NagE-xy",      "R^3",   "1",         "SO(3)",       "V^f",    "distance"),
    row("QuatE-xy",     "H",     "1",         "U_H(1)",      "V^f",    "inner"),
)
# fmt: on

ABLATIONS = (
    *(
        replace(whole, name=f"{whole.name}-scalar", vector=TRIVIAL, rotation=FIXED_TURN)
        for whole in (RC, RH, HH)
    ),
    *(
        replace(whole, name=f"{whole.name}-vector", scalar=TRIVIAL, scaling=FIXED_SCALE)
        for whole in (RC, RH, HH)
    ),
    # The vector as what varies from head to tail: entities have both parts, relations rotate and no more
    *(replace(whole, name=f"{whole.name}-rotation", scaling=FIXED_SCALE) for whole in (RC, RH, HH)),
)

READINGS = (
    replace(HH, name="ModulE-HH-unit", scaling=rotation(H)),
    replace(HH, name="ModulE-HH-left", scaling=scaling(H, left), rotation=rotation(H, left)),
    replace(HH, name="ModulE-HH-outer", scaling=scaling(H, left)),
    replace(HH, name="ModulE-HH-inner", rotation=rotation(H, left)),
)

CORRECTED = {  # rows of Table 1 that differ from the paper's, and in what
    "DistMult": "scores by inner product; the paper's table says distance",
    "HAKE": "has a bias and scores modulus and phase apart, as its authors do",
    "ModulE-HH": "scales by any quaternion; the paper's unit scaling is ModulE-HH-unit",
}

MODELS = {spec.name: spec for spec in (*TABLE_1, *COMPARED, *ABLATIONS, *READINGS)}


def spec_of(config: ModelConfig) -> ModelSpec:
    """Return the row that a configuration names, with the words it gives in place of the row's own.

    A named row with other words is no longer that model: its name gets a star.
    """
    given = {column: word for column in COLUMNS if (word := getattr(config, column))}
    if len(given) == len(COLUMNS):
        spec = row(config.name, **given)
    else:
        known = named(config.name)
        spec = row(known.name, **{**known.words(), **given})
    published = MODELS.get(spec.name)
    if published and published.words() != spec.words():
        spec = replace(spec, name=f"{spec.name}*")
    if config.score_weights:
        spec = replace(spec, score=replace(spec.score, weights=config.score_weights))
    return spec.parametrized(parametrization(config.parametrization))


def same_rows() -> list[tuple[str, ...]]:
    """Return the names of models that are one row: they score alike with the same weights."""
    rows: dict[tuple[str, ...], tuple[str, ...]] = {}
    for spec in MODELS.values():
        words = tuple(spec.words().values())
        rows[words] = (*rows.get(words, ()), spec.name)
    return [names for names in rows.values() if len(names) > 1]


def named(name: str) -> ModelSpec:
    """Return the row of this name, whatever its case."""
    for known, spec in MODELS.items():
        if known.casefold() == name.casefold():
            return spec
    raise unknown("model", name, MODELS, "'modulekge models' lists them all")
