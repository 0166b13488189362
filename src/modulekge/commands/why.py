"""Commands that say why a run answers as it does (explain), and what its relations are to each other."""

from dataclasses import asdict
from pathlib import Path

import typer

from modulekge import render
from modulekge.answers.predictor import Predictor
from modulekge.commands.graph import print_found, print_notes, print_untrained
from modulekge.explanations.explanation import explain as explain_by_name
from modulekge.explanations.relation_patterns import relation_patterns
from modulekge.run.run import load


def explain(run: Path, head: str, relation: str, tail: str, k: int, as_json: bool) -> None:
    """Say why a triple scores as it does: training facts, paths and like entities that speak for it."""
    loaded = load(run)
    print_notes(loaded.dataset)
    explanation = explain_by_name(loaded, head, relation, tail, k)
    print_untrained(loaded.dataset, head, tail)
    (whole,) = Predictor(loaded).score([(head, relation, tail)])
    chance = whole.probability
    sure = [] if chance is None else [f"probability that it is a missing fact: {chance:.1%}"]
    if loaded.members:
        sure += [f"rank {whole.tail_rank} of tails", f"{whole.head_rank} of heads"]
        typer.echo(
            f"explained by {explanation.model}, the member that counts most for {relation}: its own ranks; "
            f"of the mixture: {', '.join(sure)}",
            err=True,
        )
    elif sure and whole.split is None:
        typer.echo(sure[0], err=True)
    print_found(asdict(explanation), lambda: render.explanation_view(explanation), as_json)


def relations(run: Path, every: bool, as_json: bool) -> None:
    """Say what relations are to each other: symmetric, inverse, equal, composed, commuting."""
    algebra = relation_patterns(run)
    print_found(asdict(algebra), lambda: render.relation_patterns_view(algebra, every), as_json)
