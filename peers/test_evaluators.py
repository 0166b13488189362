"""The metrics of the same weights under three evaluators: ours, PyKEEN's, and one as LibKGE describes it.

`make peers` runs this where MODULEKGE_DATA names a folder with UMLS.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from pykeen.evaluation import RankBasedEvaluator
from pykeen.models import ComplEx
from pykeen.triples import CoreTriplesFactory

from modulekge.config import make_config
from modulekge.data.dataset import Dataset
from modulekge.data.registry import open_dataset
from modulekge.evaluation.evaluate import evaluate
from modulekge.evaluation.report import Report
from modulekge.models.embedding import Embedding
from modulekge.models.spec import MODELS
from modulekge.training.fit import fit
from modulekge.training.optimizers import make_optimizer

K = 16
CLOSE = {"rel": 0, "abs": 1e-6}
THEIR_TIES = {"bottom": "pessimistic", "top": "optimistic", "mean": "realistic"}
THEIR_NAMES = {
    "mrr": "inverse_harmonic_mean_rank",
    "mr": "arithmetic_mean_rank",
    **{f"hits@{k}": f"hits_at_{k}" for k in (1, 3, 10)},
}


@dataclass(frozen=True)
class Measured:
    """A model, the graph it was trained on, and what is ours to say of it."""

    model: Embedding
    dataset: Dataset
    report: Report


@pytest.fixture(scope="module")
def measured() -> Measured:
    """ComplEx trained for some epochs on UMLS; a tenth of the entities then share a vector, and so tie."""
    if not any(
        Path(place).joinpath("UMLS").is_dir() for place in os.environ.get("MODULEKGE_DATA", "").split(":")
    ):
        pytest.skip("MODULEKGE_DATA names no folder with UMLS")
    dataset = open_dataset("UMLS")
    torch.manual_seed(0)
    config = make_config(
        [{"model": {"name": "ComplEx"}, "train": {"epochs": 10, "batch": 200, "every": 100}}]
    )
    model = Embedding(
        MODELS["ComplEx"], len(dataset.entities), dataset.n_relations_with_inverses, K, tied=True
    )
    model.draw(torch.Generator().manual_seed(0), 0.1, 1.0)
    for _ in fit(model, dataset, make_optimizer(model, config.train), config):
        pass
    with torch.no_grad():
        model.entity_scalar[::10] = model.entity_scalar[0].clone()
    model = model.double()  # in which no two evaluators round two scores past each other
    return Measured(model, dataset, evaluate(model.scorer(), dataset, "test"))


def test_pykeen(measured):
    model, dataset = measured.model, measured.dataset
    sizes = {"num_entities": len(dataset.entities), "num_relations": len(dataset.relations)}
    other = ComplEx(triples_factory=CoreTriplesFactory(dataset.train, **sizes), embedding_dim=K).double()
    with torch.no_grad():
        for where, values in (
            (other.entity_representations, model.entities()),
            (other.relation_representations, model.relation_scaling),
        ):
            table = where[0]._embeddings.weight
            table.copy_(values.transpose(1, 2).reshape(table.shape))
    found = RankBasedEvaluator(filtered=True).evaluate(
        other,
        dataset.test,
        additional_filter_triples=[dataset.train, dataset.valid],
        use_tqdm=False,
    )
    for ties, word in THEIR_TIES.items():
        for name, metric in THEIR_NAMES.items():
            theirs = found.get_metric(f"both.{word}.{metric}")
            assert measured.report.ties[ties][name] == pytest.approx(theirs, **CLOSE), (ties, name)
    for side in ("head", "tail"):
        theirs = found.get_metric(f"{side}.pessimistic.inverse_harmonic_mean_rank")
        assert getattr(measured.report, side)["mrr"] == pytest.approx(theirs, **CLOSE)
    assert measured.report.ties["top"]["mrr"] > measured.report.ties["bottom"]["mrr"] + 1e-3  # there are ties


@torch.no_grad()
def libkge_ranks(measured: Measured) -> list[tuple[int, int]]:
    """(rank, number of ties) of each question by LibKGE's protocol, counted from 0; the answer ties itself.

    Its entity ranking: scores of known facts other than the answer become -inf, as do those that are NaN;
    ``rank`` is how many scores are greater, ``ties`` how many are equal.
    """
    model, dataset = measured.model, measured.dataset
    facts = {tuple(t) for split in ("train", "valid", "test") for t in dataset[split].tolist()}
    found, table, n = [], model.entities(), len(dataset.entities)
    for h, r, t in dataset.test.tolist():
        for fixed, relation, answer, known in (
            (h, r, t, [(h, r, e) in facts for e in range(n)]),
            (t, r + len(dataset.relations), h, [(e, r, t) in facts for e in range(n)]),
        ):
            queries = model.queries(torch.tensor([fixed]), torch.tensor([relation]))
            scores = model.scores(queries, table)[0].tolist()
            own = scores[answer]
            left = [float("-inf") if known[e] and e != answer else s for e, s in enumerate(scores)]
            found.append((sum(s > own for s in left), sum(s == own for s in left)))
    return found


LIBKGE_TIES = {
    "worst_rank": lambda rank, ties: rank + ties - 1,
    "best_rank": lambda rank, ties: rank,
    "rounded_mean_rank": lambda rank, ties: rank + ties // 2,
}


def test_libkge(measured):
    """Worst and best ranks are our BOTTOM and TOP; its rounded mean is ours where that is whole."""
    counted = libkge_ranks(measured)
    for ours, theirs in (("bottom", "worst_rank"), ("top", "best_rank")):
        ranks = [1 + LIBKGE_TIES[theirs](*pair) for pair in counted]
        expected = {"mrr": sum(1 / r for r in ranks) / len(ranks), "mr": sum(ranks) / len(ranks)}
        expected |= {f"hits@{k}": sum(r <= k for r in ranks) / len(ranks) for k in (1, 3, 10)}
        assert measured.report.ties[ours] == pytest.approx(expected, **CLOSE)
    rounded = sum(1 + LIBKGE_TIES["rounded_mean_rank"](*pair) for pair in counted) / len(counted)
    halves = sum((ties - 1) % 2 for _, ties in counted) / len(counted) / 2  # which it rounds up
    assert measured.report.ties["mean"]["mr"] == pytest.approx(rounded - halves, **CLOSE)


def test_without_ties_all_rules_are_one(measured):
    model = Embedding(
        MODELS["ComplEx"],
        len(measured.dataset.entities),
        measured.dataset.n_relations_with_inverses,
        K,
        tied=True,
    )
    model.draw(torch.Generator().manual_seed(1), 1.0, 1.0).double()
    apart = replace(measured, model=model, report=evaluate(model.scorer(), measured.dataset, "test"))
    assert {ties for _, ties in libkge_ranks(apart)} == {1}
    assert apart.report.ties["bottom"] == apart.report.ties["top"] == apart.report.ties["mean"]
