"""Each row: its size, its formula as its own paper writes it, and that it can learn."""

import re
from itertools import product

import pytest
import torch

from modulekge.algebra.groups import ROTATIONS, SCALARS, SCALINGS, VECTORS
from modulekge.algebra.parametrizations import UNIT_PARAMETRIZATIONS
from modulekge.algebra.scores import SCORES
from modulekge.config import Config, make_config
from modulekge.errors import ModulekgeError
from modulekge.evaluation.evaluate import rank
from modulekge.models.embedding import Embedding
from modulekge.models.references import reference
from modulekge.models.spec import MODELS, named, row, spec_of
from modulekge.models.table import ABLATIONS, INTERPRETATIONS, TABLE_1
from modulekge.training.fit import fit
from modulekge.training.optimizers import make_optimizer
from modulekge.training.records import EpochRecord

close = torch.testing.assert_close
EACH = pytest.mark.parametrize("spec", MODELS.values(), ids=MODELS)
CHARTS = pytest.mark.parametrize("parametrization", UNIT_PARAMETRIZATIONS.values(), ids=UNIT_PARAMETRIZATIONS)
H, R = torch.tensor([0, 3, 5]), torch.tensor([1, 0, 3])


def drawn(spec, k: int = 4) -> Embedding:
    model = Embedding(spec, 6, 4, k).to(torch.get_default_dtype())
    return model.draw(torch.Generator().manual_seed(1), 1.0, 1.0)


def parts(name: str, parametrization: str = "normalised"):
    """Scalars, unit vectors, scalings, unit rotations of a model: what a paper calls s, v, s_r, v_r."""
    spec = MODELS[name].parametrized(UNIT_PARAMETRIZATIONS[parametrization])
    model = drawn(spec)
    groups = (spec.scalar, spec.vector, spec.scaling.group, spec.rotation.group)
    tables = (model.entity_scalar, model.entity_vector, model.relation_scaling, model.relation_rotation)
    return model, *(group.point(table) for group, table in zip(groups, tables, strict=True))


def hamilton(x, y):
    """The product of quaternions as QuatE's authors write it out."""
    (s, x, y_, z), (p, q, r, t) = x.unbind(-2), y.unbind(-2)
    return torch.stack(
        [
            s * p - x * q - y_ * r - z * t,
            s * q + x * p + y_ * t - z * r,
            s * r - x * t + y_ * p + z * q,
            s * t + x * r - y_ * q + z * p,
        ],
        -2,
    )


def test_the_rows_of_the_paper():
    assert [spec.name for spec in TABLE_1] == [
        "DistMult", "RotatE", "HAKE", "NagE", "QuatE", "ModulE-RC", "ModulE-RH", "ModulE-HH",
    ]  # fmt: skip
    assert len(ABLATIONS) == 9
    assert len(INTERPRETATIONS) == 4


SIZES = {  # parameters per entity and relation, length of a query, in units of k, from the papers
    "DistMult": (1, 1, 1), "RotatE": (2, 1, 2), "HAKE": (2, 3, 4), "NagE": (3, 3, 3), "QuatE": (4, 3, 4),
    "ModulE-RC": (2, 2, 2), "ModulE-RH": (4, 4, 4), "ModulE-HH": (7, 7, 4),
    "ModulE-RC-scalar": (1, 1, 1), "ModulE-RH-scalar": (1, 1, 1), "ModulE-HH-scalar": (4, 4, 4),
    "ModulE-RC-vector": (1, 1, 2), "ModulE-RH-vector": (3, 3, 4), "ModulE-HH-vector": (3, 3, 4),
    "ModulE-RC-rotation": (2, 1, 2), "ModulE-RH-rotation": (4, 3, 4), "ModulE-HH-rotation": (7, 3, 4),
    "ModulE-HH-unit": (7, 6, 4), "ModulE-HH-left": (7, 7, 4), "ModulE-HH-outer": (7, 7, 4),
    "ModulE-HH-inner": (7, 7, 4),
    "TransE": (1, 1, 1), "TransE-L2": (1, 1, 1), "ComplEx": (2, 2, 2), "NagE-SU2": (4, 3, 4),
    "DensE": (3, 4, 4), "HopfE": (3, 4, 4), "HopfE-fibre": (4, 4, 4), "GrpQ8": (8, 8, 8), "BiQUE": (8, 16, 8),
    "RotE": (2, 3, 2), "RotatE-xy": (2, 1, 2), "NagE-xy": (3, 3, 3), "QuatE-xy": (4, 3, 4),
}  # fmt: skip


