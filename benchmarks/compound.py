"""How well a run answers compound questions: python benchmarks/compound.py RUN [--questions N] [--out FILE].

Questions of the 14 usual types are drawn as for BetaE (Ren and Leskovec 2020): those of one link from the
hidden facts, the others backwards from a random answer over the facts of all splits, relations both ways, no
relation followed by its own inverse. The answers to a question are worked out from the facts that may be
known (train and valid) and from all facts. Hard ones are those of the second that are none of the first: they
need a missing link. Questions without any, or with more than 100 answers, are drawn again. The rank of a hard
answer is among all entities that are no answers, ties in the middle; MRR is the mean over hard answers, then
over questions.

Probabilities are a softmax times the number of known answers; its temperature and the threshold of links are
chosen on questions of valid, whose answers are hidden likewise. Test is seen by nothing but the ranks. A line
of JSON for each type, then one with the means; "deep" is of the hard answers that need more than one missing
link. With --latency, how long ten answers with witnesses take in place of all that: a line for each type.
"""

import argparse
import itertools
import json
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from modulekge.answers.compound.asker import Asker
from modulekge.answers.compound.formula import (
    CompoundQuestion,
    Formula,
    Link,
    Not,
    Triple,
    Variable,
    Word,
    all_of,
    any_of,
)
from modulekge.answers.compound.probabilities import Entries, FactRows, LinkRows
from modulekge.answers.compound.solve import Solver
from modulekge.data.dataset import Dataset
from modulekge.data.filter_index import FilterIndex
from modulekge.run.provenance import source_commit
from modulekge.run.run import Run, load

P, ALL, ANY, N, E = "project", "intersect", "unite", "negate", ()
ONE = (P, E)
TYPES: dict[str, Any] = {
    "1p": ONE,
    "2p": (P, ONE),
    "3p": (P, (P, ONE)),
    "2i": (ALL, ONE, ONE),
    "3i": (ALL, ONE, ONE, ONE),
    "pi": (ALL, (P, ONE), ONE),
    "ip": (P, (ALL, ONE, ONE)),
    "2u": (ANY, ONE, ONE),
    "up": (P, (ANY, ONE, ONE)),
    "2in": (ALL, ONE, (N, ONE)),
    "3in": (ALL, ONE, ONE, (N, ONE)),
    "inp": (P, (ALL, ONE, (N, ONE))),
    "pin": (ALL, (P, ONE), (N, ONE)),
    "pni": (ALL, (N, (P, ONE)), ONE),
}
NEGATIVE = frozenset({"2in", "3in", "inp", "pin", "pni"})
MOST_ANSWERS = 100
TRIES = 20_000  # of drawing a type, before there are too few
TUNED_ON = ("2p", "2i", "pi", "2in")
START = {"temperature": 1.0, "threshold": 1e-3}
CHOICES: dict[str, tuple[Any, ...]] = {
    "temperature": (0.5, 2.0),
    "threshold": (1e-4,),
}  # each in turn, beside the best of those before


class MissingRows(LinkRows):
    """1 for known facts, 1/10 for missing ones: the best product tells how few missing links it takes."""

    def __init__(self, known: FilterIndex, every: FactRows) -> None:
        self._known, self._every = known, every
        self.n_entities, self.device = every.n_entities, every.device

    def entries(self, relation: int, heads: torch.Tensor) -> Entries:
        """Return the facts of some heads."""
        rows, columns, values = self._every.entries(relation, heads)
        asked = torch.full_like(columns, relation)
        known = self._known.among(heads[rows], asked, columns[:, None])[:, 0]
        return Entries(rows, columns, values.where(known, 0.1))


@dataclass(frozen=True)
class Drawn:
    """A question by id, which entities answer it, and how many missing links each hard answer needs."""

    where: Formula
    answers: torch.Tensor  # (e) whether it is one
    missing: dict[int, int]


