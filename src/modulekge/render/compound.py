"""Answers to compound questions, each with the links that speak for it."""

from rich.console import Group, RenderableType
from rich.text import Text

from modulekge.answers.compound.asker import CompoundAnswers, WitnessLink
from modulekge.render.answers import called
from modulekge.render.terminal import new_table
from modulekge.wording import counted


def compound_view(question: str, found: CompoundAnswers) -> RenderableType:
    """Ranked answers with their probability; below each other, the links of the best reason."""
    best = f"the {counted(len(found.answers), 'best answer')}"
    count = best if found.possible is None else counted(found.possible, "possible answer")
    notes = (
        f"{count}; {found.probabilities} probabilities, {found.t_norm}; "
        f"what is below {found.threshold:.2g} counts as impossible"
    )
    table = new_table(" ", "answer", " probability", "", "because", "")
    for answer in found.answers:
        head = [str(answer.rank), called(answer.label, answer.name), f"{answer.probability:.1%}"]
        standing = Text("known", "green") if answer.known else Text("new", "yellow")
        first, *others = map(_because, answer.links)
        table.add_row(*head, standing, *first)
        for link in others:
            table.add_row("", "", "", "", *link)
    shown = [table] if found.answers else [Text("no entity is a possible answer")]
    return Group(Text(" ".join(question.split()), "bold"), *shown, Text(notes, "dim"))


def _because(link: WitnessLink) -> tuple[str, Text]:
    """A link, and how sure it is; one that must not hold speaks against the answer."""
    triple = "  ".join((link.head, link.relation, link.tail))
    sure = Text("known", "green") if link.known else Text(f"{link.probability:.1%}", "yellow")
    return f"against: {triple}" if link.negated else triple, sure