@EACH
def test_parameter_counts(spec):
    entity, relation, query = SIZES[spec.name]
    assert sum(g.freedom for g in spec.entity_groups) == entity
    assert sum(g.freedom for g in spec.relation_groups) == relation
    assert spec.query_size == query
    minimal = spec.parametrized(UNIT_PARAMETRIZATIONS["exponential"])
    stored = {name: value.numel() for name, value in drawn(minimal, k=5).named_parameters()}
    assert stored["entity_scalar"] + stored["entity_vector"] == 6 * 5 * entity
    assert stored["relation_scaling"] + stored["relation_rotation"] == 4 * 5 * relation


@pytest.mark.usefixtures("double")
@CHARTS
@EACH
def test_score_is_that_of_the_moved_head_with_the_tail_and_all_slopes_are_finite(spec, parametrization):
    model = drawn(spec.parametrized(parametrization))
    scores = model(H, R)
    assert scores.shape == (3, 6)
    one_by_one = torch.cat(
        [
            model.scores(model.queries(H[i : i + 1], R[i : i + 1]), model.entities()[j : j + 1])
            for i in range(3)
            for j in range(6)
        ]
    ).reshape(3, 6)
    close(scores, one_by_one)
    scores.square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.numel())


@pytest.mark.usefixtures("double")
def test_distmult():
    model, s, _, r, _ = parts("DistMult")
    close(model(H, R), torch.einsum("bn,bn,en->be", s[H][:, 0], r[R][:, 0], s[:, 0]))


@pytest.mark.usefixtures("double")
def test_rotate():
    model, s, v, _, r = parts("RotatE", "exponential")
    entities = s[:, 0] * torch.complex(*v.unbind(1))
    turns = torch.polar(torch.ones(4, 4), model.relation_rotation[:, 0])
    close(torch.complex(*r.unbind(1)), turns)
    close(model(H, R), -((entities[H] * turns[R])[:, None] - entities).abs().sum(-1))


@pytest.mark.usefixtures("double")
def test_hake():
    """-w_m ||m_h (m_r + b) - m_t (1 - b)||_2 - w_p sum |sin((p_h + p_r - p_t) / 2)|, b bounded."""
    model, *_ = parts("HAKE", "exponential")
    model.score_weights.data.copy_(torch.tensor([0.7, 1.3]))
    m, phase = model.entity_scalar[:, 0], model.entity_vector[:, 0]
    m_r, bias = model.relation_scaling.unbind(1)
    model.relation_scaling.data[:, 1].normal_(std=3)
    turn = model.relation_rotation[:, 0]
    expected = torch.empty(3, 6)
    for i, (h, r) in enumerate(zip(H, R, strict=True)):
        for t in range(6):
            mod = m_r[r].abs()
            b = bias[r].clamp(max=1)
            b = torch.where(b < -mod, -mod, b)
            modulus = torch.linalg.vector_norm(m[h] * (mod + b) - m[t] * (1 - b))
            angle = torch.sin((phase[h] + turn[r] - phase[t]) / 2).abs().sum()
            expected[i, t] = -0.7 * modulus - 1.3 * angle
    close(model(H, R), expected)


