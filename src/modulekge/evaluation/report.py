"""A report: metrics overall, by side, by relation and category, with intervals and the protocol."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from modulekge.data.dataset import Dataset, Split
from modulekge.data.statistics import CATEGORIES, categories
from modulekge.evaluation.evaluate import rank_in_batches
from modulekge.evaluation.metrics import bootstrap, metrics
from modulekge.evaluation.ranks import TIES, Ranks
from modulekge.json_io import typed
from modulekge.models.scorer import Scorer

Metrics = dict[str, float]


@dataclass(frozen=True)
class Protocol:
    """What must be equal before two figures may be compared."""

    ranking: str = "every entity is a candidate"
    filter: str = "known answers of train, valid and test are left out, the answer itself is kept"
    ties: str = "BOTTOM: the answer stands behind all entities of equal score; NaN ranks last"
    sides: str = "heads and tails, averaged over all questions"
    unseen: str = "triples with entities that train does not hold are kept"
    precision: str = "float32"
    intervals: str = "95 %, percentile bootstrap over triples, 1000 resamples"
    categories: str = "1-1, 1-N, N-1, N-N by 1.5 answers per question on average in train"


@dataclass(frozen=True)
class RelationReport:
    """The metrics of one relation, or of one category of relations."""

    name: str
    triples: int
    both: Metrics
    head: Metrics
    tail: Metrics


@dataclass(frozen=True)
class Report:
    """How well a model answers the questions of a split."""

    model: str
    dataset: str
    fingerprint: str
    split: str
    triples: int
    candidates: int
    both: Metrics  # BOTTOM ties, as all others unless said
    intervals: dict[str, tuple[float, float]]
    head: Metrics
    tail: Metrics
    ties: dict[str, Metrics]  # overall, under each tie rule
    without_unseen: Metrics  # overall, without the triples whose entities train does not hold
    unseen_triples: int
    relations: tuple[RelationReport, ...]
    categories: tuple[RelationReport, ...]
    seconds: float
    protocol: Protocol = Protocol()

    def to_json(self, indent: int | None = None) -> str:
        """Return the report as JSON; what could not be computed is null."""
        return json.dumps(_finite(asdict(self)), indent=indent, ensure_ascii=False)

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> "Report":
        """Return the report that was written as these fields of a JSON object."""
        return typed(cls, _measured(fields))


def evaluate(
    scorer: Scorer,
    dataset: Dataset,
    split: Split = "test",
    watch: Callable[[Iterator[Ranks]], Iterable[Ranks]] = iter,
) -> Report:
    """Rank every question of a split and report on it; ``watch`` may show the batches as they pass."""
    started = time.perf_counter()
    dataset.check_split(split, "to evaluate on; name another")
    questions = dataset.questions(split)
    order = scorer.order(questions[:, 1])
    ranks = Ranks.join(list(watch(rank_in_batches(scorer, questions[order], dataset.known))))
    ranks = ranks.at(order.argsort())
    return _report(scorer.name, dataset, split, ranks, time.perf_counter() - started)


def _report(name: str, dataset: Dataset, split: Split, ranks: Ranks, seconds: float) -> Report:
    triples = dataset[split]
    sides = ranks.rank("bottom").reshape(2, -1)  # tails asked for, then heads
    seen = dataset.seen[triples[:, [0, 2]]].all(1)
    relation_of = triples[:, 1]
    kinds = categories(dataset)
    kind_of = torch.tensor([CATEGORIES.index(kind) for kind in kinds])[relation_of]
    present = relation_of.unique().tolist()
    return Report(
        model=name,
        dataset=dataset.name,
        fingerprint=dataset.fingerprint,
        split=split,
        triples=len(triples),
        candidates=len(dataset.entities),
        both=metrics(sides.flatten()),
        intervals=bootstrap(sides),
        head=metrics(sides[1]),
        tail=metrics(sides[0]),
        ties={ties: metrics(ranks.rank(ties)) for ties in TIES},
        without_unseen=metrics(sides[:, seen].flatten()),
        unseen_triples=int((~seen).sum()),
        relations=tuple(_part(dataset.relations.label(r), sides[:, relation_of == r]) for r in present),
        categories=tuple(_part(CATEGORIES[i], sides[:, kind_of == i]) for i in kind_of.unique().tolist()),
        seconds=seconds,
    )


def _part(name: str, sides: Tensor) -> RelationReport:
    return RelationReport(
        name, sides.shape[1], metrics(sides.flatten()), head=metrics(sides[1]), tail=metrics(sides[0])
    )


def _finite(value: Any) -> Any:
    """Replace NaN, which JSON does not have, by null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and value != value else value


def _measured(value: Any) -> Any:
    """Replace null, which is no number, by NaN."""
    if isinstance(value, dict):
        return {key: _measured(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_measured(item) for item in value]
    return float("nan") if value is None else value
