"""The command that adds facts to a trained run."""

import json
from dataclasses import asdict
from pathlib import Path

from modulekge import render
from modulekge.cli.graph import HeaderRow, split_columns
from modulekge.config import parse_setting
from modulekge.data.addition import enlarge
from modulekge.data.reading import read_facts
from modulekge.run.add import fold_in, train_on
from modulekge.run.drift import drift
from modulekge.run.folder import RunFolder
from modulekge.run.run import load


def add(
    run: Path,
    new: Path,
    out: Path | None,
    refresh: int,
    settings: list[str] | None,
    columns: str | None,
    header: HeaderRow,
    labels: Path | None,
    descriptions: Path | None,
    as_json: bool,
) -> None:
    """Add new facts to a trained run, in seconds, as a new run; RUN itself is not changed."""
    err, source = render.console(stderr=True), load(run)
    changes = [parse_setting(text) for text in settings or ()]
    source.folder.changed(changes)
    if out:
        RunFolder.check_free(out)
    chosen = split_columns(columns)
    facts = read_facts(new, chosen, labels, descriptions, header.chosen, source.dataset)
    addition = enlarge(source.dataset, facts)
    for note in addition.notes:
        err.print(note)
    folder = fold_in(source, addition, out, changes)
    with render.TrainingDisplay(max(1, refresh), 1) as display:
        try:
            for event in train_on(folder, refresh):
                display.show(event)
        except KeyboardInterrupt:
            err.print(f"the facts are in {folder.path}; 'modulekge resume {folder.path}' goes on training")
            raise
    moved = drift(source, load(folder.path)) if refresh else None
    if as_json:
        found = {"run": str(folder.path), **addition.counts(), "drift": moved and asdict(moved)}
        print(json.dumps(found, ensure_ascii=False))
    else:
        render.console().print(render.addition_view(addition.counts(), moved))
    unmoved = addition.counts()["between_known"]
    if unmoved and not refresh:
        err.print(f"facts between known entities ({unmoved:,}) move nothing; --refresh 5 trains on them")
    err.print(render.kept_in(folder.path))