@pytest.mark.usefixtures("double")
def test_nage_turns_by_true_rotation_matrices():
    """SO3E: t ~ R h, R by Rodrigues' formula from the axis and angle that the quaternion stands for."""
    model, s, v, _, g = parts("NagE")
    entities = s * v
    angle = 2 * torch.acos(g[:, 0])
    axis = g[:, 1:] / torch.linalg.vector_norm(g[:, 1:], dim=1, keepdim=True)
    x, y, z = axis.unbind(1)
    zero = torch.zeros_like(x)
    cross = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).reshape(*x.shape, 3, 3)
    sine, cosine = angle.sin()[..., None, None], angle.cos()[..., None, None]
    matrices = torch.eye(3) + sine * cross + (1 - cosine) * cross @ cross
    moved = torch.einsum("bnij,bjn->bin", matrices[R], entities[H])
    close(model(H, R), -torch.linalg.vector_norm(moved[:, None] - entities, dim=2).sum(-1))


@pytest.mark.usefixtures("double")
def test_quate():
    model, s, v, _, r = parts("QuatE")
    entities = s * v
    close(model(H, R), torch.einsum("bdn,edn->be", hamilton(entities[H], r[R]), entities))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("name", "p"), [("TransE", 1), ("TransE-L2", 2)])
def test_transe(name, p):
    model, e, _, r, _ = parts(name)
    close(model(H, R), -torch.linalg.vector_norm((e[H] + r[R])[:, None, 0] - e[:, 0], p, dim=-1))


@pytest.mark.usefixtures("double")
def test_rote_translates_and_turns():
    model, e, _, g, _ = parts("RotE")
    e, b = torch.complex(*e.unbind(1)), torch.complex(*g[:, :2].unbind(1))
    moved = (e[H] + b[R]) * torch.complex(*g[:, 2:].unbind(1))[R]
    close(model(H, R), -(moved[:, None] - e).abs().square().sum(-1))


@pytest.mark.usefixtures("double")
def test_complex():
    model, e, _, r, _ = parts("ComplEx")
    e, r = torch.complex(*e.unbind(1)), torch.complex(*r.unbind(1))
    close(model(H, R), torch.einsum("bn,bn,en->be", e[H], r[R], e.conj()).real)


@pytest.mark.usefixtures("double")
def test_nage_su2_acts_on_pairs_of_complex_numbers_by_unitary_matrices():
    """A quaternion a + bi + cj + dk is the pair (a + bi, c + di); multiplying by a unit is SU(2)."""
    model, s, v, _, g = parts("NagE-SU2")
    e = s * v
    pairs = torch.stack([torch.complex(e[:, 0], e[:, 1]), torch.complex(e[:, 2], e[:, 3])], -1)
    alpha, beta = torch.complex(g[:, 0], g[:, 1]), torch.complex(g[:, 2], g[:, 3])
    rows = [torch.stack([alpha, -beta.conj()], -1), torch.stack([beta, alpha.conj()], -1)]
    matrix = torch.stack(rows, -2)
    close(matrix @ matrix.mH, torch.eye(2, dtype=matrix.dtype).expand_as(matrix))
    moved = torch.einsum("bnij,bnj->bni", matrix[R], pairs[H])
    close(model(H, R), -torch.linalg.vector_norm(moved[:, None] - pairs, dim=-1).sum(-1))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", ["DensE", "HopfE"])
def test_dense_is_the_mean_of_the_distances_there_and_back(name):
    """-(mean |rho R h - t| + mean |R^T t / rho - h|) / 2, both transforms computed; ours computes one."""
    model, e, _, r, _ = parts(name)
    rho = torch.linalg.vector_norm(r, dim=1)
    g = r / rho[:, None]
    pure = torch.cat([torch.zeros_like(e[:, :1]), e], 1)
    back = torch.cat([g[:, :1], -g[:, 1:]], 1)
    there = rho[R][:, None] * hamilton(hamilton(g[R], pure[H]), back[R])[:, 1:]
    expected = torch.empty(3, 6)
    for i in range(3):
        undone = (
            hamilton(hamilton(back[R[i]].expand(6, 4, 4), pure), g[R[i]].expand(6, 4, 4))[:, 1:] / rho[R[i]]
        )
        first = torch.linalg.vector_norm(there[i] - e, dim=1).mean(-1)
        second = torch.linalg.vector_norm(undone - e[H[i]], dim=1).mean(-1)
        expected[i] = -(first + second) / 2
    close(model(H, R), expected)


