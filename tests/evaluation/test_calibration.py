"""Log-odds, the line that makes probabilities of them, and answer sets."""

import json
import math
import random
from dataclasses import replace

import pytest
import torch
from rows import ONE_OF_EACH

from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import DataError, QuestionError, TrainingError
from modulekge.evaluation import calibration as module
from modulekge.evaluation.calibration import Calibration, Line, calibrate, fit_line
from modulekge.evaluation.odds import (
    FARTHEST,
    log_odds,
    most_pairs,
    most_questions,
    relation_scores,
    scored_batches,
)
from modulekge.evaluation.reliability import Meter
from modulekge.models.embedding import Embedding
from modulekge.models.spec import MODELS


def drawn(dataset, spec="DistMult", tied=False, bias=False, scale=1.0):
    model = Embedding(MODELS[spec], len(dataset.entities), dataset.n_relations_with_inverses, 4, tied, bias)
    return model.draw(torch.Generator().manual_seed(0), scale, 1.0)


def random_graph(n=40, relations=2, seed=0, sizes=(300, 120, 160)) -> Dataset:
    draw = torch.Generator().manual_seed(seed)
    codes = torch.randperm(n * relations * n, generator=draw)[: sum(sizes)]
    triples = torch.stack([codes // (relations * n), codes // n % relations, codes % n], 1)
    names = tuple(f"e{i}" for i in range(n)), tuple(f"r{i}" for i in range(relations))
    return Dataset(
        "random", Vocabulary("entity", names[0]), Vocabulary("relation", names[1]), *triples.split(sizes)
    )


def test_log_odds_are_those_of_a_softmax_over_what_is_not_known():
    scores = torch.tensor([[0.0, 1.0, 2.0, 60.0], [3.0, 3.0, -50.0, 1.0]])
    known = torch.tensor([[False, True, False, False], [False, False, False, False]])
    for row, (s, out) in enumerate(zip(scores.double(), known, strict=True)):
        for c in range(4):
            rivals = [float(s[i]) for i in range(4) if i != c and not out[i]]
            expected = float(s[c]) - math.log(sum(map(math.exp, rivals)))
            assert float(log_odds(scores, known)[row, c]) == pytest.approx(expected, rel=1e-5)


def test_log_odds_of_an_only_candidate_and_of_none():
    scores = torch.tensor([[1.0, 2.0], [1.0, 2.0]])
    found = log_odds(scores, torch.tensor([[True, False], [True, True]]))
    assert found.tolist() == [[-1.0, FARTHEST], [FARTHEST, FARTHEST]]


def test_a_candidate_without_rivals_is_left_out_and_has_no_probability():
    """One would bring every slope near 0: its log-odds are endless, and Platt's target is not 1."""
    graph = random_graph(n=12, sizes=(60, 40, 40))
    taken = torch.stack(
        [torch.zeros(11, dtype=torch.long), torch.zeros(11, dtype=torch.long), torch.arange(11)], 1
    )
    splits = [part[(part[:, :2] != 0).any(1)] for part in (graph.train, graph.valid, graph.test)]
    lone = torch.tensor([[0, 0, 11]])
    graph = replace(graph, train=torch.cat([splits[0], taken]), valid=splits[1], test=splits[2])
    model = drawn(graph)
    without = calibrate(model.scorer(), graph).together
    found = calibrate(model.scorer(), replace(graph, valid=torch.cat([graph.valid, lone])))
    assert found.together.triples == without.triples + 1  # asked the other way round it has rivals
    asked = list(scored_batches(model.scorer(), replace(graph, valid=lone), "valid"))
    assert sum(int(part.candidate[part.relations == 0].sum()) for part in asked) == 0
    chances = found.probability(torch.tensor([[FARTHEST, 1.0]]), torch.tensor([0]))
    assert chances.isnan().tolist() == [[True, False]]


def likelihood_gradient(x, true, a, b):
    """The gradient of the log likelihood with Platt's targets, of single candidates."""
    n, m = int(true.sum()), int((~true).sum())
    target = torch.where(true, (n + 1) / (n + 2), 1 / (m + 2))
    residual = target - (a * x + b).sigmoid()
    return float((residual * x).mean()), float(residual.mean())


def test_a_line_is_the_most_likely_one():
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(20000, generator=draw).double() * 3 - 2
    true = torch.rand(20000, generator=draw) < (1.7 * x - 1).sigmoid()
    a, b = fit_line(torch.stack([(~true).double(), true.double()]), x)
    assert likelihood_gradient(x, true, a, b) == pytest.approx((0, 0), abs=1e-7)
    assert (a, b) == pytest.approx((1.7, -1), abs=0.1)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_line_is_finite_where_true_and_false_lie_apart_whatever_the_scale(scale):
    x = torch.tensor([-3.0, -2.0, 2.0, 3.0]).double() * scale
    a, b = fit_line(torch.tensor([[50.0, 50, 0, 0], [0, 0, 5, 5]]).double(), x)
    low, high = (torch.tensor([a * v + b for v in x.tolist()]).sigmoid())[[1, 2]].tolist()
    assert a > 0
    assert low < 0.05
    assert 0.8 < high < 0.99  # 11 of 12 on average


def test_a_line_never_falls():
    x = torch.tensor([-1.0, 1.0]).double()
    a, b = fit_line(torch.tensor([[0.0, 90], [10, 0]]).double(), x)
    assert a == 0
    assert 1 / (1 + math.exp(-b)) == pytest.approx(0.1, abs=0.02)


def test_a_line_through_one_place_only_rises():
    for x in (0.0, 0.1, -1e6):
        a, b = fit_line(torch.tensor([[90.0], [10]]).double(), torch.tensor([x]).double())
        assert a == 0
        assert 1 / (1 + math.exp(-b)) == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("seed", [0, 8, 11])
def test_a_line_does_not_depend_on_where_its_numbers_lie_in_memory(seed):
    draw, sizes = torch.Generator().manual_seed(seed), random.Random(0)
    x = torch.randn(700, generator=draw).double() * 5 - 4
    count, chance = torch.rand(700, generator=draw).double() * 100, (1.7 * x - 8).sigmoid()
    cells = torch.stack([count * (1 - chance), count * chance])
    others, found = [], set()
    for _ in range(200):
        others.append(torch.zeros(sizes.randrange(1, 5000)))
        found.add(fit_line(cells.clone(), x.clone()))
    assert len(found) == 1


def test_cells_give_the_line_that_single_candidates_give():
    dataset = random_graph()
    model = drawn(dataset)
    found = calibrate(model.scorer(), dataset)
    parts = list(scored_batches(model.scorer(), dataset, "valid"))
    x = torch.cat([part.odds[part.candidate] for part in parts]).double()
    true = torch.cat([part.true[part.candidate] for part in parts])
    a, b = fit_line(torch.stack([(~true).double(), true.double()]), x)
    assert found.together.triples == 240
    assert (found.together.slope, found.together.offset) == pytest.approx((a, b), rel=0.01)
    assert set(found.own) == {0, 1, 2, 3}
    assert len(found.together.margins) == 240


def test_candidates_are_what_other_splits_do_not_know(family):
    (asked,) = scored_batches(drawn(family).scorer(), family, "valid")
    assert asked.true.sum(1).tolist() == [1, 1]
    places = {int(r): c for r, c in zip(asked.relations, asked.candidate.tolist(), strict=True)}
    assert places[0] == [True] * 7 + [False]  # fay is the parent of hal in train, of gil in valid


def test_margins_of_several_answers_do_not_compete():
    dataset = random_graph(n=8, relations=1, sizes=(20, 20, 10))
    model = drawn(dataset)
    for asked in scored_batches(model.scorer(), dataset, "valid"):
        several = asked.true.sum(1) > 1
        assert several.any()
        competing = asked.odds[asked.true]
        order = torch.argsort(asked.rows, stable=True)
        assert (asked.margins[order] >= competing - 1e-5).all()
        alone = ~several[asked.rows[order]]
        torch.testing.assert_close(asked.margins[order][alone], competing[alone])


def test_few_questions_of_many_are_asked():
    dataset = random_graph()
    parts = scored_batches(drawn(dataset).scorer(), dataset, "valid", most=7)
    assert sum(len(part.odds) for part in parts) == 7
    # of a small graph all, of one of millions of entities hundreds, and where messages along paths are many
    assert most_questions(100, 100) == 1 << 16
    assert (most_questions(5_000_000, 5_000_000), most_questions(1000, 3_000_000)) == (192, 268)
    assert (most_pairs(10, 1), most_pairs(10, 1_000_000), most_pairs(200, 1_000_000)) == (1 << 12, 80, 0)


def test_where_pairs_cost_too_much_their_relations_have_the_plain_softmax(family):
    scorer = drawn(family).scorer()
    scorer.__class__ = type("Costly", (type(scorer),), {"cost_of_one": 1 << 40})
    found = calibrate(scorer, family)
    assert found.pairs == Line(0, 1.0, 0.0)
    assert found.together.triples == 2 * len(family.valid)


@pytest.mark.parametrize("spec", ONE_OF_EACH)
def test_every_model_can_be_calibrated_and_the_file_says_the_same(spec, family):
    for tied in {False, MODELS[spec].tieable}:
        found = calibrate(drawn(family, spec, tied, bias=tied).scorer(), family)
        assert Calibration.from_fields(json.loads(found.to_json())) == found
        x = torch.tensor([[-5.0, 0, 5]])
        for chances in (
            found.probability(x, torch.tensor([4])),
            found.pair_probability(x, torch.tensor([0])),
        ):
            assert ((chances >= 0) & (chances <= 1)).all()
            assert (chances.diff() >= 0).all()


def test_relation_scores_are_those_of_triples(family):
    model = drawn(family, "RotatE", tied=True, bias=True)
    heads, tails = torch.tensor([0, 3]), torch.tensor([5, 6])
    scores = relation_scores(model.scorer(), heads, tails)
    for relation in range(3):
        whole = model(heads, torch.tensor([relation, relation]))
        torch.testing.assert_close(scores[:, relation], whole[[0, 1], tails])


def test_a_graph_of_one_relation_and_one_without_test():
    dataset = random_graph(relations=1, sizes=(100, 30, 10))
    assert calibrate(drawn(dataset).scorer(), dataset).pairs.slope >= 0
    assert calibrate(drawn(dataset).scorer(), replace(dataset, test=dataset.test[:0])).measured is None


def test_what_cannot_be_calibrated():
    dataset = random_graph()
    with pytest.raises(DataError, match="no triples to calibrate on"):
        calibrate(drawn(dataset).scorer(), replace(dataset, valid=dataset.valid[:0]))
    model = drawn(dataset)
    model.entity_scalar.data[:] = torch.nan
    with pytest.raises(TrainingError, match="no numbers"):
        calibrate(model.scorer(), dataset)


def test_measures_are_what_their_formulas_say():
    dataset = random_graph()
    model, slopes, offsets = drawn(dataset), torch.tensor([2.0] * 4), torch.tensor([0.5] * 4)
    meter, loss, brier, shown, count = Meter(slopes, offsets), 0.0, 0.0, [], 0
    for part in scored_batches(model.scorer(), dataset, "test"):
        meter.add(part)
        for x, candidate, true in zip(part.odds, part.candidate, part.true, strict=True):
            p = (2 * x[candidate] + 0.5).double().sigmoid()
            y = true[candidate].double()
            loss -= float((y * p.log() + (1 - y) * (1 - p).log()).sum())
            brier += float((p - y).square().sum())
            shown += [(float(p[i]), float(y[i])) for i in p.topk(10).indices]
            count += 1
    bins = [[pair for pair in shown if int(pair[0] * 10) == i] for i in range(10)]
    error = sum(abs(sum(p - y for p, y in pairs)) for pairs in bins) / len(shown)
    found = meter.reliability()
    assert found.questions == count
    assert (found.after.log_loss, found.after.brier) == pytest.approx((loss / count, brier / count), rel=1e-4)
    assert found.after.error == pytest.approx(error, rel=1e-4)
    parts = [meter.reliability([r]) for r in range(4)]
    assert sum(p.questions * p.before.brier for p in parts) == pytest.approx(count * found.before.brier)


def test_probabilities_are_true_of_a_graph_drawn_from_them():
    """Facts drawn with the model's own odds: calibrated on one half, they hold on the other."""
    draw = torch.Generator().manual_seed(0)
    dataset = random_graph(n=200, relations=1, sizes=(1, 1, 1))
    model = drawn(dataset, "ComplEx", scale=0.7)
    with torch.no_grad():
        scores = model(torch.arange(200), torch.zeros(200, dtype=torch.long))
    chance = (2.0 * log_odds(scores, torch.zeros_like(scores, dtype=torch.bool)) + 4).sigmoid()
    facts = (torch.rand(scores.shape, generator=draw) < chance).nonzero()
    facts = facts[torch.randperm(len(facts), generator=draw)]
    triples = torch.stack([facts[:, 0], torch.zeros(len(facts), dtype=torch.long), facts[:, 1]], 1)
    half = len(triples) // 2
    graph = replace(dataset, train=triples[:1], valid=triples[1:half], test=triples[half:])
    found = calibrate(model.scorer(), graph).measured.own[0]
    assert found.after.log_loss < found.before.log_loss
    assert found.after.error < 0.5 * found.before.error


def a_users_set(model, graph, head, relation, answer, least):
    """The prediction set of someone who knows every fact of the graph but this one, by the definition."""
    scores = model(torch.tensor([head]), torch.tensor([relation]))[0].double()
    facts = torch.cat([graph.questions(split) for split in ("train", "valid", "test")]).tolist()
    known = {t for h, r, t in facts if (h, r) == (head, relation)} - {answer}
    if graph.irreflexive[relation]:
        known.add(head)
    candidates = [c for c in range(len(graph.entities)) if c not in known]
    odds = {
        c: float(scores[c]) - math.log(sum(math.exp(float(scores[o])) for o in candidates if o != c))
        for c in candidates
    }
    return {c for c in candidates if odds[c] >= least} or {max(candidates, key=odds.get)}


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0])
@torch.no_grad()
def test_share_and_size_are_of_the_sets_that_a_user_gets(scale):
    graph = random_graph(n=15, relations=2, sizes=(60, 90, 80))
    model = drawn(graph, scale=scale)
    found = calibrate(model.scorer(), graph)
    held, sizes = [], []
    for head, relation, answer in graph.questions("test").tolist():
        least, _ = found.least(relation, 0.9)
        chosen = a_users_set(model, graph, head, relation, answer, -math.inf if least is None else least)
        held.append(answer in chosen)
        sizes.append(len(chosen))
    sets = found.measured.sets
    assert 0.5 < sum(held) / len(held) < 1
    assert sets.triples == len(held)
    assert sets.share == pytest.approx(sum(held) / len(held), abs=1e-9)
    assert sets.size == pytest.approx(sum(sizes) / len(sizes), abs=1e-9)


