import pytest
import torch
from torch.nn import functional as F

from modulekge.config import LossConfig, RegularizerConfig, make_config
from modulekge.data.filter_index import FilterIndex
from modulekge.errors import ConfigError
from modulekge.models.embedding import Embedding
from modulekge.models.spec import MODELS
from modulekge.training.losses import LOSSES, Answers, average, logistic, self_adversarial, softmax
from modulekge.training.questions import (
    Draw,
    Questions,
    answers_of,
    candidate_scores,
    dropout,
    question_weights,
)
from modulekge.training.regularizer import regularization

close = torch.testing.assert_close
pytestmark = pytest.mark.usefixtures("double")
SCORES, TAILS = torch.randn(5, 9, dtype=torch.float64), torch.tensor([0, 3, 3, 8, 1])
ONE = Answers(torch.arange(5), TAILS)
SEVERAL = Answers(torch.tensor([0, 0, 1, 2, 3, 4, 4]), torch.tensor([0, 5, 3, 3, 8, 1, 2]))
PLAIN, SMOOTH = LossConfig(), LossConfig(smoothing=0.1)


def hot(answers: Answers) -> torch.Tensor:
    return torch.zeros(5, 9).index_put((answers.rows, answers.columns), torch.tensor(1.0))


@pytest.mark.parametrize("config", [PLAIN, SMOOTH], ids=["plain", "smooth"])
def test_softmax_is_torchs_cross_entropy(config):
    ours = softmax(SCORES, ONE, config)
    theirs = F.cross_entropy(SCORES, TAILS, label_smoothing=config.smoothing, reduction="none")
    close(ours, theirs)
    target = hot(SEVERAL) / hot(SEVERAL).sum(1, keepdim=True)
    soft = (1 - config.smoothing) * target + config.smoothing / 9
    close(softmax(SCORES, SEVERAL, config), F.cross_entropy(SCORES, soft, reduction="none"))


@pytest.mark.parametrize("answers", [ONE, SEVERAL], ids=["one", "several"])
@pytest.mark.parametrize("config", [PLAIN, SMOOTH], ids=["plain", "smooth"])
def test_logistic_is_binary_cross_entropy_summed(answers, config):
    target = (1 - config.smoothing) * hot(answers) + config.smoothing / 9
    expected = F.binary_cross_entropy_with_logits(SCORES, target, reduction="none").sum(1)
    close(logistic(SCORES, answers, config), expected)


def test_logistic_is_the_papers_sum_with_minus_one_for_the_others():
    y = 2 * hot(ONE) - 1
    close(logistic(SCORES, ONE, PLAIN), torch.log1p(torch.exp(-y * SCORES)).sum(1))


def test_adversarial_is_the_loss_of_rotates_authors():
    """-1/2 [log sigma(gamma - d+) + sum_j p_j log sigma(d_j - gamma)], p = softmax(alpha (gamma - d))."""
    config = LossConfig(margin=6.0, temperature=0.5)
    for i in range(5):
        f = 6.0 + SCORES[i]
        negative = torch.cat([f[: TAILS[i]], f[TAILS[i] + 1 :]])
        p = torch.softmax(0.5 * negative, 0)
        expected = -(F.logsigmoid(f[TAILS[i]]) + (p * F.logsigmoid(-negative)).sum()) / 2
        close(self_adversarial(SCORES, ONE, config)[i], expected)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_question_whose_negatives_are_all_true_is_judged_by_its_answer(temperature):
    scores = SCORES.clone().index_put((torch.tensor([1]),), SCORES.new_tensor(-torch.inf)).requires_grad_()
    scores = scores.index_put((torch.tensor(1), TAILS[1]), SCORES[1, TAILS[1]])
    config = LossConfig(margin=6.0, temperature=temperature)
    losses = self_adversarial(scores, ONE, config)
    close(losses[1], -F.logsigmoid(6.0 + SCORES[1, TAILS[1]]) / 2)
    others = [0, 2, 3, 4]
    close(losses[others], self_adversarial(SCORES, ONE, config)[others])
    (gradients,) = torch.autograd.grad(losses.sum(), scores)
    assert gradients.isfinite().all()


@pytest.mark.parametrize("kind", LOSSES)
def test_slopes_are_right_and_large_scores_and_left_out_candidates_stay_finite(kind):
    loss = LOSSES[kind]
    if kind != "self-adversarial":  # whose weights are taken as given
        assert torch.autograd.gradcheck(lambda s: loss(s, ONE, PLAIN), SCORES.clone().requires_grad_())
    assert torch.isfinite(loss(1e4 * SCORES, ONE, PLAIN)).all()
    scores = SCORES.clone()
    scores[:, 6] = -torch.inf
    scores.requires_grad_()
    loss(scores, ONE, PLAIN).sum().backward()
    assert torch.isfinite(scores.grad).all()


