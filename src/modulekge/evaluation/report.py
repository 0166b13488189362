"""A report: metrics overall, by side, by relation and category, with intervals and the protocol."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from modulekge.frames import Columns, Table
from modulekge.json_io import typed
from modulekge.wording import counted

Metrics = dict[str, float]


@dataclass(frozen=True)
class Protocol:
    """What must be equal before two figures may be compared."""

    triples: str = "all of the split"
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


@dataclass(frozen=True, repr=False)
class Report(Table):
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
    without_unseen: (
        Metrics | None
    )  # overall, without triples whose entities train does not hold; None: no others
    unseen_triples: int
    relations: tuple[RelationReport, ...]
    categories: tuple[RelationReport, ...]
    seconds: float
    protocol: Protocol = Protocol()

    def _about(self) -> Mapping[str, object]:
        return {
            "model": self.model,
            "graph": self.dataset,
            "split": f"{self.split}, {counted(self.triples, 'triple')}",
            **{name: value for name, value in self.both.items() if name in ("mrr", "hits@10")},
        }

    def _columns(self) -> Columns:
        """A row for both sides and each, overall, of each category and of each relation."""
        whole = RelationReport("all", self.triples, self.both, self.head, self.tail)
        parts = [
            ("overall", whole),
            *(("category", part) for part in self.categories),
            *(("relation", part) for part in self.relations),
        ]
        types = {"part": str, "name": str, "triples": int, "side": str, **dict.fromkeys(self.both, float)}
        return types, [
            {"part": kind, "name": part.name, "triples": part.triples, "side": side, **getattr(part, side)}
            for kind, part in parts
            for side in ("both", "head", "tail")
        ]

    def to_json(self, indent: int | None = None) -> str:
        """Return the report as JSON."""
        return json.dumps(asdict(self), indent=indent, ensure_ascii=False)

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> "Report":
        """Return the report that was written as these fields of a JSON object."""
        unseen = fields.get("without_unseen")
        if isinstance(unseen, dict) and None in unseen.values():  # as it was written before
            fields = {**fields, "without_unseen": None}
        protocol = fields.get("protocol")
        if isinstance(protocol, dict) and "triples" not in protocol:
            fields = {**fields, "protocol": {"triples": Protocol.triples, **protocol}}
        return typed(cls, fields)