@torch.no_grad()
def test_a_set_that_nothing_reaches_is_the_best_candidate():
    graph = random_graph(n=15, relations=2, sizes=(60, 90, 80))
    for asked in scored_batches(drawn(graph).scorer(), graph, "test"):
        held, sizes = asked.sets(torch.full_like(asked.margins, 50.0))
        best = asked.scores.masked_fill(asked.taken, -torch.inf).amax(1)[asked.rows]
        assert sizes.tolist() == [1] * len(sizes)
        assert held.tolist() == (asked.scores[asked.rows, asked.places] > best).tolist()
        assert 0 < held.sum() < len(held)


@pytest.mark.parametrize(("n", "coverage"), [(20, 0.9), (57, 0.8), (9, 0.5)])
def test_prediction_sets_cover_what_is_exchangeable_as_often_as_they_say(n, coverage):
    """A further margin reaches the bar with probability m / (n + 1) exactly, m = ceil((n + 1) coverage).

    Over 4000 draws the share is off by more than 0.05 with probability under 1e-8 (Hoeffding).
    """
    draw = torch.Generator().manual_seed(n)
    exact = math.ceil((n + 1) * coverage) / (n + 1)
    assert coverage <= exact < coverage + 1 / (n + 1)
    margins = torch.randn(4000, n + 1, generator=draw).exp()
    reached = 0
    for row in margins:
        line = Line(n, 1.0, 0.0, tuple(row[:n].sort().values.tolist()))
        reached += float(row[n]) >= line.least(coverage)
    assert abs(reached / 4000 - exact) < 0.05
    line = Line(n, 1.0, 0.0, tuple(float(i) for i in range(n)))  # the bar itself, not only its share
    assert line.least(coverage) == n - math.ceil((n + 1) * coverage)


