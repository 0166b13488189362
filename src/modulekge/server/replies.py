"""What a tool answers to an agent: values for a program, and the same in a few lines of text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modulekge.answers.compound.asker import CompoundAnswer, Probabilities
from modulekge.answers.questions import Answer
from modulekge.data.benchmarks import Split
from modulekge.explanations.values import Explanation, PathExplanation, Support, walk_text
from modulekge.server.views import Addition, DrawnLink, EntityItem, LinkView, RelationItem
from modulekge.wording import counted

_REASONS = 3  # facts, and paths, that are told of an explanation


@dataclass(frozen=True)
class Matches:
    """Entities and relations whose names match, best first, and how many there are."""

    entities: list[EntityItem]
    relations: list[RelationItem]
    total_entities: int
    total_relations: int
    notes: list[str]


@dataclass(frozen=True)
class Predictions:
    """The best answers to a question with one part left out."""

    question: str
    answers: list[Answer]
    notes: list[str]


@dataclass(frozen=True)
class Reasoned:
    """The best answers to a compound question, each with the links that speak for it."""

    answers: list[CompoundAnswer]
    possible: int | None  # answers of at least the threshold; None where the best were found before all
    probabilities: Probabilities
    t_norm: str
    threshold: float
    notes: list[str]


@dataclass(frozen=True)
class Reasons:
    """How a triple stands, and what speaks for it."""

    link: LinkView
    explanation: Explanation | PathExplanation
    notes: list[str]


@dataclass(frozen=True)
class NewLinks:
    """The most probable links that the graph does not hold."""

    links: list[LinkView]
    notes: list[str]


@dataclass(frozen=True)
class Surroundings:
    """An entity, first of the nodes, with facts around it and its most probable new links."""

    nodes: list[EntityItem]
    links: list[DrawnLink]
    notes: list[str]


def matches_text(found: Matches) -> str:
    """Say what was found."""
    entities = [f"{_called(x.label, x.name)} ({counted(x.degree, 'fact')})" for x in found.entities]
    relations = [f"{_called(x.label, x.name)} ({counted(x.triples, 'fact')})" for x in found.relations]
    return _lines(
        f"entities ({found.total_entities:,}): {', '.join(entities) or 'none'}",
        f"relations ({found.total_relations:,}): {', '.join(relations) or 'none'}",
        *found.notes,
    )


def predictions_text(found: Predictions) -> str:
    """Say a line for each answer."""
    answers = [
        f"{a.rank}. {_called(a.label, a.name)}: {_standing(a.split, a.probability, a.score)}"
        for a in found.answers
    ]
    return _lines(found.question, *answers, *found.notes)


def reasoned_text(found: Reasoned) -> str:
    """Say a line for each answer, with its reason."""
    answers = [
        f"{a.rank}. {_called(a.label, a.name)}: {'known' if a.known else f'{a.probability:.1%}'}, because "
        + "; ".join(map(str, a.links))
        for a in found.answers
    ]
    return _lines(*answers, *found.notes)


def reasons_text(found: Reasons) -> str:
    """Say how a triple stands, then the facts and the paths that speak for it most."""
    link, why = found.link, found.explanation
    head, relation, tail = why.triple.labels
    standing = _standing(link.split, link.probability, link.score)
    ranks = f"rank {link.tail_rank:,} among tails, {link.head_rank:,} among heads"
    told = _carried(why) if isinstance(why, PathExplanation) else _influences(why)
    return _lines(f"{head} {relation} {tail}: {standing}; {ranks}", *told, *found.notes)


def links_text(found: NewLinks) -> str:
    """Say a line for each link."""
    links = [f"{x.head} {x.relation} {x.tail}: {_percent(x.probability)}" for x in found.links]
    return _lines(*(f"{i}. {link}" for i, link in enumerate(links, start=1)), *found.notes)


def surroundings_text(found: Surroundings) -> str:
    """Say the facts around an entity, then what is predicted."""
    labels = {node.name: node.label for node in found.nodes}
    facts, new = [], []
    for link in found.links:
        words = f"{labels[link.head]} {link.label} {labels[link.tail]}"
        if link.known:
            facts.append(words)
        else:
            new.append(f"{words}: {_percent(link.probability)}")
    first = found.nodes[0]
    return _lines(
        f"{_called(first.label, first.name)} is in {counted(first.degree, 'fact')}, such as:"
        if facts
        else "",
        *facts,
        "predicted:" if new else "",
        *new,
        *found.notes,
    )


def addition_text(found: Addition) -> str:
    """Say what was added, and who answers now."""
    new = [counted(found.entities, "new entity", "new entities")] * bool(found.entities)
    new += [counted(found.relations, "new relation")] * bool(found.relations)
    added = f"added with {' and '.join(new)}" if new else "added"
    unlearnt = "it is known now, but the model has not learnt from it; 'modulekge add --refresh' trains on it"
    return _lines(
        f"{added}; answers come from the run {found.run} from now on",
        "" if found.moved else unlearnt,
        *found.notes,
    )


def _influences(why: Explanation) -> Iterator[str]:
    yield from _supports(why.supports, "of what raises the score")
    for route in why.routes[:_REASONS]:
        e = route.evidence
        holds = f"its pattern holds for {e.share:.0%} of {e.pairs:,} other pairs, {e.chance:.0%} by chance"
        yield f"path: {walk_text(route)} ({holds})"
    if not why.supports and not why.routes:
        yield "no fact or path speaks for it"


def _carried(why: PathExplanation) -> Iterator[str]:
    if not why.reached:
        yield f"no path of up to {why.layers} facts leads from head to tail: no fact speaks for it"
    yield from (f"path: {walk_text(route)}" for route in why.routes[:_REASONS])
    yield from _supports(why.supports, "of what its paths are worth")


def _supports(supports: Iterable[Support], of: str) -> Iterator[str]:
    for support in list(supports)[:_REASONS]:
        yield f"fact: {' '.join(support.fact.labels)} ({support.share:.0%} {of})"


def _standing(split: Split | None, probability: float | None, score: float) -> str:
    chance = f"score {score:.3f}" if probability is None else _percent(probability)
    if split is None:
        return f"new, {chance}"
    return "known" if split == "train" else f"known, held out in {split}"


def _percent(chance: float | None) -> str:
    return "no probability" if chance is None else f"{chance:.1%}"


def _called(label: str, name: str) -> str:
    return label if label == name else f"{label} [{name}]"


def _lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part)
