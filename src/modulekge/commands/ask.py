"""Commands that ask a run for answers."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import typer

from modulekge import render
from modulekge.answers.compound.asker import Asker
from modulekge.answers.links import affordable
from modulekge.answers.predictor import Predictor
from modulekge.answers.questions import Answer, Link, Question
from modulekge.answers.triples import NamedTriples
from modulekge.commands.graph import give, on_device, print_found, print_notes, print_untrained
from modulekge.data.dataset import Dataset
from modulekge.data.type_constraints import Types
from modulekge.errors import QuestionError
from modulekge.run.rows import WRITERS, Rows, check_target, with_labels
from modulekge.run.run import load
from modulekge.wording import counted


def predict(
    run: Path,
    head: str | None,
    relation: str | None,
    tail: str | None,
    graph: str | None,
    k: int | None,
    new: bool,
    typed: bool,
    coverage: float | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Answer (head, relation, ?), (?, relation, tail) or (head, ?, tail) by name; known facts are marked."""
    question = Question(head, relation, tail)
    _check_out(out)
    predictor = _predictor(run, graph)
    _say_uncalibrated(predictor)
    if coverage is None:
        answers = predictor.predict_many([question], k, "exclude" if new else "mark", _types(typed))[0]
        if typed:
            _say_candidates(predictor.candidates(question), len(predictor.run.dataset.entities), "entities")
        view = render.answers_view(str(question), answers)
    else:
        if k is not None or relation is None or typed:
            raise QuestionError(
                "--coverage: finds how many answers it takes, of any type, for heads or tails; "
                "leave -k and --typed out"
            )
        found = predictor.prediction_set(head=head, relation=relation, tail=tail, coverage=coverage)
        answers, view = found.answers, render.prediction_set_view(str(question), found)
    rows = [{**asdict(answer), "known": answer.known} for answer in answers]
    print_untrained(predictor.run.dataset, head, tail)
    for doubt in predictor.doubts(question):
        typer.echo(doubt, err=True)
    give(Rows({**Rows.of(Answer, []).columns, "known": bool}, rows), view, out, as_json)


def ask(
    run: Path,
    question: str,
    graph: str | None,
    k: int | None,
    new: bool,
    t_norm: str,
    any_type: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Answer a question of several links: probabilities, and for each answer the links that speak for it."""
    _check_out(out)
    predictor = _predictor(run, graph)
    asker = Asker(predictor.run, types=_types(not any_type), predictor=predictor)
    found = asker.ask(question, k, "exclude" if new else "mark", t_norm)
    if found.probabilities == "softmax":
        advice = "" if predictor.run.elsewhere else f"; 'modulekge calibrate {run}' fits them"
        typer.echo(f"probabilities are a softmax, fitted to nothing{advice}", err=True)
    view = render.compound_view(question, found)
    if out:
        give(Rows(*found._columns()), view, out, as_json=False)
    if as_json or not out:
        print_found(asdict(found), lambda: view, as_json)


def links(
    run: Path,
    relation: list[str] | None,
    head: list[str] | None,
    k: int,
    per_relation: int | None,
    min_probability: float,
    any_type: bool,
    every: bool,
    out: Path | None,
    prefix: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Find the most probable triples of a whole graph that it does not hold yet."""
    write = _links_writer(out, prefix)
    predictor = _predictor(run)
    dataset, types = predictor.run.dataset, _types(not any_type)
    sides = predictor.link_candidates(relation, types)
    total = sum(len(head) if head else heads for heads, _ in sides)
    share = 1.0 if every else affordable(predictor.run.scorer, total)
    if share < 1:
        some = f"asking {round(share * total):,} of {total:,} questions, evenly drawn, for each takes long"
        typer.echo(f"{some}; --all asks all, --relation and --head fewer", err=True)
    with render.progress_display("asking", round(share * total), lambda chunk: chunk.heads) as watch:
        found = predictor.links(relation, k, watch, types, min_probability, per_relation, head or None, share)
    if not any_type and not head:
        _say_candidates(sum(h * t for h, t in sides), len(sides) * len(dataset.entities) ** 2, "triples")
    if not found:
        least = f"no new link has a probability of {min_probability:g} or more"
        typer.echo(least if min_probability else "no new link: the graph rules all others out", err=True)
    rows, target = with_labels(Rows.of(Link, found), dataset), None if dry_run else out
    give(rows, render.links_table(found, dataset), target, as_json, lambda: write(found, dataset))
    if found and not as_json:
        typer.echo(_meaning(predictor), err=True)
    if out and dry_run:
        typer.echo(f"{out}: {counted(len(found), 'link')} would be written; nothing was", err=True)


def _meaning(predictor: Predictor) -> str:
    if predictor.calibrated().links is None:  # it was made before links had probabilities of their own
        better = f"'modulekge calibrate {predictor.run.folder.path}' makes that of links"
        return f"probability: of the tail, if (head, relation, ?) misses one; {better}"
    return "probability: that the link is a missing fact, if as many are missing as valid held out"


def score(
    run: Path, file: Path, columns: str | None, skip_unknown: bool, out: Path | None, as_json: bool
) -> None:
    """Say of each triple of a file how probable it is, how it ranks, and whether the graph holds it."""
    _check_out(out)
    triples = NamedTriples.read(file, columns)
    predictor = _predictor(run)
    _say_uncalibrated(predictor)
    found = predictor.score(triples, "skip" if skip_unknown else "refuse")
    if skipped := len(triples.rows) - len(found):
        which = f"{file}: {skipped:,} of {counted(len(triples.rows), 'triple')}"
        typer.echo(f"{which} left out: their names are unknown, or labels of several", err=True)
    dataset = predictor.run.dataset
    give(with_labels(Rows.of(Link, found), dataset), render.links_table(found, dataset), out, as_json)


def _links_writer(out: Path | None, prefix: str | None) -> Callable[[list[Link], Dataset], None]:
    if out is None:
        return lambda found, dataset: None
    from modulekge.exports.links import links_writer  # which takes Arrow, and few questions do

    return links_writer(out, prefix)


def _check_out(out: Path | None) -> None:
    if out:
        check_target(out, WRITERS)


def _predictor(path: Path, graph: str | None = None) -> Predictor:
    """Load a run to be asked, about another graph if one is named; say what there is to know of that."""
    run = on_device(load(path))
    if graph:
        run = run.along(graph)
    print_notes(run.dataset)
    if unfinished := run.folder.unfinished():
        typer.echo(f"{path}: {unfinished}; 'modulekge resume {path}' goes on", err=True)
    return Predictor(run)


def _say_uncalibrated(predictor: Predictor) -> None:
    if predictor.run.elsewhere:
        typer.echo("no probabilities: they are fitted to the graph that the run was trained on", err=True)
    elif predictor.calibration is None and len(predictor.run.dataset.valid):
        path = predictor.run.folder.path
        typer.echo(f"no probabilities: 'modulekge calibrate {path}' makes them", err=True)


def _types(constrained: bool) -> Types:
    return "constrained" if constrained else "any"


def _say_candidates(left: int, total: int, what: str) -> None:
    typer.echo(f"type constraints: {left:,} of {total:,} {what} are candidates", err=True)