class Drawer:
    """Draws questions whose answers are partly hidden."""

    def __init__(self, known: Dataset, every: Dataset, seed: int) -> None:
        self._random, self._n = random.Random(seed), len(every.relations)
        self._into: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for split in ("train", "valid", "test"):
            for head, relation, tail in every.questions(split).tolist():
                self._into[tail][relation].append(head)
        self._entities = sorted(self._into)
        hidden = [every.questions(s) for s in ("valid", "test") if len(every[s]) > len(known[s])]
        self._hidden = torch.cat(hidden)[:, :2].unique(dim=0).tolist()
        cpu, n_entities = torch.device("cpu"), len(every.entities)
        self._known = FactRows(known.known, n_entities, cpu)
        self._every = FactRows(every.known, n_entities, cpu)
        self._missing = MissingRows(known.known, self._every)

    def questions(self, shape: Any) -> Iterator[Drawn]:
        """Yield questions of a type until too many tries found none."""
        seen: set[Formula] = set()
        for _ in range(TRIES):
            if shape == ONE:
                head, relation = self._random.choice(self._hidden)
                where: Formula | None = Link(head, relation, Variable("0"))
            else:
                where = self._formula(shape, self._random.choice(self._entities), Variable("0"), None)
            if where is not None and where not in seen:
                seen.add(where)
                if drawn := self._drawn(where):
                    yield drawn

    def _drawn(self, where: Formula) -> Drawn | None:
        answer = Variable("0")
        every = Solver(self._every).values(where, answer) > 0.5
        if not 0 < int(every.sum()) <= MOST_ANSWERS:
            return None
        easy = Solver(self._known).values(where, answer) > 0.5
        hard = (every & ~easy).nonzero()[:, 0]
        if len(hard) == 0:
            return None
        chances = Solver(self._missing).values(where, answer)
        missing = (-chances[hard].clamp(min=1e-9).log10()).round().long()
        return Drawn(where, every, dict(zip(hard.tolist(), missing.tolist(), strict=True)))

    def _formula(self, shape: Any, entity: int, of: Variable, after: int | None) -> Formula | None:
        """Fill a type backwards from an entity that it shall lead to; None where that cannot be."""
        kind, *parts = shape
        if kind == P:
            return self._projected(parts[0], entity, of, after)
        found = [
            self._formula(part, entity, Variable(f"{of.name}{i}"), after) for i, part in enumerate(parts)
        ]
        if None in found:
            return None
        moved = [_renamed(part, Variable(f"{of.name}{i}"), of) for i, part in enumerate(found)]
        if kind == N:
            return Not(moved[0])
        positive = {part.part if isinstance(part, Not) else part for part in moved}
        if len(positive) < len(moved):
            return None
        return all_of(moved) if kind == ALL else any_of(moved)

    def _projected(self, inner: Any, entity: int, of: Variable, after: int | None) -> Formula | None:
        relations = [r for r in self._into[entity] if after is None or (r + self._n) % (2 * self._n) != after]
        if not relations:
            return None
        relation = self._random.choice(relations)
        head = self._random.choice(self._into[entity][relation])
        if inner == E:
            return Link(head, relation, of)
        middle = Variable(f"{of.name}-", len(of.name))
        before = self._formula(inner, head, middle, relation)
        return None if before is None else all_of([before, Link(middle, relation, of)])


def _renamed(formula: Any, old: Variable, new: Variable) -> Formula:
    if isinstance(formula, Link):
        source, target = (new if end == old else end for end in (formula.source, formula.target))
        return Link(source, formula.relation, target)
    if isinstance(formula, Not):
        return Not(_renamed(formula.part, old, new))
    return type(formula)(tuple(_renamed(part, old, new) for part in formula.parts))


def reciprocal_ranks(asker: Asker, question: Drawn) -> dict[int, float]:
    """The reciprocal rank of each hard answer among all that are no answers."""
    asker.rows.begin()
    values = Solver(asker.rows, floor=asker.threshold).values(question.where, Variable("0")).cpu()
    others = values[~question.answers]
    found = {}
    for answer in question.missing:
        above, alike = (others > values[answer]).sum(), (others == values[answer]).sum()
        found[answer] = 1 / (1 + float(above) + float(alike) / 2)
    return found


def hidden(run: Run, split: str) -> tuple[Run, Dataset]:
    """Return a run that does not know a split and those after it, and the graph with that split."""
    nothing = run.dataset.train[:0]
    every = run.dataset if split == "test" else replace(run.dataset, test=nothing)
    return replace(run, dataset=replace(every, **{split: nothing})), every


def chosen(run: Run, count: int, seed: int) -> dict[str, Any]:
    """Choose temperature, threshold and types by the mean MRR of a few questions of valid."""
    known, every = hidden(run, "valid")
    drawer = Drawer(known.dataset, every, seed)
    asked = {
        name: list(itertools.islice(drawer.questions(TYPES[name]), count))
        for name in ("2p", "2i", "pi", "2in")
    }
    best, highest = START, mean_mrr(known, asked.values(), START)
    for name, values in CHOICES.items():
        for value in values:
            found = mean_mrr(known, asked.values(), tried := {**best, name: value})
            best, highest = (tried, found) if found > highest else (best, highest)
    return best


