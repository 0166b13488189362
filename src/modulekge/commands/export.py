"""The command that writes a run for other tools."""

import json
from dataclasses import asdict
from pathlib import Path

from modulekge import render
from modulekge.commands.graph import print_notes
from modulekge.exports.formats import export as export_run
from modulekge.run.run import load


def export(
    run: Path,
    target: Path,
    to: str | None,
    without_facts: bool,
    relation: str | None,
    head: str | None,
    tail: str | None,
    k: int | None,
    prefix: str | None,
    expansion: int | None,
    as_json: bool,
) -> None:
    """Write a run for other tools: arrays, a table, word2vec, a folder to share, an index, RDF."""
    given = {
        "without_facts": without_facts or None,
        "relation": relation,
        "head": head,
        "tail": tail,
        "k": k,
        "prefix": prefix,
        "expansion": expansion,
    }
    options = {name: value for name, value in given.items() if value is not None}
    loaded = load(run)
    print_notes(loaded.dataset)
    written = export_run(loaded, target, to, **options)
    if as_json:
        print(json.dumps({**asdict(written), "path": str(written.path)}, ensure_ascii=False))
    else:
        render.console().print(f"{written.path}: {written.note}")
