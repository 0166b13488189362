"""A run that answers compound questions, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, get_args

import torch
from jaxtyping import Bool
from torch import Tensor

from modulekge.answers.compound.formula import CompoundQuestion, with_value
from modulekge.answers.compound.plan import Plan, plan
from modulekge.answers.compound.probabilities import (
    MOST_SCORES,
    THRESHOLD,
    FactRows,
    ScoredRows,
    link_probabilities,
)
from modulekge.answers.compound.solve import Solver, Vector
from modulekge.answers.compound.syntax import parse
from modulekge.answers.compound.tnorms import find_t_norm
from modulekge.answers.compound.witness import Reason, witness
from modulekge.answers.links import answered
from modulekge.answers.predictor import Known, Predictor
from modulekge.choices import FEW
from modulekge.data.filter_index import FilterIndex
from modulekge.data.type_constraints import Types, check_types
from modulekge.errors import QuestionError
from modulekge.evaluation.odds import questions_at_once
from modulekge.frames import Columns, Shown, Table
from modulekge.run.run import Run, load
from modulekge.shapes import Ids, Scores

_FLOORS = (0.5, 0.05)  # probabilities above which answers are looked for first
Probabilities = Literal["calibrated", "softmax"]


@dataclass(frozen=True)
class WitnessLink:
    """A link of a witness, by label (and name, where that is shared): known, or with a probability."""

    head: str
    relation: str
    tail: str
    probability: float  # that the link holds; 1 where it is known
    known: bool
    negated: bool  # the question wants it not to hold
    names: tuple[str, str, str]  # of head, relation and tail: labels may be shared

    def __str__(self) -> str:
        sure = "known" if self.known else f"{self.probability:.1%}"
        return f"{'against: ' if self.negated else ''}{self.head} {self.relation} {self.tail} ({sure})"


@dataclass(frozen=True)
class CompoundAnswer:
    """An entity, its probability, and the best reason for it."""

    rank: int
    name: str
    label: str
    probability: float
    known: bool  # the graph alone says so: no link had to be predicted
    values: dict[str, str]  # of the other variables, by label, and by name where it is shared
    links: list[WitnessLink]


@dataclass(frozen=True, repr=False)
class CompoundAnswers(Table):
    """The best answers to a compound question, and what their probabilities are made of."""

    answers: list[CompoundAnswer]
    possible: int | None  # answers of at least the threshold; None where the best were found before all
    probabilities: Probabilities
    t_norm: str
    threshold: float  # links and answers below it count as impossible

    def _about(self) -> Mapping[str, object]:
        count = "" if self.possible is None else f" of {self.possible:,} possible"
        return {"answers": f"{len(self.answers):,}{count}", "probabilities": self.probabilities}

    def _columns(self) -> Columns:
        types = dict.fromkeys(("name", "label", "because"), str)
        return {"rank": int, **types, "probability": float, "known": bool}, [
            {**vars(answer), "because": "; ".join(map(str, answer.links))} for answer in self.answers
        ]


@dataclass(frozen=True, eq=False, repr=False)
class Asker(Shown):
    """A run that answers compound questions; what it works out for one helps the next.

    Facts of all splits are known. Probabilities are calibrated where the run is, else a softmax that nobody
    fitted. As in :meth:`modulekge.Predictor.links`, what no fact of a relation shows counts as impossible: a
    second answer where each question has one, loops, and, unless ``types="any"``, ends of a type that the
    relation does not hold there.

    >>> asked = Asker(modulekge.load("runs/demo"))  # doctest: +SKIP
    >>> asked.ask("?c where France borders ?x and ?x uses_currency ?c", k=3).answers  # doctest: +SKIP
    """

    run: Run
    probabilities: Probabilities | None = None  # None: calibrated if the run is
    types: Types = "constrained"
    temperature: float = 1.0  # of the softmax
    threshold: float = THRESHOLD  # links and answers that are less probable count as impossible
    most_scores: int = MOST_SCORES  # worked out for one question; what takes more is refused
    predictor: Predictor | None = field(default=None, repr=False)  # of the same run, where there is one

    def _about(self) -> Mapping[str, object]:
        return self.run._about()

    def __post_init__(self) -> None:
        check_types(self.types)
        if self.probabilities not in (None, *get_args(Probabilities)):
            expected = " or ".join(get_args(Probabilities))
            raise QuestionError(f"probabilities = {self.probabilities!r}: expected {expected}")

    @cached_property
    def _predictor(self) -> Predictor:
        return self.predictor or Predictor(self.run)

    @cached_property
    def form(self) -> Probabilities:
        """What probabilities are made of."""
        calibrated = self.probabilities == "calibrated" or (
            self.probabilities is None and self._predictor.calibration is not None
        )
        if calibrated and self._predictor.calibration is None:
            path = self.run.folder.path
            raise QuestionError(f"{path}: has no calibration; 'modulekge calibrate {path}' makes it")
        return "calibrated" if calibrated else "softmax"

    @cached_property
    def facts(self) -> FilterIndex:
        """The answers that are known, of all splits."""
        return self.run.dataset.known.to(self.run.scorer.device)

    @cached_property
    def rows(self) -> ScoredRows:
        """The probabilities of links, and those that are kept."""
        scorer = self.run.scorer
        at_once = questions_at_once(scorer.n_entities, scorer.device)
        return ScoredRows(
            self._chances,
            scorer.n_entities,
            scorer.device,
            at_once,
            self.threshold,
            scorer.cost,
            most_scores=self.most_scores,
        )

    def _chances(self, heads: Ids, relations: Ids) -> Scores:
        """Probabilities of links; what no fact of a relation shows is left out before anything is scored."""
        calibration = self._predictor.calibration if self.form == "calibrated" else None
        scorer, irreflexive = self.run.scorer, self.run.dataset.irreflexive.to(heads.device)
        there, back = (self._shut(int(r)) for r in (relations[0], scorer.inverse(relations[:1])))
        chances = torch.zeros(len(heads), scorer.n_entities, device=heads.device)
        if len(asked := (~there[heads]).nonzero()[:, 0]):
            found = link_probabilities(
                scorer,
                heads[asked],
                relations[asked],
                self.facts,
                calibration,
                self.temperature,
                irreflexive,
                self.threshold,
            ).masked_fill_(back, 0)
            chances = found if len(asked) == len(heads) else chances.index_copy_(0, asked, found)
        chances[self.facts.of_questions(heads, relations)] = 1
        return chances

    @cached_property
    def _shut(self) -> Callable[[int], Bool[Tensor, " e"]]:
        """Which entities a relation is not asked of: of other types, or with the one answer that there is."""
        dataset, device = self.run.dataset, self.run.scorer.device

        def shut(relation: int) -> Bool[Tensor, " e"]:
            found = answered(dataset, relation, device)
            if self.types == "constrained":
                inverse = (relation + len(dataset.relations)) % dataset.n_relations_with_inverses
                found |= ~self._predictor.type_constraints.allowed(inverse).to(device)
            return found

        return cache(shut)

    def ask(
        self,
        question: str | CompoundQuestion,
        k: int | None = None,
        known: Known = "mark",
        t_norm: str = "product",
    ) -> CompoundAnswers:
        """Return the ``k`` most probable answers to a question, ten unless said, each with its best reason.

        ``known="exclude"`` leaves out what the graph alone answers, so that at least one link is predicted.
        Likely answers are looked for first: no reason for one leads over unlikely links. The formulas:
        :mod:`modulekge.answers.compound.formula`.
        """
        count, norm = self._count(k, known), find_t_norm(t_norm)
        planned = plan(parse(question) if isinstance(question, str) else question, self.run.dataset)
        self.rows.begin()
        old = self._answered(planned) >= 1
        left_out = old if known == "exclude" else torch.zeros_like(old)
        for floor in (*(each for each in _FLOORS if each > self.threshold), self.threshold):
            solver = Solver(self.rows, norm, floor)
            chances = solver.values(planned.where, planned.answer).masked_fill(left_out, 0)
            found = int(((chances >= floor) & (chances > 0)).sum())
            if found >= count:
                break
        ids = chances.sort(descending=True, stable=True).indices[: min(count, found)].tolist()
        answers = [
            self._answer(rank, i, float(chances[i]), bool(old[i]), planned, solver)
            for rank, i in enumerate(ids, start=1)
        ]
        possible = found if floor == self.threshold else None
        return CompoundAnswers(answers, possible, self.form, norm.name, self.threshold)

    def _count(self, k: int | None, known: Known) -> int:
        if known not in get_args(Known):
            raise QuestionError(f"known = {known!r}: expected {' or '.join(get_args(Known))}")
        return FEW if k is None else self._predictor.entities.count(k)

    def _answered(self, planned: Plan) -> Vector:
        """Return 1 for what the facts alone answer, if what is no fact is false."""
        facts = FactRows(self.facts, self.rows.n_entities, self.rows.device)
        return Solver(facts).values(planned.where, planned.answer)

    def _answer(
        self, rank: int, entity: int, chance: float, known: bool, planned: Plan, solver: Solver
    ) -> CompoundAnswer:
        entities = self.run.dataset.entities
        found = witness(solver, with_value(planned.where, planned.answer, entity))
        values = {name: entities.called(i) for name, i in found.values.items()}
        links = [self._link(reason, solver) for reason in found.reasons]
        return CompoundAnswer(
            rank, entities.names[entity], entities.label(entity), chance, known, values, links
        )

    def _link(self, reason: Reason, solver: Solver) -> WitnessLink:
        """Return a link as the question has it."""
        link, relations, entities = reason.link, self.run.dataset.relations, self.run.dataset.entities
        ends = torch.tensor([link.source, link.relation, link.target], device=self.rows.device)
        known = bool(self.facts.among(ends[:1], ends[1:2], ends[2:, None]))
        source, target = int(ends[0]), int(ends[2])
        inverse, relation = divmod(link.relation, len(relations))
        head, tail = (target, source) if inverse else (source, target)
        return WitnessLink(
            entities.called(head),
            relations.label(relation),
            entities.called(tail),
            solver.value(link),
            known,
            reason.negated,
            (entities.names[head], relations.names[relation], entities.names[tail]),
        )


def ask(
    run: Run | str | Path,
    question: str | CompoundQuestion,
    k: int | None = None,
    *,
    known: Known = "mark",
    t_norm: str = "product",
    probabilities: Probabilities | None = None,
    types: Types = "constrained",
) -> CompoundAnswers:
    """Return the most probable answers to a compound question; for many questions keep an :class:`Asker`.

    >>> question = "?c where France borders ?x and ?x uses_currency ?c"
    >>> modulekge.ask("runs/demo", question, k=3).answers[0].label  # doctest: +SKIP
    """
    asker = Asker(run if isinstance(run, Run) else load(run), probabilities=probabilities, types=types)
    return asker.ask(question, k, known, t_norm)
