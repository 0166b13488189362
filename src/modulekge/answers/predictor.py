"""Questions by name, answers by name: no HTTP here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import torch
from jaxtyping import Int
from torch import Tensor

from modulekge.answers.links import Watch, best_links, links_in_chunks
from modulekge.answers.questions import Answers, Link, Links, PredictionSet, QueryType, Question, QuestionIds
from modulekge.answers.triples import Named, NamedTriples, Unknown
from modulekge.data.benchmarks import SPLITS, Split
from modulekge.data.filter_index import FilterIndex
from modulekge.data.type_constraints import TypeConstraints, Types, check_types
from modulekge.errors import QuestionError, RunError
from modulekge.evaluation.calibration import Calibration
from modulekge.evaluation.link_calibration import degree_classes
from modulekge.evaluation.odds import (
    pairs_at_once,
    questions_at_once,
    relation_scores,
    relations_between,
)
from modulekge.evaluation.ranks import Ranks
from modulekge.frames import Shown
from modulekge.run.calibrate import scored_by
from modulekge.run.run import Run, load
from modulekge.shapes import Ids, Triples

if TYPE_CHECKING:
    from modulekge.data.readers.tabular import ArrowStream

Known = Literal["mark", "exclude"]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Predictor(Shown):
    """A run that can be asked; given by its folder, it is loaded.

    >>> asked = Predictor("runs/demo")  # doctest: +SKIP
    >>> asked.predict(head="France", relation="borders", k=3, known="exclude")  # doctest: +SKIP
    >>> asked.predict(head="France", tail="Spain")  # doctest: +SKIP
    """

    run: Run

    def __init__(self, run: Run | str | Path) -> None:
        object.__setattr__(self, "run", run if isinstance(run, Run) else load(run))

    def _about(self) -> Mapping[str, object]:
        return self.run._about()

    @cached_property
    def calibration(self) -> Calibration | None:
        """What makes probabilities of scores, where the run was calibrated."""
        folder = self.run.folder
        found = None if self.run.elsewhere else folder.calibration()  # which is fitted to the run's own graph
        if found and found.fitted_to not in ("", scored_by(self.run)):
            finding = f"{folder.calibration_file}: fitted to other weights"
            raise RunError(
                f"{finding}; load the run again, or 'modulekge calibrate {folder.path}' makes it anew"
            )
        return found

    @cached_property
    def entities(self) -> QueryType:
        """Questions for entities."""
        dataset, scorer, device = self.run.dataset, self.run.scorer, self.run.scorer.device
        n = dataset.n_relations_with_inverses
        return QueryType(
            dataset.entities,
            {split: FilterIndex.of(dataset.questions(split), n).to(device) for split in SPLITS},
            scorer.scores,
            None if self.calibration is None else self.calibration.probability,
            questions_at_once(len(dataset.entities), device),
            dataset.irreflexive.to(device),
        )

    @cached_property
    def type_constraints(self) -> TypeConstraints:
        """Which entities each side of a relation can hold."""
        return TypeConstraints.of(self.run.dataset)

    @cached_property
    def _relations(self) -> QueryType:
        dataset, scorer, device = self.run.dataset, self.run.scorer, self.run.scorer.device
        return QueryType(
            dataset.relations,
            {split: relations_between(dataset, (split,)).to(device) for split in SPLITS},
            partial(relation_scores, scorer),
            None if self.calibration is None else self.calibration.pair_probability,
            pairs_at_once(len(dataset.relations)),
        )

    def predict(
        self,
        *,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        k: int | None = None,
        known: Known = "mark",
        types: Types = "any",
    ) -> Answers:
        """Return the ``k`` best answers for whichever of the three is left out: tails, heads or relations.

        Ten unless said, or all where there are fewer. ``known="exclude"`` leaves facts of the graph out;
        ``types="constrained"`` new answers of a type that this side of the relation does not hold.
        """
        return self.predict_many([Question(head, relation, tail)], k, known, types)[0]

    def predict_many(
        self,
        questions: Sequence[Question],
        k: int | None = None,
        known: Known = "mark",
        types: Types = "any",
    ) -> list[Answers]:
        """Return the best answers to each of many questions, which are scored together, in chunks."""
        return self.predict_ids([self._ids(question) for question in questions], k, known, types)

    def predict_ids(
        self,
        questions: Sequence[QuestionIds],
        k: int | None = None,
        known: Known = "mark",
        types: Types = "any",
    ) -> list[Answers]:
        """Return the best answers to each of many questions by ids."""
        if known not in get_args(Known):
            raise QuestionError(f"known = {known!r}: expected {' or '.join(get_args(Known))}")
        check_types(types, any(question.for_relations for question in questions))
        constraints = self._constraints(types)
        found: dict[int, Answers] = {}
        for for_relations in (False, True):
            places = [i for i, question in enumerate(questions) if question.for_relations is for_relations]
            if places:
                kind = self._relations if for_relations else self.entities
                count = kind.count(k)
                pairs = [questions[i][:2] for i in places]
                asked = torch.tensor(pairs, device=self.run.scorer.device)
                order = self.run.scorer.order(asked[:, 1])
                parts = (
                    _best(kind, part, count, known, constraints) for part in asked[order].split(kind.at_once)
                )
                found |= zip((places[i] for i in order.tolist()), chain.from_iterable(parts), strict=True)
        return [found[i] for i in range(len(questions))]

    def _constraints(self, types: Types) -> TypeConstraints | None:
        check_types(types)
        return self.type_constraints if types == "constrained" else None

    def candidates(self, question: Question) -> int:
        """Return how many entities are of a type that may answer a question."""
        return int(self.type_constraints.allowed(self._ids(question).other).sum())

    def doubts(self, question: Question) -> list[str]:
        """Return why a question may have no answer: nothing like it has one, or its only one is known."""
        dataset, ids = self.run.dataset, self._ids(question)
        if ids.for_relations or dataset.untrained(ids.head):
            return []
        name, relation = dataset.entities.label(ids.head), str(question.relation)
        back = (ids.other + len(dataset.relations)) % dataset.n_relations_with_inverses
        heads, relations = torch.tensor([ids.head]), torch.tensor([ids.other])
        found = []
        if not self.type_constraints.allowed(back)[ids.head]:
            found.append(
                f"nothing like {name!r} stands on this side of {relation!r}: perhaps no answer makes sense"
            )
        if dataset.functional[ids.other] and int(dataset.known.counts(heads, relations)):
            told = f"{relation!r} has one answer at most in this graph, and {name!r} has it"
            found.append(f"{told}: another holds only if that is wrong")
        return found

    def _ids(self, question: Question) -> QuestionIds:
        entities, relations = self.run.dataset.entities, self.run.dataset.relations
        names = ((entities, question.head), (entities, question.tail), (relations, question.relation))
        head, tail, relation = (None if name is None else known.find(name) for known, name in names)
        return QuestionIds.of(head, relation, tail, len(relations))

    def prediction_set(
        self, *, head: str | None = None, relation: str, tail: str | None = None, coverage: float = 0.9
    ) -> PredictionSet:
        """Return a prediction set: a share ``coverage`` of missing facts lies in such sets (split conformal).

        It holds the new answers whose log-odds are no less than what a share ``coverage`` of the valid facts
        reach, of the same relation and direction where they are enough, else of all; always the best one.
        """
        return self.prediction_set_of_ids(self._ids(Question(head, relation, tail)), coverage)

    def prediction_set_of_ids(self, question: QuestionIds, coverage: float) -> PredictionSet:
        """Return the prediction set of a question by ids, for entities."""
        calibration, kind = self.calibrated(), self.entities
        heads, relations = torch.tensor([question[:2]], device=self.run.scorer.device).unbind(1)
        least, line = calibration.least(int(relations), coverage)
        scored = kind.rate(heads, relations)
        closed = scored.known | scored.loops
        new = scored.odds.masked_fill(closed, -torch.inf)[0]
        candidates = int((~closed).sum())
        reached = candidates if least is None else max(1, int((new >= least).sum()))
        best = new.topk(min(reached, candidates)).indices[None]
        (answers,) = kind.answers(scored, heads, relations, best)
        own, measured = line is not calibration.together, calibration.measured
        share = measured.sets.share if measured and measured.sets.asked == coverage else None
        return PredictionSet(answers, coverage, candidates, len(line.margins), own, share)

    def calibrated(self) -> Calibration:
        """Return what makes probabilities of scores; say what to do where there is none."""
        if self.calibration is None:
            self.run.dataset.check_split("valid", "to fit probabilities to; train with some held out")
            path = self.run.folder.path
            raise RunError(f"{path}: has no calibration yet; 'modulekge calibrate {path}' makes it")
        return self.calibration

    def links(
        self,
        relations: str | Iterable[str] | None = None,
        k: int = 100,
        watch: Watch = iter,
        types: Types = "constrained",
        min_probability: float = 0.0,
        per_relation: int | None = None,
        heads: str | Iterable[str] | None = None,
        share: float = 1.0,
    ) -> Links:
        """Return the ``k`` most probable new triples of some relations, or of all, over the whole graph.

        They are ranked by the probability that they are missing facts
        (:mod:`modulekge.evaluation.link_calibration`).
        What no fact of a relation shows is left out: a second answer where each question has one, loops, and,
        unless ``types="any"``, heads and tails of a type that the relation does not hold there.
        ``min_probability`` leaves out what is less probable, ``per_relation`` all but so many of each, so
        that no relation fills the list, ``heads`` those of other entities. A ``share`` of the heads, evenly
        spaced, may be asked where each takes long. ``watch`` may show the chunks of heads as they pass.
        """
        asked, find = self._relation_ids(relations), self.run.dataset.entities.find
        named = [heads] if isinstance(heads, str) else heads
        only = None if named is None else list(dict.fromkeys(map(find, named)))
        return self.links_of_ids(asked, k, watch, types, min_probability, per_relation, only, share)

    def links_of_ids(
        self,
        relations: Sequence[int],
        k: int,
        watch: Watch,
        types: Types,
        min_probability: float,
        per_relation: int | None = None,
        heads: Sequence[int] | None = None,
        share: float = 1.0,
    ) -> Links:
        """Return the most probable new triples of relations, and of heads where some are named, by ids."""
        for name, count in (("k", k), ("per_relation", per_relation)):
            if count is not None and count < 1:
                raise QuestionError(f"{name} = {count}: ask for at least one link")
        for name, found in (("min_probability", min_probability), ("share", share)):
            if not 0 <= found <= 1:
                raise QuestionError(f"{name} = {found:g}: expected a number between 0 and 1")
        check_types(types)
        chunks = links_in_chunks(
            self.run.scorer,
            self.run.dataset,
            self.calibrated(),
            relations,
            k,
            self.type_constraints,
            constrained=types == "constrained",
            least=min_probability,
            only=None if heads is None else torch.tensor(heads),
            share=share,
        )
        return self.score_ids(best_links(watch(chunks), k, self.run.dataset.symmetric, per_relation))

    def link_candidates(
        self, relations: str | Iterable[str] | None = None, types: Types = "constrained"
    ) -> list[tuple[int, int]]:
        """Return of how many heads and how many tails the links of each relation are chosen."""
        return self.sides_of_ids(self._relation_ids(relations), types)

    def sides_of_ids(self, relations: Iterable[int], types: Types) -> list[tuple[int, int]]:
        """Return how many heads and how many tails relations by ids are asked with."""
        constraints, every = self._constraints(types), len(self.run.dataset.entities)
        return [constraints.sides(r) if constraints else (every, every) for r in relations]

    def _relation_ids(self, relations: str | Iterable[str] | None) -> list[int]:
        names = self.run.dataset.relations
        relations = [relations] if isinstance(relations, str) else relations
        return list(dict.fromkeys(range(len(names)) if relations is None else map(names.find, relations)))

    def score(
        self, triples: "NamedTriples | ArrowStream | Iterable[Named]", unknown: Unknown = "refuse"
    ) -> Links:
        """Return score, probability and ranks of triples by name, in their order: of rows, or of a table.

        A triple with a name that the graph does not have is refused, or with ``unknown="skip"`` left out.
        """
        return self.score_ids(NamedTriples.of(triples).ids(self.run.dataset, unknown))

    def score_ids(self, triples: Triples) -> Links:
        """Return score, probability and ranks of triples by ids, in their order."""
        order = self.run.scorer.order(triples[:, 1])
        parts = triples[order].to(self.run.scorer.device).split(self.entities.at_once)
        links = [link for part in parts for link in self._links(part)]
        return Links(links[i] for i in order.argsort().tolist())

    def _links(self, triples: Triples) -> Links:
        dataset, kind = self.run.dataset, self.entities
        heads, relations, tails = triples.unbind(1)
        scored = kind.rate(heads, relations)
        splits = kind.splits(heads, relations, tails[:, None])
        chances = self._as_links(triples, splits).chances(
            scored.odds.gather(1, tails[:, None]), relations, splits
        )
        scores = scored.scores.gather(1, tails[:, None])[:, 0].tolist()
        tail_ranks = _ranks(scored.scores, tails, scored.known)
        back = kind.rate(tails, relations + len(dataset.relations))
        head_ranks = _ranks(back.scores, heads, back.known)
        entities, relation_names = dataset.entities.names, dataset.relations.names
        return Links(
            Link(entities[h], relation_names[r], entities[t], score, chance[0], tail, head, split[0])
            for (h, r, t), score, chance, tail, head, split in zip(
                triples.tolist(), scores, chances, tail_ranks, head_ranks, splits, strict=True
            )
        )

    def _as_links(self, triples: Triples, splits: list[list[Split | None]]) -> QueryType:
        """Return what asks for the tails of triples, whose questions may miss no answer."""
        calibration, dataset = self.calibration, self.run.dataset
        if calibration is None or calibration.links is None:
            return self.entities
        heads, relations, _ = triples.cpu().unbind(1)
        itself = torch.tensor([split is not None for (split,) in splits], dtype=torch.long)
        fitting = self.type_constraints.fit(heads, relations + len(dataset.relations))
        classes = degree_classes(dataset.known.counts(heads, relations) - itself, fitting)
        return replace(self.entities, chance=partial(calibration.link_probability, classes=classes))


def _best(
    kind: QueryType,
    questions: Int[Tensor, "b 2"],
    k: int,
    known: Known,
    constraints: TypeConstraints | None,
) -> list[Answers]:
    heads, others = questions.unbind(1)
    scored = kind.rate(heads, others)
    closed = scored.loops | scored.known if known == "exclude" else scored.loops
    if constraints:
        closed = closed | ~(constraints.mask(others) | scored.known)
    return kind.best(scored, heads, others, closed, k)


def _ranks(scores: Tensor, answers: Ids, known: Tensor) -> list[int]:
    """The filtered ranks, behind all candidates of equal score."""
    rows, places = known.nonzero(as_tuple=True)
    return (1 + Ranks.of(scores, answers, (rows, places)).not_below).tolist()


def predict(
    run: Run | str | Path,
    *,
    head: str | None = None,
    relation: str | None = None,
    tail: str | None = None,
    k: int | None = None,
    known: Known = "mark",
    types: Types = "any",
) -> Answers:
    """Return the best answers to one question; for many questions keep a :class:`Predictor`."""
    return Predictor(run).predict(head=head, relation=relation, tail=tail, k=k, known=known, types=types)
