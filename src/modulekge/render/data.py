"""Tables of data sets."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from modulekge.data.doctor import Finding, Level
from modulekge.data.statistics import Statistics
from modulekge.data.synthetic.generate import SyntheticGraph
from modulekge.render.terminal import FEW, more, new_table
from modulekge.run.estimate import Estimate
from modulekge.wording import counted, duration


def statistics_view(statistics: Statistics, all_relations: bool) -> RenderableType:
    """Sizes, what valid and test hold that train does not, leaks, relations."""
    facts = new_table(statistics.name, " train", " valid", " test")
    for name, counts in (
        ("triples", statistics.triples),
        ("self-loops", statistics.self_loops),
        ("repeated triples", statistics.duplicates),
        ("triples train holds too", statistics.shared_with_train),
        ("entities unseen in train", statistics.unseen_entities),
        ("triples with such entities", statistics.unseen_triples),
    ):
        facts.add_row(name, *(f"{counts[s]:,}" if s in counts else "" for s in statistics.triples))
    leaks = new_table("test pairs that train joins too", " triples", " of test")
    for name, count in statistics.leaks.items():
        leaks.add_row(name, f"{count:,}", f"{count / max(1, statistics.triples['test']):.1%}")
    rows = sorted(statistics.per_relation, key=lambda r: -r.triples["train"])
    shown = rows if all_relations else rows[:FEW]
    relations = new_table("relation", " train", " valid", " test", " tails/head", " heads/tail", "category")
    for r in shown:
        sizes = [f"{n:,}" for n in r.triples.values()]
        relations.add_row(
            r.relation, *sizes, f"{r.tails_per_head:.2f}", f"{r.heads_per_tail:.2f}", r.category
        )
    head = f"{statistics.name}: {_sizes(statistics.entities, statistics.relations)}"
    return Group(
        Text(head, "bold"),
        *statistics.notes,
        "",
        facts,
        "",
        leaks,
        "",
        relations,
        *more(len(rows) - len(shown)),
    )


def synthetic_view(graph: SyntheticGraph, totals: dict[str, dict[str, int]]) -> RenderableType:
    """What was planted, by pattern."""
    table = new_table("pattern", " relations", " triples", " implied by others", " held out")
    for name, counts in totals.items():
        table.add_row(name, *(f"{count:,}" for count in counts.values()))
    sizes = ", ".join(f"{size:,} {split}" for split, size in graph.sizes.items())
    head = f"{_sizes(graph.entities, len(graph.relations))}, {sizes}"
    return Group(Text(head, "bold"), table)


def findings_view(name: str, findings: Sequence[Finding]) -> RenderableType:
    """Findings with their advice, the worst first."""
    styles: dict[Level, str] = {"problem": "bold red", "warning": "yellow", "note": "dim"}
    counts = [counted(sum(finding.level == level for finding in findings), level) for level in styles]
    lines = [
        Text.assemble(
            (f"{finding.level}: ", styles[finding.level]),
            finding.what,
            (f"; {finding.advice}" if finding.advice else "", "dim"),
        )
        for finding in findings
    ]
    return Group(Text(f"{name}: {', '.join(counts)}", "bold"), *lines)


def estimate_view(needs: Estimate) -> RenderableType:
    """Memory and time of training."""
    memory = f"{needs.memory / 2**30:.2f} GiB of {needs.free / 2**30:.1f} GiB free on {needs.device}"
    if needs.minutes and needs.fits:
        text = f"training a mixture takes {duration(60 * needs.minutes)}, or --minutes, and needs {memory}"
        return Text(f"{text}; 'modulekge train DATA --dry-run' says what is tried")
    if needs.epoch_seconds is None or needs.epochs is None:
        return Text(f"training needs {memory}: it does not fit; lower model.k or train.batch", "bold red")
    most = f"{duration(needs.epoch_seconds * needs.epochs)} for {counted(needs.epochs, 'epoch')} at most"
    return Text(f"training needs {memory}; about {duration(needs.epoch_seconds)} an epoch, {most}")


def _sizes(entities: int, relations: int) -> str:
    return f"{counted(entities, 'entity', 'entities')}, {counted(relations, 'relation')}"