def test_average():
    losses, weights = torch.rand(5), torch.rand(5)
    close(average(losses, None), losses.mean())
    close(average(losses, weights), (losses * weights).sum() / weights.sum())


def test_weights_of_questions(family):
    triples = family.questions("train")
    known = FilterIndex.of(triples, family.n_relations_with_inverses)
    assert question_weights(family, triples, known, PLAIN) is None
    train = family.train.tolist()
    degrees = [sum((h == e) + (t == e) for h, _, t in train) for e in range(8)]
    found = question_weights(family, triples, known, LossConfig(degree_weight=0.9))
    close(
        found, torch.tensor([0.1 + 0.9 * degrees[t] / max(degrees) for _, _, t in triples.tolist()]).float()
    )
    found = question_weights(family, triples, known, LossConfig(subsampling=0.5))
    for weight, (h, r, t) in zip(found[: len(train)].tolist(), train, strict=True):
        same_question = sum((a, b) == (h, r) for a, b, _ in train)
        same_answer = sum((b, c) == (r, t) for _, b, c in train)
        assert weight == pytest.approx((4 + same_question + same_answer) ** -0.5)
    assert torch.equal(found[: len(train)], found[len(train) :])  # a triple weighs the same from both ends


def test_a_question_of_several_answers_weighs_what_they_do_on_average(family):
    each = Questions.of(family, LossConfig(degree_weight=0.9, subsampling=0.5), torch.device("cpu"))
    whole = Questions.of(
        family, LossConfig(degree_weight=0.9, subsampling=0.5, targets="all"), torch.device("cpu")
    )
    for (h, r, _), weight in zip(whole.triples.tolist(), whole.weights.tolist(), strict=True):
        same = (each.triples[:, :2] == torch.tensor([h, r])).all(1)
        assert weight == pytest.approx(float(each.weights[same].mean()))


def setup(family, name="RotatE", **loss):
    config = LossConfig(**loss)
    model = Embedding(MODELS[name], 8, family.n_relations_with_inverses, 4, bias=True)
    model.draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    torch.nn.init.normal_(model.entity_bias)
    questions = Questions.of(family, config, torch.device("cpu"))
    batch = questions.triples[:7]
    return model, questions, batch, config


@pytest.mark.parametrize("name", ["RotatE", "HAKE", "DensE", "ModulE-HH"])
@pytest.mark.parametrize("candidates", ["sampled", "shared"])
def test_negatives_are_scored_as_all_entities_are_and_never_true(family, name, candidates):
    model, questions, batch, config = setup(family, name, candidates=candidates, negatives=64)
    heads, relations, tails = batch.unbind(1)
    whole = model(heads, relations)
    drawn = Draw(torch.Generator(), 7, slice(None)).entities(model.n_entities, 64, config)
    known = questions.known.among(heads, relations, drawn.expand(7, 64))
    scores, answers = candidate_scores(model, model.queries(heads, relations), tails, drawn, known)
    assert scores.shape == (7, 65)
    assert torch.equal(answers.columns, torch.zeros(7, dtype=torch.int64))
    close(scores[:, 0], whole.gather(1, batch[:, 2:])[:, 0])
    ids = drawn.expand(7, 64)
    true = {tuple(x) for x in questions.triples.tolist()}
    for i in range(7):
        for j in range(64):
            h, r, _ = batch[i].tolist()
            if (h, r, int(ids[i, j])) in true:
                assert scores[i, j + 1] == -torch.inf
            else:
                close(scores[i, j + 1], whole[i, ids[i, j]])


def test_all_answers_of_a_question_at_once(family):
    _, questions, batch, config = setup(family, targets="all")
    distinct = {(h, r) for h, r, _ in family.questions("train").tolist()}
    assert sorted((h, r) for h, r, _ in questions.triples.tolist()) == sorted(distinct)
    answers = answers_of(batch, questions.known, config)
    found = {
        (*batch[i, :2].tolist(), t)
        for i, t in zip(answers.rows.tolist(), answers.columns.tolist(), strict=True)
    }
    assert found == {
        x for x in map(tuple, family.questions("train").tolist()) if list(x[:2]) in batch[:, :2].tolist()
    }


def test_settings_that_do_not_go_together():
    with pytest.raises(ConfigError, match=r"loss\.candidates"):
        make_config([{"loss": {"candidates": "sampled", "targets": "all"}}])
    with pytest.raises(ConfigError, match=r"loss\.relation_prediction"):
        make_config([{"loss": {"relations": 0.5}, "model": {"reciprocal": "tied"}}])