def test_answer_sets_go_by_their_own_relation_only_where_that_has_enough():
    few, many = (Line(n, 1.0, 0.0, tuple(float(i) for i in range(n))) for n in (30, 60))
    together = Line(500, 1.0, 0.0, tuple(float(i) for i in range(500)))
    found = Calibration(together, {0: few, 1: many}, few)
    assert found.least(0, 0.9) == (49.0, together)
    assert found.least(1, 0.9) == (5.0, many)
    assert found.least(1, 0.99) == (4.0, together)
    assert found.least(1, 0.999) == (None, together)
    for coverage in (0.0, 1.0, 90.0):
        with pytest.raises(QuestionError, match="between 0 and 1"):
            found.least(0, coverage)


def test_a_line_keeps_a_thousand_margins(monkeypatch):
    monkeypatch.setattr(module, "_KEPT_MARGINS", 100)
    dataset = random_graph()
    found = calibrate(drawn(dataset).scorer(), dataset)
    assert len(found.together.margins) == 100  # of 240
    assert list(found.together.margins) == sorted(found.together.margins)
    monkeypatch.setattr(module, "_KEPT_MARGINS", 240)
    every = calibrate(drawn(dataset).scorer(), dataset).together.margins
    assert len(every) == 240
    assert set(found.together.margins) <= set(every)
