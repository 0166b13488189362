"""Commands on runs that were kept: facts are added, other tools get them, they are compared."""

from dataclasses import asdict
from pathlib import Path

from modulekge import render
from modulekge.cli.graph import HeaderRow
from modulekge.commands.graph import give, print_found, print_notes
from modulekge.config import parse_setting
from modulekge.data.addition import enlarge
from modulekge.data.readers.columns import named_columns
from modulekge.data.reading import read_facts
from modulekge.exports.formats import export as export_run
from modulekge.run.add import check_refresh, fold_in, train_on
from modulekge.run.comparison import compare as compare_runs
from modulekge.run.comparison import write_comparison
from modulekge.run.drift import drift
from modulekge.run.folder import RunFolder
from modulekge.run.judgements import (
    Judgement,
    accepted_triples,
    agreement,
    read_judgements,
    standing_judgements,
)
from modulekge.run.rows import WRITERS, Rows, check_target
from modulekge.run.run import load
from modulekge.run.trackers import send


def judgements(run: Path, accepted: bool, out: Path | None, as_json: bool) -> None:
    """Show what people said of predicted links in the explorer, and how it agrees with probabilities."""
    if out:
        check_target(out, WRITERS)
    every = read_judgements(RunFolder.existing(run))
    standing = standing_judgements(every)
    rows = Rows.of(Judgement, standing)
    if accepted:
        names = ("head", "relation", "tail")
        triples = [dict(zip(names, triple, strict=True)) for triple in accepted_triples(every)]
        rows = Rows(dict.fromkeys(names, str), triples)
    give(rows, render.judgements_view(standing, agreement(every)), out, as_json)


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
    dry_run: bool,
    as_json: bool,
) -> None:
    """Add new facts to a trained run, in seconds, as a new run; RUN itself is not changed."""
    err, source = render.console(stderr=True), load(run)
    changes = [parse_setting(text) for text in settings or ()]
    check_refresh(source, refresh)
    source.folder.changed(changes)
    if out:
        RunFolder.check_free(out)
    chosen = named_columns(columns)
    facts = read_facts(new, chosen, labels, descriptions, header.chosen, source.dataset)
    addition = enlarge(source.dataset, facts)
    for note in addition.notes:
        err.print(note)
    if dry_run:
        counts = addition.counts()
        print_found(counts, lambda: render.addition_view(counts, None), as_json)
        return
    folder = fold_in(source, addition, out, changes)
    with render.TrainingDisplay(max(1, refresh), 1) as display:
        try:
            for event in train_on(folder, refresh):
                display.show(event)
        except KeyboardInterrupt:
            err.print(f"the facts are in {folder.path}; 'modulekge resume {folder.path}' goes on training")
            raise
    moved = drift(source, load(folder.path)) if refresh else None
    found = {"run": str(folder.path), **addition.counts(), "drift": moved and asdict(moved)}
    print_found(found, lambda: render.addition_view(addition.counts(), moved), as_json)
    unmoved = addition.counts()["between_known"]
    if unmoved and not refresh and not source.model.spec.along_paths:  # along which they count at once
        err.print(f"facts between known entities ({unmoved:,}) move nothing; --refresh 5 trains on them")
    err.print(render.kept_in(folder.path))


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
    found = {**asdict(written), "path": str(written.path)}
    print_found(found, lambda: f"{written.path}: {written.note}", as_json)


def compare(runs: list[Path], out: Path | None, as_json: bool) -> None:
    """Lay runs side by side: the settings that differ, the metrics, the curves of valid MRR."""
    comparison = compare_runs(runs)
    if out:
        write_comparison(comparison, out)
    print_found(asdict(comparison), lambda: render.comparison_view(comparison), as_json)


def track(run: Path, to: str) -> None:
    """Send a run that was kept to a tracker: its settings, every epoch, its report on test."""
    send(RunFolder.existing(run), to)
    render.console(stderr=True).print(f"sent to {to}")