@pytest.mark.usefixtures("double")
def test_hopfe_lifts_to_the_fibre_of_the_hopf_map():
    model, s, v, s_r, g = parts("HopfE-fibre")
    model.relation_scaling.data.abs_()
    s_r = model.relation_scaling

    def lifted(length, x, fibre):
        start = torch.stack([torch.zeros_like(x[:, 0]), 1 + x[:, 0], x[:, 1], x[:, 2]], 1)
        angle = torch.stack([fibre[:, 0], fibre[:, 1], *torch.zeros(2, *fibre[:, 0].shape)], 1)
        return length * hamilton(start, angle) / (2 + 2 * x[:, :1]).sqrt()

    e = lifted(s, v[:, :3], v[:, 3:])
    # The Hopf map x -> q i q^-1 takes each lifted point back to where it was lifted from.
    i = torch.tensor([0.0, 1, 0, 0])[:, None].expand(6, 4, 4)
    conj = torch.cat([e[:, :1], -e[:, 1:]], 1)
    close(hamilton(hamilton(e, i), conj)[:, 1:], s**2 * v[:, :3])
    pure = torch.cat([torch.zeros(3, 1, 4), v[H][:, :3]], 1)
    turned = hamilton(hamilton(g[R], pure), torch.cat([g[R][:, :1], -g[R][:, 1:]], 1))[:, 1:]
    query = lifted(s_r[R] * s[H], turned, v[H][:, 3:])
    close(model(H, R), -torch.linalg.vector_norm(query[:, None] - e, dim=2).sum(-1))


@pytest.mark.usefixtures("double")
def test_grpq8_multiplies_in_the_group_algebra_of_the_quaternion_group():
    """Our interpretation of GrpQ8. The group's table is written out here: 1 i j k -1 -i -j -k."""
    table = ["1 i j k", "i -1 k -j", "j -k -1 i", "k j -i -1"]
    place = {name: n for n, name in enumerate("1 i j k -1 -i -j -k".split())}  # noqa: SIM905
    model, e, _, r, _ = parts("GrpQ8")
    query = torch.zeros(3, 8, 4)
    for a in range(8):
        for b in range(8):
            name = table[a % 4].split()[b % 4]
            negative = (a >= 4) ^ (b >= 4) ^ name.startswith("-")
            c = place[("-" if negative else "") + name.lstrip("-")]
            query[:, c] += e[H][:, a] * r[R][:, b]
    close(model(H, R), torch.einsum("bdn,edn->be", query, e))


@pytest.mark.usefixtures("double")
def test_bique_multiplies_quaternions_with_complex_components_after_a_translation():
    model, e, _, relation, _ = parts("BiQUE")

    def as_complex(x):
        return torch.complex(x[:, ::2], x[:, 1::2])

    head = as_complex(e[H] + relation[R][:, :8])
    moved = hamilton(head, as_complex(relation[R][:, 8:]))
    close(model(H, R), torch.einsum("bdn,edn->be", moved, as_complex(e).conj()).real)


CARTESIAN = {"RotatE": "RotatE-xy", "NagE": "NagE-xy", "QuatE": "QuatE-xy", "ModulE-RC": "ComplEx"}


