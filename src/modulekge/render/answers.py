"""Tables of answers, links and calibrations."""

from collections.abc import Iterable, Sequence
from dataclasses import astuple
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from modulekge.answers.questions import Answer, Link, PredictionSet
from modulekge.config import RerankConfig
from modulekge.data.benchmarks import Split
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.evaluation.calibration import Calibration
from modulekge.evaluation.mixing import Fitted
from modulekge.evaluation.reliability import Reliability
from modulekge.evaluation.rerank import Weighed
from modulekge.render.terminal import format_number, new_table
from modulekge.run.judgements import Agreement, Judgement
from modulekge.wording import counted

_FEW_WEIGHTS = 5
_FEW_RELATIONS = 3  # for which a member of a mixture counts most
_MOST_SHOWN = 20  # answers of a set; it may hold half of a graph


def answers_view(question: str, answers: list[Answer]) -> RenderableType:
    """Ranked answers with their probability where they have one, the known ones marked."""
    sure = any(a.probability is not None for a in answers)
    table = new_table(" ", "answer", " score", *([" probability"] if sure else []), "")
    for a in answers:
        name = called(a.label, a.name)
        chance = [_percent(a.probability)] if sure else []
        table.add_row(str(a.rank), name, f"{a.score:.3f}", *chance, _standing(a.split))
    return Group(Text(question, "bold"), table)


def prediction_set_view(question: str, found: PredictionSet) -> RenderableType:
    """A prediction set, and what it promises."""
    source = "of this relation and direction" if found.own else "of all relations"
    measured = "" if found.measured is None else f"; measured on test: {found.measured:.1%}"
    basis = f"by {counted(found.triples, 'valid fact')} {source}{measured}"
    these = f"among these {len(found.answers):,}" if len(found.answers) > 1 else "this one"
    note = (
        f"too uncertain to narrow down: all {found.candidates:,} candidates ({basis})"
        if found.everything
        else f"if a fact is missing, it is {these} of {found.candidates:,} candidates in about "
        f"{100 * found.coverage:.6g} of 100 cases ({basis})"
    )
    shown, more = found.answers[:_MOST_SHOWN], len(found.answers) - _MOST_SHOWN
    rest = [Text(f"and {more:,} more; --out or --json gives them all")] if more > 0 else []
    return Group(answers_view(question, shown), *rest, Text(note, "dim"))


def judgements_view(judgements: list[Judgement], found: Agreement) -> RenderableType:
    """What people said of links, and how probable those were that they accepted."""
    table = new_table("head", "relation", "tail", "verdict", " probability", "by", "reason")
    for each in judgements:
        names = map(Text, (each.head, each.relation, each.tail))
        said = Text(each.by), Text(each.reason)
        table.add_row(*names, each.verdict, _percent(each.probability), *said)
    curve = new_table(" judged", " probability", " accepted")
    for part in found.bins:
        curve.add_row(f"{part.answers:,}", _percent(part.probability), _percent(part.true))
    off = "" if found.error is None else f"; probabilities are {found.error:.3f} off what was accepted"
    return Group(table, f"{found.accepted:,} accepted, {found.rejected:,} rejected{off}", curve)


def links_table(links: Iterable[Link], dataset: Dataset) -> Table:
    """Triples by label, with their figures."""
    table = new_table(
        " ", "head", "relation", "tail", " score", " probability", " tail rank", " head rank", ""
    )
    for place, link in enumerate(links, start=1):
        table.add_row(
            str(place), _shown(dataset.entities, link.head), _shown(dataset.relations, link.relation),
            _shown(dataset.entities, link.tail), f"{link.score:.3f}", _percent(link.probability),
            f"{link.tail_rank:,}", f"{link.head_rank:,}", _standing(link.split),
        )  # fmt: skip
    return table


def _shown(vocabulary: Vocabulary, name: str) -> str:
    return called(vocabulary.labels.get(name, name), name)


def called(label: str, name: str) -> str:
    """Say a name after its label, where the two differ."""
    return label if label == name else f"{label} ({name})"


def _percent(chance: float | None) -> str:
    return "" if chance is None else f"{chance:.1%}"


def _standing(split: Split | None) -> Text:
    held = "" if split == "train" else f", held out in {split}"
    return Text("new", "yellow") if split is None else Text(f"known{held}", "green")


