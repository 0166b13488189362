"""Candidates drawn for a batch: the fast step equals autograd and PyTorch's own Adagrad over whole tables."""

import pytest
import torch
from torch.optim import Adagrad

from modulekge.config import make_config
from modulekge.data.filter_index import FilterIndex
from modulekge.models.embedding import Embedding
from modulekge.models.spec import MODELS
from modulekge.training.losses import average, softmax
from modulekge.training.questions import Draw, Questions, candidate_scores
from modulekge.training.regularizer import regularization
from modulekge.training.step import Step
from modulekge.training.tables import RowTables

pytestmark = pytest.mark.usefixtures("double")
close = torch.testing.assert_close
# One row for each score, and one with more than one parametrization
ROWS = ["DistMult", "RotatE", "TransE", "HAKE", "ModulE-HH", "ModulE-RH", "DensE"]


def settings(**others):
    return make_config(
        [
            {"loss": {"candidates": "shared", "negatives": 20}, "regularizer": {"weight": 0.1}},
            {"train": {"batch": 7, "lr": 0.3, "device": "cpu"}},
            others,
        ]
    )


def drawn_model(family, name):
    model = Embedding(MODELS[name], 8, family.n_relations_with_inverses, 4, bias=True)
    model.draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    torch.nn.init.normal_(model.entity_bias, generator=torch.Generator().manual_seed(1))
    return model


def naive_step(model, optimizer, questions, config, generator, rows):
    """Score all that was drawn, leave out what is known, and let autograd and Adagrad do the rest."""
    batch = questions.batch(rows)
    heads, relations, tails = batch.unbind(1)
    drawn = Draw(generator, len(rows), slice(None)).entities(8, config.loss.negatives, config.loss)
    known = questions.known.among(heads, relations, drawn.expand(len(rows), -1))
    scores, answers = candidate_scores(model, model.queries(heads, relations), tails, drawn, known)
    weights = None if questions.weights is None else questions.weights[rows].double()
    loss = average(softmax(scores, answers, config.loss), weights)
    loss = loss + regularization(model, heads, relations, tails, config.regularizer)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss.detach())


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("degree_weight", [0.0, 0.9])
def test_a_step_equals_autograd_and_adagrad_over_whole_tables(family, name, degree_weight):
    config = settings(loss={"degree_weight": degree_weight})
    questions = Questions.of(family, config.loss, torch.device("cpu"))
    ours, theirs = drawn_model(family, name), drawn_model(family, name)
    optimizers = [
        Adagrad([p for p in m.parameters() if p.numel()], lr=config.train.lr) for m in (ours, theirs)
    ]
    step = Step(ours, questions, optimizers[0], config)
    assert isinstance(step._tables, RowTables)
    step.begin(1)
    generator = torch.Generator().manual_seed(1)  # epoch 1 of seed 0
    total, count = 0.0, 0
    for rows in torch.arange(len(questions.triples)).split(7):
        step(rows)
        total += len(rows) * naive_step(theirs, optimizers[1], questions, config, generator, rows)
        count += len(rows)
    assert step.mean(count) == pytest.approx(total / count, rel=1e-6)
    for table, expected in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(table, expected)


def test_known_answers_are_found_among_shared_candidates_as_one_by_one(family):
    triples = family.questions("train")
    known = FilterIndex.of(triples, family.n_relations_with_inverses)
    generator = torch.Generator().manual_seed(0)
    for count in (1, 5, 40):  # of 8 entities: with repetitions
        drawn = torch.randint(8, (count,), generator=generator)
        heads, relations, _ = triples.unbind(1)
        mask = torch.zeros(len(heads), count, dtype=torch.bool)
        mask[known.among_shared(heads, relations, drawn)] = True
        assert torch.equal(mask, known.among(heads, relations, drawn.expand(len(heads), -1)))


def test_a_question_without_known_answers_has_none_among_the_candidates():
    known = FilterIndex.of(torch.zeros(0, 3, dtype=torch.long), 2)
    rows, columns = known.among_shared(torch.tensor([3, 3]), torch.tensor([1, 0]), torch.tensor([5, 1]))
    assert len(rows) == len(columns) == 0


def test_other_optimisers_and_losses_take_the_plain_way(family):
    for others in ({"train": {"optimizer": "adam"}}, {"loss": {"kind": "logistic"}}):
        config = settings(**others)
        questions = Questions.of(family, config.loss, torch.device("cpu"))
        model = drawn_model(family, "DistMult")
        tables = [p for p in model.parameters() if p.numel()]
        kind = torch.optim.Adam if config.train.optimizer == "adam" else Adagrad
        assert not isinstance(Step(model, questions, kind(tables), config)._tables, RowTables)
