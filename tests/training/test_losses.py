import pytest
import torch
from torch.nn import functional as F

from modulekge.config import LossConfig, PenaltyConfig
from modulekge.models.model import Model
from modulekge.models.table import MODELS
from modulekge.training.losses import LOSSES, degree_weights, logistic, softmax
from modulekge.training.penalty import penalty

close = torch.testing.assert_close
pytestmark = pytest.mark.usefixtures("double")
SCORES, ANSWERS, WEIGHTS = (
    torch.randn(5, 9, dtype=torch.float64),
    torch.tensor([0, 3, 3, 8, 1]),
    torch.rand(9).double(),
)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_softmax_is_torchs_cross_entropy(smoothing, weights):
    ours = softmax(SCORES, ANSWERS, weights, smoothing)
    if weights is None or not smoothing:
        close(ours, F.cross_entropy(SCORES, ANSWERS, weight=weights, label_smoothing=smoothing))
    target = (1 - smoothing) * F.one_hot(ANSWERS, 9) + smoothing / 9
    each = -(target * SCORES.log_softmax(1)).sum(1)
    w = torch.ones(5) if weights is None else weights[ANSWERS]
    close(ours, (w * each).sum() / w.sum())


def test_logistic_is_the_papers_sum_with_minus_one_for_the_others():
    y = 2.0 * F.one_hot(ANSWERS, 9) - 1
    close(logistic(SCORES, ANSWERS), torch.log1p(torch.exp(-y * SCORES)).sum(1).mean())


def test_smoothed_logistic_is_binary_cross_entropy_with_soft_targets():
    target = 0.9 * F.one_hot(ANSWERS, 9) + 0.1 / 9
    each = F.binary_cross_entropy_with_logits(SCORES, target, reduction="none").sum(1)
    w = WEIGHTS[ANSWERS]
    close(logistic(SCORES, ANSWERS, WEIGHTS, 0.1), (w * each).sum() / w.sum())


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_slopes_are_right_and_large_scores_stay_finite(loss):
    assert torch.autograd.gradcheck(lambda s: loss(s, ANSWERS, WEIGHTS, 0.1), SCORES.clone().requires_grad_())
    assert torch.isfinite(loss(1e4 * SCORES, ANSWERS, None, 0.0))
    assert loss(SCORES.bfloat16(), ANSWERS, None, 0.0).dtype == torch.float32


def test_the_configuration_offers_every_loss():
    assert LossConfig().kind in LOSSES


def test_degree_weights(family):
    assert degree_weights(family, 0.0) is None
    degrees = torch.zeros(8)
    for h, _, t in family.train.tolist():
        degrees[h] += 1
        degrees[t] += 1
    close(degree_weights(family, 0.9), (0.1 + 0.9 * degrees / degrees.max()).float())


@pytest.mark.parametrize(("form", "root"), [("power", 1.0), ("rooted", 1 / 3)])
def test_penalty_is_phi_of_the_combined_elements(form, root):
    """lambda / B sum (2 |h|^3 + 0.5 |r|^3 + 2 |t|^3), with r the module element s_r v_r."""
    model = Model(MODELS["ModulE-HH"], 6, 4, 5).double().draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    h, r, t = torch.tensor([[0, 1, 2], [3, 0, 3], [5, 2, 0]]).unbind(1)
    e, spec = model.entities(), model.spec
    relation = spec.algebra.mul(model.relation_scaling, spec.rotation.group.point(model.relation_rotation))

    def g(x):
        return (torch.linalg.vector_norm(x, dim=1) ** 3).sum(-1) ** root

    expected = 0.07 / 3 * (2 * g(e[h]) + 0.5 * g(relation[r]) + 2 * g(e[t])).sum()
    close(penalty(model, h, r, t, PenaltyConfig(strength=0.07, form=form)), expected)


def test_penalty_of_unit_elements_moves_nothing():
    for name in ("ModulE-HH-vector", "ModulE-HH-unit"):
        model = Model(MODELS[name], 6, 4, 5).draw(torch.Generator().manual_seed(0), 1.0, 1.0)
        ids = torch.tensor([0, 1])
        close(model.relation_norms(ids), torch.ones(2, 5, dtype=model.relation_norms(ids).dtype))
        assert not model.relation_norms(ids).requires_grad
