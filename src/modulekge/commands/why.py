"""Commands that say why: what speaks for a triple, and what relations are to each other."""

import json
from dataclasses import asdict
from pathlib import Path

from modulekge import render
from modulekge.commands.graph import print_notes, print_untrained
from modulekge.explanations.explanation import explain as explain_by_name
from modulekge.explanations.relation_patterns import relation_patterns
from modulekge.run.run import load


def explain(run: Path, head: str, relation: str, tail: str, k: int, as_json: bool) -> None:
    """Say why a triple scores as it does: training facts, paths and like entities that speak for it."""
    loaded = load(run)
    print_notes(loaded.dataset)
    explanation = explain_by_name(loaded, head, relation, tail, k)
    print_untrained(loaded.dataset, head, tail)
    if as_json:
        print(json.dumps(asdict(explanation), ensure_ascii=False))
    else:
        render.console().print(render.explanation_view(explanation))


def relations(run: Path, every: bool, as_json: bool) -> None:
    """Say what relations are to each other: symmetric, inverse, equal, composed, commuting."""
    algebra = relation_patterns(run)
    if as_json:
        print(json.dumps(asdict(algebra), ensure_ascii=False))
    else:
        render.console().print(render.relation_patterns_view(algebra, every))