def mean_mrr(run: Run, asked: Iterable[Sequence[Drawn]], settings: dict[str, Any]) -> float:
    """The mean over types of their MRR, with some settings."""
    asker = make_asker(run, **settings)
    found = fmean(
        fmean(fmean(reciprocal_ranks(asker, question).values()) for question in some)
        for some in asked
        if some
    )
    print(json.dumps({"valid": settings, "mrr": round(found, 4)}), flush=True)
    return found


def make_asker(run: Run, temperature: float, threshold: float) -> Asker:
    """Return who answers, by a softmax."""
    return Asker(run, "softmax", temperature=temperature, threshold=threshold)


def measured(asker: Asker, name: str, questions: Sequence[Drawn]) -> dict[str, Any]:
    """What a type comes to."""
    began, ranks, deep = time.perf_counter(), [], []
    for question in questions:
        found = reciprocal_ranks(asker, question)
        ranks.append(fmean(found.values()))
        if some := [found[answer] for answer, missing in question.missing.items() if missing > 1]:
            deep.append(fmean(some))
    seconds = (time.perf_counter() - began) / max(1, len(questions))
    return {
        "type": name,
        "questions": len(questions),
        "hard answers": sum(len(question.missing) for question in questions),
        "mrr": round(fmean(ranks), 4) if ranks else None,
        "deep questions": len(deep),
        "deep mrr": round(fmean(deep), 4) if deep else None,
        "seconds a question": round(seconds, 4),
    }


def latency(asker: Asker, name: str, questions: Sequence[Drawn]) -> dict[str, Any]:
    """Milliseconds of ten answers with witnesses, to a question that is new and to the same one again."""
    new, again = [], []
    for question in questions:
        where = by_name(question.where, asker.run.dataset)
        for times in (new, again):
            began = time.perf_counter()
            asker.ask(CompoundQuestion(Variable("0"), where))
            times.append((time.perf_counter() - began) * 1e3)
    found: dict[str, Any] = {"type": name, "questions": len(questions), "threads": torch.get_num_threads()}
    for key, times in (("new", new), ("again", again)):
        middle, ninth = torch.tensor(times).quantile(torch.tensor([0.5, 0.9])).tolist()
        found |= {f"{key}, median ms": round(middle, 1), f"{key}, 90th percentile ms": round(ninth, 1)}
    return found


def by_name(formula: Any, dataset: Dataset) -> Formula:
    """Return a formula of ids as someone would ask it."""
    if isinstance(formula, Not):
        return Not(by_name(formula.part, dataset))
    if not isinstance(formula, Link):
        return type(formula)(tuple(by_name(part, dataset) for part in formula.parts))
    names = dataset.entities.names
    ends = [
        end if isinstance(end, Variable) else Word(names[end]) for end in (formula.source, formula.target)
    ]
    inverse, relation = divmod(formula.relation, len(dataset.relations))
    head, tail = reversed(ends) if inverse else ends
    return Triple(head, Word(dataset.relations.names[relation]), tail)


def _mean(found: Sequence[dict[str, Any]], key: str, negative: bool) -> float | None:
    values = [each[key] for each in found if (each["type"] in NEGATIVE) == negative and each[key] is not None]
    return round(fmean(values), 4) if values else None


def main() -> None:
    """Measure a run; print, and write to a file if one is named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--questions", type=int, default=100, help="of each type")
    parser.add_argument("--tuned-on", type=int, default=30, help="questions of valid, of each of four types")
    parser.add_argument("--types", nargs="+", default=list(TYPES), choices=list(TYPES))
    parser.add_argument("--latency", action="store_true", help="time answers; nothing is tuned")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    run = load(given.run)
    settings = START if given.latency else chosen(run, given.tuned_on, given.seed + 1)
    known, every = hidden(run, "test")
    asker, drawer, lines = make_asker(known, **settings), Drawer(known.dataset, every, given.seed), []
    for name in given.types:
        questions = list(itertools.islice(drawer.questions(TYPES[name]), given.questions))
        lines.append((latency if given.latency else measured)(asker, name, questions))
        print(json.dumps(lines[-1]), flush=True)
    means = {
        f"{kind} {key}": _mean(lines, key, kind == "negative")
        for kind in ("positive", "negative")
        for key in ("mrr", "deep mrr")
        if not given.latency
    }
    about = {"graph": run.dataset.name, "model": run.name, "k": run.model.k, "seed": given.seed}
    kept = {"rows kept, MiB": round(asker.rows.size / 2**20), "commit": source_commit()}
    lines.append({**about, **settings, **means, **kept})
    print(json.dumps(lines[-1]), flush=True)
    if given.out:
        given.out.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


if __name__ == "__main__":
    main()