def test_dropout_keeps_the_mean_and_follows_its_generator():
    x = torch.ones(200, 4, 50)

    def draw(own=slice(None)):
        return Draw(torch.Generator().manual_seed(3), 200, own)

    once, again = (dropout(x, 0.25, draw()) for _ in range(2))
    assert torch.equal(once, again)
    assert set(once.unique().tolist()) == {0.0, 1 / 0.75}
    assert once.mean().item() == pytest.approx(1, abs=0.02)
    assert dropout(x, 0.0, draw()) is x
    assert torch.equal(dropout(x[60:90], 0.25, draw(slice(60, 90))), once[60:90])  # as others draw


LINEAR = [s for s in MODELS.values() if s.score.name == "inner" and s.name != "BiQUE"]


@pytest.mark.parametrize("spec", LINEAR, ids=lambda s: s.name)
def test_relations_are_scored_as_their_triples_are(spec):
    model = Embedding(spec, 6, 4, 3).double().draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    heads, tails = torch.tensor([0, 3, 5, 2]), torch.tensor([1, 4, 5, 0])
    by_triple = [model(heads, torch.full((4,), r)).gather(1, tails[:, None]) for r in range(4)]
    close(model.relation_scores(heads, tails), torch.cat(by_triple, 1))


def test_relations_that_scores_are_not_linear_in_are_refused():
    for name in ("RotatE", "BiQUE"):
        model = Embedding(MODELS[name], 6, 4, 3).draw(torch.Generator().manual_seed(0), 1.0, 1.0)
        with pytest.raises(ConfigError, match="not linear"):
            model.relation_scores(torch.tensor([0]), torch.tensor([1]))


@pytest.mark.parametrize(("form", "root"), [("power", 1.0), ("rooted", 1 / 3)])
def test_penalty_is_phi_of_the_combined_elements(form, root):
    """lambda / B sum (2 |h|^3 + 0.5 |r|^3 + 2 |t|^3), with r the module element s_r v_r."""
    model = Embedding(MODELS["ModulE-HH"], 6, 4, 5).double().draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    h, r, t = torch.tensor([[0, 1, 2], [3, 0, 3], [5, 2, 0]]).unbind(1)
    e, spec = model.entities(), model.spec
    relation = spec.algebra.mul(model.relation_scaling, spec.rotation.group.point(model.relation_rotation))

    def g(x):
        return (torch.linalg.vector_norm(x, dim=1) ** 3).sum(-1) ** root

    expected = 0.07 / 3 * (2 * g(e[h]) + 0.5 * g(relation[r]) + 2 * g(e[t])).sum()
    close(regularization(model, h, r, t, RegularizerConfig(weight=0.07, form=form)), expected)


def test_dura():
    """lambda / B sum a (|h|^2 + |t|^2) + b (|h r|^2 + |t r|^2), products computed, not their norms."""
    model = Embedding(MODELS["ComplEx"], 6, 4, 5).double().draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    h, r, t = torch.tensor([[0, 1, 2], [3, 0, 3], [5, 2, 0]]).unbind(1)
    e, q = (torch.complex(*x.unbind(1)) for x in (model.entity_scalar, model.relation_scaling))
    own = e[h].abs() ** 2 + e[t].abs() ** 2
    moved = (e[h] * q[r]).abs() ** 2 + (e[t] * q[r]).abs() ** 2
    config = RegularizerConfig(weight=0.1, head=0.5, relation=0.0, tail=0.5, moved=1.5, p=2)
    close(regularization(model, h, r, t, config), 0.1 / 3 * (0.5 * own + 1.5 * moved).sum())


def test_penalty_takes_a_head_with_what_the_relation_adds(family):
    """BiQUE's relation is (b, g) with 8 numbers each; the head counts as |h + b|, the relation as |g|."""
    model = Embedding(MODELS["BiQUE"], 8, family.n_relations_with_inverses, 3)
    model.draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    h, r, t = torch.tensor([0, 1, 5]), torch.tensor([0, 3, 1]), torch.tensor([2, 2, 7])
    entity, relation = model.entity_scalar, model.relation_scaling

    def cubes(x):
        return x.square().sum(1).pow(1.5).sum()

    expected = (
        2 * cubes(entity[h] + relation[r][:, :8]) + 0.5 * cubes(relation[r][:, 8:]) + 2 * cubes(entity[t])
    )
    close(regularization(model, h, r, t, RegularizerConfig(weight=0.3)), 0.3 * expected / 3)


def test_penalty_of_unit_elements_moves_nothing():
    for name in ("ModulE-HH-vector", "ModulE-HH-unit"):
        model = Embedding(MODELS[name], 6, 4, 5).draw(torch.Generator().manual_seed(0), 1.0, 1.0)
        ids = torch.tensor([0, 1])
        close(model.relation_norms(ids), torch.ones(2, 5, dtype=model.relation_norms(ids).dtype))
        assert not model.relation_norms(ids).requires_grad
