"""The studies there are, as data: the paper's tables and figures, and what goes beside them."""

from typing import Any

from modulekge.studies.paper import METRICS, TABLE_2, TABLE_3, TABLE_4
from modulekge.studies.study import VALID, Change, Study


def _as_large_as_hh(variant: dict[str, Any]) -> dict[str, Any]:
    """ComplEx with the numbers that ModulE-HH needs: 2 per block against 7."""
    return {**variant, "model.k": round(variant["model.k"] * 7 / 2)}


def _in_proportion_to_500(variant: dict[str, Any]) -> dict[str, Any]:
    r"""RotatE as its authors spread it: entities from $\pm (\gamma + 2) / k$, the fewer blocks the larger.

    Adam moves a number by the rate, so that theirs, chosen for 500 blocks, goes with the spread.
    """
    k = variant["model.k"]
    return {**variant, "model.scalar_scale": round(8 / 3**0.5 / k, 6), "train.lr": round(5e-5 * 500 / k, 8)}


_OURS = ("ModulE-RC", "ModulE-RH", "ModulE-HH")
_BASELINES = ("TransE", "DistMult", "ComplEx", "RotatE-xy", "QuatE-xy", "NagE-xy", "DensE", "HopfE", "GrpQ8")
_OTHERS = ("ComplEx", "BiQUE")
_SIZES = (8, 16, 32, 64, 128, 256, 512)
_HH = ("ModulE-HH",)
_INTERPRETED = ("ModulE-HH", "ModulE-HH-unit", "ModulE-HH-left", "ModulE-HH-outer", "ModulE-HH-inner")
_FB, _WN = ("FB15k-237",), ("WN18RR",)
_LOGISTIC = ("loss.kind", "logistic")
_ALL_TAILS = ("loss.targets", "all")


def _searched(dataset: tuple[str, ...], stated: float, epochs: int) -> tuple[Change, ...]:
    """The logistic loss with regularizers from none to the paper's, each briefly, compared on valid alone."""
    brief = ("train.epochs", epochs), ("train.eval_every", 10)
    return tuple(
        Change((_LOGISTIC, ("regularizer.weight", rate), *brief), _HH, dataset, "valid")
        for rate in (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, stated)
    )


_BEST_OF_SEARCH = ("regularizer.weight", 0.01)  # on both data sets
_INTERPRETATIONS = (
    Change(),
    *(
        Change((("train.decay", factor),), _HH, _WN)
        for factor in (0.9, 0.1, 0.9886)  # 1 - .1 an epoch, or .1 over 22; .1 an epoch; .1 over 200
    ),
    *_searched(_FB, 0.045, epochs=20),
    *_searched(_WN, 0.08, epochs=30),
    Change((_LOGISTIC, _BEST_OF_SEARCH, ("train.epochs", 80)), _HH, _FB),
    Change((_LOGISTIC, _BEST_OF_SEARCH), _HH, _WN),
    *(
        Change((*settings, *shorter), _HH, dataset)
        for settings in ((_ALL_TAILS,), (_LOGISTIC, _ALL_TAILS, _BEST_OF_SEARCH))
        for dataset, shorter in ((_FB, (("train.epochs", 60),)), (_WN, ()))
    ),
)

_MESSAGES = tuple(f"Paths-{row}" for row in ("DistMult", "ComplEx", "QuatE", *_OURS, "TransE"))
_PATHS = tuple(
    Change(((f"paths.{key}", value),), _MESSAGES[:1], split="valid")
    for key, values in (
        ("layers", (2, 3, 4, 6, 8)),
        ("d", (8, 16, 32, 64)),
        ("aggregation", ("mean", "sum")),
        ("dropout", (0.0, 0.1, 0.2)),
        ("prior", ("none",)),
    )
    for value in values
)

STUDIES = {
    study.name: study
    for study in (
        Study(
            "results",
            "Table 2: link prediction",
            ("FB15k-237", "WN18RR"),
            (*_OURS, *_BASELINES),
            paper=TABLE_2,
        ),
        Study(
            "ablation",
            "Table 3: scalar, vector, both",
            ("FB15k-237", "WN18RR"),
            tuple(f"{model}{part}" for model in _OURS for part in ("-scalar", "-vector", "-rotation", "")),
            metrics=("mrr", "hits@1"),
            paper=TABLE_3,
        ),
        Study(
            "relations",
            "Table 4: MRR per relation",
            ("WN18RR",),
            ("RotatE-xy", "ModulE-HH"),
            paper=TABLE_4,
            relations=True,
        ),
        Study(
            "size",
            "MRR against embedding size",
            ("WN18RR",),
            ("RotatE-xy", "ComplEx", "ModulE-RH", "ModulE-HH"),
            changes=tuple(Change((("model.k", k),)) for k in _SIZES),
            metrics=("mrr",),
            matched={"ComplEx": _as_large_as_hh, "RotatE-xy": _in_proportion_to_500},
        ),
        Study(
            "convergence",
            "Valid MRR per epoch, the first 30 and to the best",
            ("WN18RR",),
            _OURS,
            changes=(Change((("train.eval_every", 1), ("train.epochs", 30))), Change()),
            metrics=("mrr",),
        ),
        Study(
            "extended",
            "Table 2: the paper's settings, plus what it does not have",
            ("FB15k-237", "WN18RR"),
            _OURS,
            paper=TABLE_2,
            ending="-extended",
        ),
        Study(
            "best",
            "Beyond Table 2: better recipes, ComplEx and BiQUE beside the figures of ModulE-HH",
            ("FB15k-237", "WN18RR"),
            (*_OURS, *_OTHERS),
            paper=TABLE_2 | {(data, m): TABLE_2[data, "ModulE-HH"] for data, _ in TABLE_2 for m in _OTHERS},
            ending="-best",
        ),
        Study(
            "interpretations",
            "ModulE-HH as the paper may be read: scaling, sides, loss, decay of the rate",
            (*_FB, *_WN),
            _INTERPRETED,
            changes=_INTERPRETATIONS,
            metrics=(VALID, *METRICS),
            paper=TABLE_2 | {(d, m): TABLE_2[d, "ModulE-HH"] for d in (*_FB, *_WN) for m in _INTERPRETED},
            recipes={"FB15k-237": "ModulE-HH", "WN18RR": "ModulE-HH-paper"},
        ),
        Study(
            "paths",
            "Rows as messages along paths; layers, states, aggregation, dropout and prior of one, on valid",
            (*_FB, *_WN, "UMLS", "Nations", "world"),
            _MESSAGES,
            changes=(Change(), *_PATHS),
            metrics=(VALID, *METRICS),
            recipes=dict.fromkeys((*_FB, *_WN, "UMLS", "Nations", "world"), "Paths-DistMult"),
        ),
    )
}
