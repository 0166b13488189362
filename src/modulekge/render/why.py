"""Explanations of triples, and what relations are to each other."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from modulekge.explanations.relation_patterns import Finding, RelationPatterns
from modulekge.explanations.values import (
    Explanation,
    Fact,
    Neighbour,
    PathExplanation,
    Route,
    walk_text,
)
from modulekge.render.answers import called
from modulekge.render.terminal import new_table

_FEW_BELIEFS = 8


def explanation_view(why: Explanation | PathExplanation) -> RenderableType:
    """One short block for each part."""
    if isinstance(why, PathExplanation):
        return Group(*_standing(why), "", *_carried(why))
    h, _, t = why.triple.labels
    return Group(
        *_standing(why), "", *_supports(why), "", *_routes(why.routes), "",
        _neighbours(h, why.near_head), _neighbours(t, why.near_tail),
    )  # fmt: skip


def _standing(why: Explanation | PathExplanation) -> Iterable[RenderableType]:
    known = {
        None: Text("new: in no split", "yellow"),
        "train": Text("known: a training fact", "green"),
    }.get(why.split, Text(f"known, held out in {why.split}", "green"))
    standing = new_table("question", " rank", " score")
    h, r, t = why.triple.labels
    standing.add_row(f"{h}  {r}  ?", f"{why.as_tail.rank:,}", f"{why.as_tail.score:.3f}")
    standing.add_row(f"?  {r}  {t}", f"{why.as_head.rank:,}", f"{why.as_head.score:.3f}")
    return [Text.assemble((_words(why.triple), "bold"), "  ", known), standing]


def _carried(why: PathExplanation) -> Iterable[RenderableType]:
    """What was left out meanwhile, the paths that carried the score, and what their facts are worth."""
    h, _, t = why.triple.labels
    if why.left_out:
        gone = "; ".join(map(_words, why.left_out))
        yield Text(f"left out of the graph meanwhile, as in training: {gone}", "dim")
    if not why.reached:
        far = f"no path of up to {why.layers} facts leads from {h} to {t}: no fact speaks for this score,"
        yield Text(f"{far} which is that of every entity out of reach", "yellow")
    elif not why.routes:
        yield Text(f"no path of up to {why.layers} facts raises this score", "dim")
    else:
        paths = new_table("paths that carried the score", " weight")
        for route in why.routes:
            paths.add_row(walk_text(route), f"{route.weight:.3f}")
        yield paths
        yield Text("weight: mean gradient of the score by the edges of the path", "dim")
        yield from _worth(why)


def _worth(why: PathExplanation) -> Iterable[RenderableType]:
    yield ""
    if not why.supports or why.without is None:
        yield Text(
            f"none of the {why.candidates:,} facts of these paths is missed when left out alone", "dim"
        )
        return
    facts = new_table("facts of these paths", " score lost without it", " share")
    for support in why.supports:
        facts.add_row(_words(support.fact), f"{support.influence:.3f}", f"{support.share:.0%}")
    yield facts
    yield Text(f"{why.candidates:,} left out, one at a time, of {why.facts_between:,} on any path", "dim")
    together, before = why.without, why.as_tail
    yield Text(
        f"without all {len(why.supports)}: rank {before.rank:,} -> {together.rank:,}, "
        f"score {before.score:.3f} -> {together.score:.3f}"
    )


def _words(fact: Fact) -> str:
    return "  ".join(fact.labels)


def _supports(why: Explanation) -> Iterable[RenderableType]:
    looked = f"{why.candidates:,} of {why.facts_around:,}" if why.candidates < why.facts_around else "all"
    if not why.supports:
        return [Text(f"no training fact around head or tail ({why.candidates:,}) raises this score", "dim")]
    table = new_table("training facts that raise this score most", " share of what raises it")
    for support in why.supports:
        table.add_row(_words(support.fact), f"{support.share:.0%}")
    return [table, Text(f"of {looked} facts that touch head or tail", "dim")]


def _routes(routes: tuple[Route, ...]) -> Iterable[RenderableType]:
    if not routes:
        return [Text("no path of up to three training facts whose pattern goes with this relation", "dim")]
    table = new_table("paths of training facts", " such paths", " pattern holds", " by chance", " of pairs")
    for route in routes:
        e = route.evidence
        cells = f"{route.paths:,}", f"{e.share:.0%}", f"{e.chance:.0%}", f"{e.pairs:,}"
        table.add_row(walk_text(route), *cells)
    return [table]


def _neighbours(label: str, near: tuple[Neighbour, ...]) -> Text:
    names = ", ".join(f"{called(n.label, n.name)} {n.likeness:.2f}" for n in near)
    return Text.assemble((f"nearest to {label}: ", "bold"), names)


def relation_patterns_view(algebra: RelationPatterns, every: bool) -> RenderableType:
    """What model and facts agree on, then what the model alone believes."""
    head = (
        f"{algebra.model} on {algebra.dataset}: {algebra.compared} of {algebra.relations} relations compared"
    )
    beliefs = sorted(algebra.beliefs, key=lambda finding: -finding.similarity)
    shown = beliefs if every else beliefs[:_FEW_BELIEFS]
    hidden = len(beliefs) - len(shown)
    parts: list[RenderableType] = [Text(head, "bold"), ""]
    if algebra.claims:
        parts += [Text("seen in the model and in the facts", "bold"), _findings(algebra.claims)]
    else:
        parts += [Text("no pattern seen both in the model and in the facts", "dim")]
    if shown:
        parts += ["", Text("the model believes; the facts do not bear it out", "bold"), _findings(shown)]
    if hidden:
        parts += [Text(f"... and {hidden} beliefs more; --all shows them", "dim")]
    parts += ["", *(Text(line, "dim") for line in _rules(algebra))]
    return Group(*parts)


def _findings(findings: Iterable[Finding]) -> Table:
    table = new_table("pattern", "relations", " model", " facts", " by chance", " of pairs")
    for finding in findings:
        e = finding.evidence
        cells = f"{e.share:.0%}", f"{e.chance:.0%}" if finding.kind in _WITH_CHANCE else "", f"{e.pairs:,}"
        table.add_row(finding.kind, _law(finding), f"{finding.similarity:.2f}", *cells)
    return table


_WITH_CHANCE = ("symmetric", "inverse", "equal", "composition")


def _law(finding: Finding) -> str:
    if finding.kind == "composition":
        return "{} then {} = {}".format(*finding.labels)
    return ", ".join(finding.labels)


def _rules(algebra: RelationPatterns) -> Iterable[str]:
    least = f"{algebra.threshold:.2f}, of compositions {algebra.composition_threshold:.2f}"
    yield f"model: how alike the two sides are on entities; from {least}, 3 spreads above the median here"
    yield "facts: share of training pairs that agree"
    yield "antisymmetric: model tells there from back, facts stand both ways; by chance 0.5"
    yield "commuting: the two orders are as alike in the model as compositions, and most facts lead alike"
    yield "not commuting: model tells one order from the other, facts lead alike; by chance 0.5"
    if algebra.commutative:
        yield f"in {algebra.model} every two relations commute, whatever they learn"