@pytest.mark.usefixtures("double")
def test_the_cartesian_forms_score_as_the_polar_ones():
    for polar, cartesian in CARTESIAN.items():
        model, s, v, s_r, v_r = parts(polar)
        other = drawn(MODELS[cartesian])
        other.entity_scalar.data = (s * v).data
        other.relation_scaling.data = (s_r * v_r).data
        close(other(H, R), model(H, R))


MIXED = [row(f"x{i}", "C", "H", scaling, "U_H(1)", "inner") for i, scaling in enumerate(("GL(1,C)", "S^f"))]
TIEABLE = [spec for spec in (*MODELS.values(), *MIXED) if spec.tieable]


def test_what_can_be_tied():
    assert all(spec.tieable for spec in MIXED)
    assert {s.name for s in MODELS.values()} - {s.name for s in TIEABLE} == {
        "ModulE-HH", "ModulE-HH-unit", "ModulE-HH-left", "ModulE-HH-inner", "HopfE-fibre", "GrpQ8", "BiQUE",
    }  # fmt: skip
    assert not row("x", "R", "C", "(R,+)", "U(1)", "distance").tieable  # what is added is then turned
    with pytest.raises(ModulekgeError, match="no adjoints"):
        Embedding(MODELS["ModulE-HH"], 6, 4, 4, tied=True)


@pytest.mark.usefixtures("double")
@CHARTS
@pytest.mark.parametrize("spec", TIEABLE, ids=lambda s: s.name)
def test_tied_relations_give_a_triple_one_score_whichever_end_is_asked_for(spec, parametrization):
    model = Embedding(spec.parametrized(parametrization), 6, 4, 4, tied=True).double()
    model.draw(torch.Generator().manual_seed(1), 1.0, 1.0)
    for table in (model.relation_scaling, model.relation_rotation):
        assert len(table) == 2
        table.data.normal_()
    everyone = torch.arange(6)
    for r in range(2):
        tails = model(everyone, torch.full((6,), r))
        heads = model(everyone, torch.full((6,), r + 2))
        close(tails, heads.T)


@pytest.mark.usefixtures("double")
def test_rc_is_complex_in_polar_coordinates():
    model, s, v, s_r, v_r = parts("ModulE-RC", "exponential")
    entities = s[:, 0] * torch.complex(*v.unbind(1))
    relations = s_r[:, 0] * torch.complex(*v_r.unbind(1))
    close(model(H, R), torch.einsum("bn,bn,en->be", entities[H], relations[R], entities.conj()).real)


@pytest.mark.usefixtures("double")
def test_rh():
    model, s, v, s_r, v_r = parts("ModulE-RH")
    query = (s_r[R] * s[H]) * hamilton(v[H], v_r[R])
    close(model(H, R), torch.einsum("bdn,edn->be", query, s * v))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("name", "scale", "turn"),
    [
        ("ModulE-HH", hamilton, hamilton),
        ("ModulE-HH-unit", hamilton, hamilton),
        ("ModulE-HH-left", lambda x, g: hamilton(g, x), lambda x, g: hamilton(g, x)),
        ("ModulE-HH-outer", lambda x, g: hamilton(g, x), hamilton),
        ("ModulE-HH-inner", hamilton, lambda x, g: hamilton(g, x)),
    ],
)
def test_hh_and_its_interpretations(name, scale, turn):
    model, s, v, s_r, v_r = parts(name)
    query = hamilton(scale(s[H], s_r[R]), turn(v[H], v_r[R]))
    close(model(H, R), torch.einsum("bdn,edn->be", query, hamilton(s, v)))


@pytest.mark.usefixtures("double")
def test_outer_depends_on_the_head_only_through_its_entity():
    """s_r (s_h v_h) v_r: a gauge turn of (s u, u^-1 v) leaves every score as it is; not so for RR."""
    gauge = torch.randn(6, 4, 4)
    gauge = gauge / torch.linalg.vector_norm(gauge, dim=1, keepdim=True)
    back = torch.cat([gauge[:, :1], -gauge[:, 1:]], 1)
    for name, same in (("ModulE-HH-outer", True), ("ModulE-HH", False)):
        model, s, v, *_ = parts(name)
        before = model(H, R).detach()
        model.entity_scalar.data, model.entity_vector.data = hamilton(s, gauge).data, hamilton(back, v).data
        assert torch.allclose(before, model(H, R)) == same


