r"""Probabilities of answers, and answer sets that hold the true one as often as they say.

For a question (head, relation, ?) the candidates are the entities that are not known to answer it. Let $x$ be
the log-odds of a softmax over their scores (:mod:`modulekge.evaluation.odds`). Then

$$P(\text{this candidate is a missing fact}) = \sigma(a x + b), \quad a \ge 0,$$

**given that the question is one like those of the valid split, which have at least one missing answer**:
$(a, b)$ is fitted to all candidates of all valid questions by maximum likelihood. Facts of test are left out
of those candidates, as in a filtered ranking, and facts of valid when test is measured. What is true but
stands in no split counts as false, so in an incomplete graph the probability is rather too small. The last
candidate of a question, which has no rivals, is left out and has no probability.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from modulekge.data.dataset import Dataset
from modulekge.errors import QuestionError, TrainingError
from modulekge.evaluation.lines import CENTRES, cells_of, fit_line
from modulekge.evaluation.link_calibration import Best, LinkCalibration, fit_links
from modulekge.evaluation.odds import FARTHEST, ScoredBatch, scored_batches, scored_pair_batches
from modulekge.evaluation.reliability import Coverage, Meter, Reliability
from modulekge.frames import Shown
from modulekge.json_io import typed
from modulekge.machine import repeatable
from modulekge.models.scorer import Scorer
from modulekge.shapes import Ids, Scores

Kept = TypeVar("Kept")
ENOUGH = 20  # valid triples from which a relation and direction has a line of its own
ENOUGH_FOR_SETS = 50  # from which its answer sets are its own too
_BORROWED = 10  # triples' worth of all relations' data that each line is fitted to besides its own
_KEPT_MARGINS = 1000  # of a line; more would only make the file larger
_COVERAGE = 0.9  # of the answer sets that are measured


@dataclass(frozen=True)
class Line:
    r"""$P = \sigma(slope \cdot x + offset)$, and the log-odds of the valid facts it was fitted to."""

    triples: int  # valid ones
    slope: float
    offset: float
    margins: tuple[float, ...] = field(default=(), repr=False)  # ascending; a thousand at most, evenly taken

    def least(self, coverage: float) -> float | None:
        r"""Return the log-odds that the answers of a set of this coverage have at least; None: any.

        The $\lceil (n + 1)\, coverage \rceil$-th greatest of $n$ margins: a further fact that is exchangeable
        with those reaches it with at least this probability.
        """
        place = math.ceil((len(self.margins) + 1) * coverage)
        return self.margins[len(self.margins) - place] if place <= len(self.margins) else None


@dataclass(frozen=True)
class Measured:
    """What calibration is worth on a split that it was not fitted to."""

    split: str
    together: Reliability
    own: dict[int, Reliability]
    sets: Coverage


@dataclass(frozen=True, repr=False)
class Calibration(Shown):
    """Lines of all questions together, of those relations and directions with enough triples, and of pairs.

    ``links`` makes probabilities of links; calibrations made before there were any have none. ``own`` goes by
    the relation of the question: heads are asked for through r + |R|. ``pairs`` is of the questions
    (head, ?, tail). ``fitted_to`` marks what made the scores; where it is empty, nobody knows.
    """

    together: Line
    own: dict[int, Line]
    pairs: Line
    measured: Measured | None = None
    links: LinkCalibration | None = None
    fitted_to: str = ""

    def _about(self) -> Mapping[str, object]:
        facts: dict[str, object] = {
            "valid triples": self.together.triples,
            "lines of their own": len(self.own),
        }
        if self.measured:
            reliability = self.measured.together
            error = f"{reliability.before.error:.3f} before, {reliability.after.error:.3f} after"
            facts |= {f"error on {self.measured.split}": error}
        return facts

    def line(self, relation: int) -> Line:
        """Return the line of a question's relation."""
        return self.own.get(relation, self.together)

    def probability(self, odds: Scores, relations: Ids) -> Scores:
        """Return the probabilities of candidates with these log-odds, a question in each row."""
        lines = [self.line(relation) for relation in relations.tolist()]
        slopes, offsets = (
            odds.new_tensor([getattr(line, name) for line in lines])[:, None] for name in ("slope", "offset")
        )
        return _chances(odds, slopes, offsets)

    def link_probability(self, odds: Scores, relations: Ids, classes: Ids) -> Scores:
        """Return the probabilities of links from heads of these classes to candidates with these log-odds."""
        chances = self.probability(odds, relations)
        return self.links.probability(chances, relations, classes) if self.links else chances

    def pair_probability(self, odds: Scores, tails: Ids) -> Scores:
        """Return the probabilities of relations between pairs, by their log-odds among all relations."""
        return _chances(odds, self.pairs.slope, self.pairs.offset)

    def least(self, relation: int, coverage: float) -> tuple[float | None, Line]:
        """Return the least log-odds in an answer set, and the line whose margins say so."""
        if not 0 < coverage < 1:
            raise QuestionError(f"coverage = {coverage:g}: expected a share between 0 and 1, such as 0.9")
        own = self.line(relation)
        few = own.triples < ENOUGH_FOR_SETS or own.least(coverage) is None
        line = self.together if few else own
        return line.least(coverage), line

    def enlarged(self, before: int, after: int) -> "Calibration":
        """Return the same for a graph with more relations, whose reciprocals have later ids."""

        def moved(lines: dict[int, Kept]) -> dict[int, Kept]:
            return {r if r < before else r - before + after: line for r, line in lines.items()}

        measured = self.measured and replace(self.measured, own=moved(self.measured.own))
        return replace(self, own=moved(self.own), measured=measured)  # links are of tails, whose ids stay

    def to_json(self) -> str:
        """Return the calibration as JSON."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> "Calibration":
        """Return the calibration that was written as these fields of a JSON object."""
        return typed(cls, {"links": None, **fields})


def _chances(odds: Scores, slope: Tensor | float, offset: Tensor | float) -> Scores:
    """Probabilities; none (NaN) without rivals, where the score says nothing."""
    return (slope * odds + offset).sigmoid().masked_fill(odds >= FARTHEST, torch.nan)


Watch = Callable[[Iterator[ScoredBatch]], Iterable[ScoredBatch]]


@repeatable()
def calibrate(scorer: Scorer, dataset: Dataset, watch: Watch = iter, measure: bool = True) -> Calibration:
    """Fit probabilities and answer sets to valid, and ``measure`` them on test.

    A relation and direction with at least 20 valid triples has a line of its own, fitted to its own data and
    to 10 triples' worth of everyone's; the others share one. Of a large split, some of the questions are
    asked, evenly spaced (:func:`modulekge.evaluation.odds.most_questions`).
    """
    dataset.check_split("valid", "to calibrate on; hold some out")
    counts = torch.bincount(dataset.questions("valid")[:, 1], minlength=dataset.n_relations_with_inverses)
    rich = (counts >= ENOUGH).nonzero()[:, 0].tolist()
    slots = torch.zeros(dataset.n_relations_with_inverses, dtype=torch.long)
    slots[rich] = 1 + torch.arange(len(rich))
    best = list[Best]()

    def noted() -> Iterator[ScoredBatch]:
        for asked in watch(scored_batches(scorer, dataset, "valid")):
            best.append(Best.of(asked, len(dataset.relations)))
            yield asked

    tally, margins = _tally(noted(), slots, 1 + len(rich))
    pairs, _ = _tally(scored_pair_batches(scorer, dataset, "valid"), torch.zeros(1, dtype=torch.long), 1)
    if torch.cat(margins).isnan().any():
        raise TrainingError(f"{dataset.name}: scores that are no numbers; train anew with a lower train.lr")
    everyone = tally.sum(0)
    together = _fitted(everyone, everyone, torch.cat(margins))
    own = {relation: _fitted(tally[i], everyone, margins[i]) for i, relation in enumerate(rich, start=1)}
    found = Calibration(together, own, _fitted(pairs[0], pairs[0], margins[0][:0]))
    links = fit_links(scorer, dataset, found.probability, Best.joined(best), watch)
    found = replace(found, links=links)
    if not measure or len(dataset.test) == 0:
        return found
    measured = _measured(
        found, watch(scored_batches(scorer, dataset, "test")), dataset.n_relations_with_inverses
    )
    return replace(found, measured=measured)


def _tally(batches: Iterable[ScoredBatch], slots: Tensor, count: int) -> tuple[Tensor, list[Tensor]]:
    """Return how many candidates, false and true, have log-odds in each cell; and the margins; by slot."""
    cells = torch.zeros(count * 2 * len(CENTRES) + 1, dtype=torch.float64)  # the last is of no candidates
    margins: list[list[Tensor]] = [[] for _ in range(count)]
    for asked in batches:
        slot = slots.to(asked.odds.device)[asked.relations]
        place = cells_of(asked.odds) + 2 * len(CENTRES) * slot[:, None]
        place[asked.true] += len(CENTRES)
        place.masked_fill_(~asked.candidate, len(cells) - 1)
        cells += torch.bincount(place.flatten(), minlength=len(cells)).cpu()
        of_answers = slot[asked.rows]
        for i in of_answers.unique().tolist():
            margins[i].append(asked.margins[of_answers == i].cpu())
    return cells[:-1].view(count, 2, -1), [torch.cat([torch.zeros(0), *parts]) for parts in margins]


def _fitted(cells: Float[Tensor, "2 c"], everyone: Float[Tensor, "2 c"], margins: Tensor) -> Line:
    """The line of own data and some borrowed, with the margins, of which a thousand at most are kept."""
    borrowed = everyone * (_BORROWED / max(1.0, float(everyone[1].sum())))
    slope, offset = fit_line(cells if cells is everyone else cells + borrowed, CENTRES)
    count = min(len(margins), _KEPT_MARGINS)
    kept = margins[torch.arange(count) * len(margins) // max(1, count)]
    return Line(int(cells[1].sum()), slope, offset, tuple(kept.sort().values.tolist()))


def _measured(found: Calibration, batches: Iterable[ScoredBatch], n_relations_with_inverses: int) -> Measured:
    """Ask another split: how true the probabilities are, and how often a set holds the missing fact."""
    lines = [found.line(relation) for relation in range(n_relations_with_inverses)]
    slopes, offsets = (torch.tensor([getattr(line, name) for line in lines]) for name in ("slope", "offset"))
    bars = (found.least(relation, _COVERAGE)[0] for relation in range(n_relations_with_inverses))
    least = torch.tensor([-FARTHEST if bar is None else bar for bar in bars])
    meter = Meter(slopes, offsets)
    triples = covered = sizes = 0
    for asked in batches:
        meter.add(asked)
        held, size = asked.sets(least.to(asked.odds)[asked.relations[asked.rows]])
        triples += len(asked.rows)
        covered += int(held.sum())
        sizes += int(size.sum())
    own = {relation: meter.reliability([relation]) for relation in found.own}
    sets = Coverage(_COVERAGE, triples, covered / triples, sizes / triples)
    return Measured("test", meter.reliability(), own, sets)