def calibration_view(calibration: Calibration, relations: Vocabulary) -> RenderableType:
    """How true probabilities are on test, and how often answer sets hold what is missing."""
    line, measured = calibration.together, calibration.measured
    fitted = (
        f"fitted to {counted(line.triples, 'answer')} of valid: "
        f"P = sigmoid({line.slope:.3f} x + {line.offset:.3f})"
    )
    if measured is None:
        return Group(fitted, "not measured: there is no test split")
    table = new_table(
        "", " valid", " test", " error", " -> ", " log loss", " -> ", " Brier", " -> "
    )  # fmt: skip
    rows = [("all questions", line.triples, measured.together)]
    for relation, part in measured.own.items():
        name = relations.label(relation % len(relations))
        side = "heads" if relation >= len(relations) else "tails"
        rows.append((f"  {name}, {side}", calibration.own[relation].triples, part))
    for name, triples, part in rows:
        table.add_row(name, f"{triples:,}", f"{part.questions:,}", *_before_and_after(part))
    sets = measured.sets
    covered = (
        f"answer sets of {sets.asked:.0%} hold {sets.share:.1%} of {sets.triples:,} {measured.split} answers "
        f"and have {sets.size:,.1f} candidates on average"
    )
    notes = (
        f"valid: answers fitted to; {measured.split}: questions measured on; left of ->: the plain softmax",
        "error: of the ten best candidates, |probability - share true|; log loss, Brier: per question",
    )
    return Group(fitted, "", table, "", covered, *(Text(note, "dim") for note in notes))


def weighed_view(found: Weighed, kept: RerankConfig, changed: bool, advice: str) -> RenderableType:
    """The best weights of reranking, those that are kept, and none; then what can be done with them."""
    if not found.tried:
        return f"kept; there is no valid split to compare on{advice}"
    table = new_table(" inverse", " hubness", " prior", " valid MRR", "")
    plain = found.tried[0][0]
    best = sorted(found.tried, key=lambda one: -one[1])
    shown = [one for place, one in enumerate(best) if place < _FEW_WEIGHTS or one[0] in (kept, plain)]
    for weights, mrr in shown:
        marks = ["kept"] * (weights == kept) + ["not reranked"] * (weights == plain)
        table.add_row(*(f"{w:g}" for w in astuple(weights)), format_number(mrr), ", ".join(marks))
    tried, asked = counted(len(found.tried), "choice"), counted(found.questions, "question")
    compared = f"{tried} of weights, {asked} of valid"
    done = f"probabilities are made anew{advice}" if changed else "the settings of the run stay as they are"
    return Group(table, "", Text(compared, "dim"), done)


def _before_and_after(part: Reliability) -> list[str]:
    pairs = (
        (getattr(side, name) for side in (part.before, part.after)) for name in ("error", "log_loss", "brier")
    )
    return [format_number(value) if part.questions else "-" for pair in pairs for value in pair]


def mixture_view(
    found: Fitted, members: Sequence[str], relations: Sequence[str], out: Path
) -> RenderableType:
    """What each member is worth alone and how much it counts, and what all are worth together."""
    table = new_table("member", " valid MRR alone", " mean share", "most for")
    shares = found.mix.shares
    for place, (name, alone) in enumerate(zip(members, found.alone, strict=True)):
        strongest = shares[:, place].argsort(descending=True, stable=True)[:_FEW_RELATIONS].tolist()
        named = [
            f"{relations[r % len(relations)]}{' (inverse)' if r >= len(relations) else ''}"
            for r in strongest
            if shares[r, place] > shares[r].mean()
        ]
        table.add_row(name, format_number(alone), f"{shares[:, place].mean():.0%}", ", ".join(named))
    table.add_row("all together", format_number(found.mixed), "", "")
    fitted, checked = counted(found.fitted_on, "question"), f"{found.checked_on:,}"
    how = f"shares fitted on {fitted} of valid; MRR is of the other {checked}"
    best = members[found.best]
    verdict = (
        f"the mixture is better than {best} alone"
        if found.helps
        else f"the mixture is no better than {best} alone, which therefore has all the weight"
    )
    return Group(table, "", Text(how, "dim"), f"{verdict}; 'modulekge evaluate {out}' reports on test")