@pytest.mark.usefixtures("double")
def test_ablations_are_what_the_paper_says_they_degrade_to():
    for name in ("ModulE-RC-scalar", "ModulE-RH-scalar"):
        model, s, _, s_r, _ = parts(name)
        close(model(H, R), torch.einsum("bn,bn,en->be", s[H][:, 0], s_r[R][:, 0], s[:, 0]))
    model, s, _, s_r, _ = parts("ModulE-HH-scalar")
    close(model(H, R), torch.einsum("bdn,edn->be", hamilton(s[H], s_r[R]), s))
    for name in ("ModulE-RH-vector", "ModulE-HH-vector"):
        model, _, v, _, v_r = parts(name)
        close(model(H, R), torch.einsum("bdn,edn->be", hamilton(v[H], v_r[R]), v))


@pytest.mark.parametrize(
    "spec", [s for s in MODELS.values() if s.score.name != "split"], ids=lambda s: s.name
)
def test_the_norm_of_an_entity_is_that_of_the_combined_element(spec):
    model = drawn(spec)
    close(model.entity_norms(H), model.entities()[H].square().sum(1), rtol=1e-4, atol=1e-5)


@EACH
def test_each_row_overfits_a_tiny_graph(spec, family):
    config = make_config(
        [
            {"train": {"epochs": 120, "batch": 8, "eval_every": 120}, "regularizer": {"weight": 0.0}},
            {"model": {"scalar_scale": 0.1}},
        ]
    )
    model = Embedding(spec, len(family.entities), family.n_relations_with_inverses, 12)
    model.draw(torch.Generator().manual_seed(0), 0.1, 1.0)
    least = 0.9 if spec.name.startswith("TransE") else 0.95  # a translation cannot be symmetric

    def first():
        ranks = rank(model.scorer(), family.questions("train"), family.known).rank("bottom")
        return (ranks == 1).double().mean()

    for event in fit(model, family, make_optimizer(model, config.train), config):
        if isinstance(event, EpochRecord) and event.epoch % 15 == 0 and first() > least:
            break
    assert first() > least


def test_names_are_found_whatever_their_case_and_near_misses_are_offered():
    assert named("module-hh") is MODELS["ModulE-HH"]
    with pytest.raises(ModulekgeError, match="did you mean RotatE"):
        named("RotateE")


@EACH
def test_words_lead_back_to_the_row(spec):
    assert row(spec.name, **spec.words()) == spec


@EACH
def test_each_row_says_where_it_comes_from(spec):
    assert re.search(r"\b(19|20)\d\d\b", reference(spec))


def test_learned_weights_start_where_the_recipe_says():
    config = make_config([{"model": {"name": "HAKE", "score_weights": [0.5, 0.25]}}])
    assert Embedding(spec_of(config.model), 6, 4, 2).score_weights.tolist() == [0.5, 0.25]
    with pytest.raises(ModulekgeError, match="has 2 weights"):
        spec_of(make_config([{"model": {"name": "HAKE", "score_weights": [0.5]}}]).model)
    with pytest.raises(ModulekgeError, match="expected a list of numbers"):
        make_config([{"model": {"score_weights": 0.5}}])


def test_a_configuration_can_name_a_row_change_it_or_spell_out_a_new_one():
    assert spec_of(Config().model) == MODELS["ModulE-HH"]
    changed = make_config([{"model": {"rotation": "U_H(1) left"}}])
    assert spec_of(changed.model).words() == MODELS["ModulE-HH-inner"].words()
    assert spec_of(changed.model).name == "ModulE-HH*"
    words = {"scalar": "C", "vector": "H", "scaling": "GL(1,C)", "rotation": "U_H(1)", "score": "inner"}
    assert spec_of(make_config([{"model": {"name": "ModulE-CH", **words}}]).model).name == "ModulE-CH"


