"""The exact loss, span by span, is the plain loss over all scores, in value and in every gradient."""

import pytest
import torch

from modulekge.config import LossConfig, make_config
from modulekge.models.embedding import Embedding
from modulekge.models.spec import MODELS
from modulekge.training import exact as module
from modulekge.training.exact import Target, exact, softmax_
from modulekge.training.losses import LOSSES, average
from modulekge.training.optimizers import make_optimizer
from modulekge.training.questions import Questions, answers_of
from modulekge.training.step import Step
from modulekge.training.tables import PlainTables

close = torch.testing.assert_close
KINDS = pytest.mark.parametrize("kind", ["softmax", "logistic"])


def setup(family, spec, dtype, **loss):
    config = LossConfig(**loss)
    model = Embedding(spec, 8, family.n_relations_with_inverses, 4, bias=True).to(dtype)
    model.draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    torch.nn.init.normal_(model.entity_bias)
    questions = Questions.of(family, config, torch.device("cpu"))
    batch = questions.triples[:7]
    answers = answers_of(batch, questions.known, config)
    weights = None if questions.weights is None else questions.weights[:7].to(dtype)
    return model, batch, answers, weights, config


def plain(model, batch, answers, weights, config):
    queries = model.queries(*batch[:, :2].unbind(1)).detach().requires_grad_()
    scores = model.scores(queries, model.entities())
    value = average(LOSSES[config.kind](scores, answers, config), weights)
    tables = [table for table in entity_tables(model) if table.numel()]
    return [value.detach(), *torch.autograd.grad(value, [queries, *tables])]


def entity_tables(model):
    return [model.entity_scalar, model.entity_vector, model.entity_bias, model.score_weights]


def ours(model, batch, answers, weights, config):
    model.zero_grad()
    queries = model.queries(*batch[:, :2].unbind(1)).detach()
    share = torch.full((len(batch),), 1 / len(batch), dtype=queries.dtype) if weights is None else weights
    target = Target.of(answers, share / share.sum(), len(model.entity_scalar), config)
    value, gradients = exact(model, queries, target, config.kind, PlainTables(model))
    return [value, gradients, *(table.grad for table in entity_tables(model) if table.numel())]


@pytest.mark.parametrize("spec", MODELS.values(), ids=lambda s: s.name)
@KINDS
def test_every_row(family, spec, kind, monkeypatch):
    monkeypatch.setattr(module, "EVEN", 1)
    monkeypatch.setitem(module._MOST_SCORES, "cpu", 7 * 3)  # three entities at a time
    case = setup(family, spec, torch.float64, kind=kind)
    for mine, theirs in zip(ours(*case), plain(*case), strict=True):
        close(mine, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("entities", [1, 3, 8])
@pytest.mark.parametrize(
    "options", [{}, {"smoothing": 0.2}, {"degree_weight": 0.5}, {"targets": "all"}], ids=str
)
@pytest.mark.parametrize(("dtype", "precision"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
@KINDS
def test_spans_of_any_size_with_every_option(family, kind, options, entities, dtype, precision, monkeypatch):
    monkeypatch.setattr(module, "EVEN", 1)
    monkeypatch.setitem(module._MOST_SCORES, "cpu", 7 * entities)
    case = setup(family, MODELS["ModulE-HH"], dtype, kind=kind, **options)
    for mine, theirs in zip(ours(*case), plain(*case), strict=True):
        close(mine, theirs, rtol=precision, atol=precision)


def test_softmax_in_place_survives_scores_of_any_size():
    scores = torch.tensor([[1e4, -1e4, 0.0], [-3e38, -3e38, -3e38], [-torch.inf, 2.0, -torch.inf]])
    everyone = torch.arange(3)
    ones = torch.ones(3)
    target = Target(torch.tensor([1, 0, 1]), everyone, torch.arange(4), ones, 0.0, ones)
    losses = softmax_(scores, target, 0, None)
    close(scores, torch.tensor([[1.0, -1, 0], [-2 / 3, 1 / 3, 1 / 3], [0, 0, 0]]))
    close(losses[[0, 2]], torch.tensor([2e4, 0.0]))


@pytest.mark.parametrize(("name", "relations"), [("ModulE-HH", 0.0), ("ModulE-HH", 0.5), ("HAKE", 0.0)])
@pytest.mark.parametrize("answers", ["one", "all"])
def test_a_step_follows_the_slopes_of_the_plain_loss(family, answers, name, relations):
    """Of loss, penalty and relation prediction together, on all tables: exact and plain step alike."""
    tables = []
    for way in (Step._exact_loss, Step._plain_loss):
        settings = {"loss": {"answers": answers, "relations": relations}, "penalty": {"strength": 0.1}}
        config = make_config([{"train": {"batch": 5}}, settings])
        model = Embedding(MODELS[name], 8, family.n_relations_with_inverses, 4).double()
        model.draw(torch.Generator().manual_seed(0), 1.0, 1.0)
        questions = Questions.of(family, config.loss, torch.device("cpu"))
        step = Step(model, questions, make_optimizer(model, config.train), config)
        step._exact_loss = way.__get__(step)
        step.begin(1)
        for rows in torch.arange(10).split(5):
            step(rows)
        tables.append([step.mean(10), *(table.detach() for table in model.parameters())])
    for mine, theirs in zip(*tables, strict=True):
        close(mine, theirs, rtol=1e-6, atol=1e-9)