def _moves_to_where_entities_are(spec):
    model = Embedding(spec, 3, 2, 2).draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    queries, entities = model.queries(torch.tensor([0]), torch.tensor([1])), model.entities()
    extra = 1 if spec.score.name in ("split", "weighted") else 0
    assert queries.shape[1] == entities.shape[1] + extra == spec.query_size
    scores = model.scores(queries, entities)
    assert torch.isfinite(scores).all()
    adds = spec.scaling.name.startswith(("(", "Aff", "E("))
    if spec.score.name == "inner" and not adds and spec.scalar.name in ("R", "C", "H"):
        moved = model.entity_norms(torch.tensor([0])) * model.relation_norms(torch.tensor([1]))
        close(queries.square().sum(1), moved)


@pytest.mark.usefixtures("double")
def test_whatever_row_is_accepted_moves_entities_to_where_entities_are():
    """Every combination of words: either refused, or its queries compare with its entities in full."""
    accepted = 0
    for s, v, ts, tv in product(SCALARS, VECTORS, SCALINGS, ROTATIONS):
        for f in SCORES:
            try:
                spec = row("x", s, v, ts, tv, f)
            except ModulekgeError as refused:
                if "score" in str(refused):
                    continue
                break  # not to be had with any score
            accepted += 1
            _moves_to_where_entities_are(spec)
    assert accepted > 200


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("H", "C", "GL(1)", "U(1)", "inner"), "do not lie in"),
        (("R", "H", "GL(1,H)", "U_H(1)", "inner"), "out of R"),
        (("R", "C", "GL(1)", "U_H(1)", "inner"), "out of C"),
        (("R", "C", "GL(1)", "SO(3)", "inner"), "out of C"),
        (("R", "H", "GL(1)", "SO(3)", "inner"), "does not turn"),
        (("H", "H", "SO(2)", "U_H(1)", "inner"), "unknown scaling group"),
        (("H", "H", "SO(3)", "U_H(1)", "inner"), "does not turn"),
        (("R^3", "1", "GL(1)", "V^f", "inner"), "does not turn"),
        (("R^3", "H", "SO(3)", "U_H(1)", "distance"), "do not lie in"),
        (("H", "H", "GL(1,H)", "GL(1,H)", "inner"), "unknown rotation group"),
        (("1", "1", "S^f", "V^f", "inner"), "neither scalars nor vectors"),
        (("R", "1", "GL(1)", "U(1)", "inner"), "out of 1"),
        (("H", "H", "GL(1)+b", "U_H(1)", "split"), "wants scalars R"),
        (("H", "H", "(R,+)", "U_H(1)", "inner"), "adds to scalars"),
        (("R", "R^3", "GL(1)", "SO(3)", "weighted"), "does not go with the score weighted"),
        (("R", "R^3", "GL(1)", "SO(3)", "lifted"), "go together"),
        (("R", "R^3 x S^1", "GL(1)", "SO(3)", "inner"), "go together"),
        (("R", "R^3", "GL(1)", "U_H(1)", "inner"), "does not turn"),
        (("R", "R^2", "GL(1)", "SO(2)", "split"), "does not go with the score split"),
        (("1", "C", "GL(1)", "U(1)", "inner"), "out of 1"),
        (("Q", "C", "GL(1)", "U(1)", "inner"), "unknown scalar group"),
        (("R", "C", "GL(1)", "U(1)", "cosine"), "unknown score"),
    ],
)
def test_a_row_that_breaks_the_laws_is_refused(words, complaint):
    with pytest.raises(ModulekgeError, match=complaint):
        row("bad", *words)
