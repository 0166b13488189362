"""Commands that ask a run for answers."""

from pathlib import Path
from typing import Annotated

import typer

from modulekge.choices import FEW, RDF_FILES, T_NORMS, TABLES
from modulekge.cli.app import Columns, Json, OtherGraph, RunArgument, command

Out = Annotated[Path | None, typer.Option(help=f"Write a new file instead of a table: {', '.join(TABLES)}.")]


@command(epilog="Example: modulekge predict runs/demo --head France --relation borders -k 5")
def predict(
    run: RunArgument,
    head: Annotated[str | None, typer.Option(help="An entity, by name or label.")] = None,
    relation: Annotated[str | None, typer.Option(help="A relation, by name or label.")] = None,
    tail: Annotated[str | None, typer.Option(help="An entity, by name or label.")] = None,
    graph: OtherGraph = None,
    k: Annotated[
        int | None, typer.Option("-k", help=f"How many answers; default: {FEW}.", show_default=False)
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Leave out what the graph knows.")] = False,
    typed: Annotated[
        bool, typer.Option("--typed", help="Only answers of a type that the relation holds there.")
    ] = False,
    coverage: Annotated[
        float | None, typer.Option(help="Instead of k answers: a prediction set, such as 0.9.")
    ] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Answer (head, relation, ?), (?, relation, tail) or (head, ?, tail) by name; known facts are marked.

    Leave out what you ask for. Probabilities are there once the run is calibrated, which 'train' does. With
    --coverage 0.9, a prediction set: if a fact is missing, it is among them in about 9 of 10 cases.
    """


@command(
    epilog="Example: modulekge ask runs/demo '?c where France borders ?x and ?x uses_currency ?c and not "
    '?x member_of "European Union"\''
)
def ask(
    run: RunArgument,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="What is asked, in quotes for the shell; or SPARQL.")
    ],
    graph: OtherGraph = None,
    k: Annotated[
        int | None, typer.Option("-k", help=f"How many answers; default: {FEW}.", show_default=False)
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Leave out what the graph alone answers: a link is predicted.")
    ] = False,
    t_norm: Annotated[
        str, typer.Option(help=f"How 'and' joins probabilities: {', '.join(T_NORMS)}.")
    ] = T_NORMS[0],
    any_type: Annotated[
        bool, typer.Option("--any-type", help="Also links of types that the relation never holds.")
    ] = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Answer a question of several links: probabilities, and for each answer the links that speak for it.

    A question is '?answer where LINK and LINK ...'. A LINK is 'entity relation entity'; what is not known is
    a variable, such as ?x. Links are joined by and, or, not, with brackets; names of several words go in
    quotes. 'not' of a link with a variable of its own means that there is no such entity. The same can be
    asked in SPARQL: SELECT with triple patterns, UNION and FILTER NOT EXISTS.
    """


@command(epilog="Example: modulekge links runs/demo --relation borders --min-probability 0.5 --out new.csv")
def links(
    run: RunArgument,
    relation: Annotated[
        list[str] | None, typer.Option(help="A relation, by name or label; repeatable; default: all.")
    ] = None,
    head: Annotated[
        list[str] | None,
        typer.Option(help="Only links of this entity, by name or label; repeatable."),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--limit", help="How many links at most.")] = 100,
    per_relation: Annotated[
        int | None, typer.Option(min=1, help="How many of each relation at most; default: any number.")
    ] = None,
    min_probability: Annotated[
        float, typer.Option(min=0, max=1, help="Leave out links that are less probable.")
    ] = 0.0,
    any_type: Annotated[
        bool, typer.Option("--any-type", help="Also heads and tails of types that the relation never holds.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Ask all heads, where a share is asked as each takes long.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help=f"Write a new file instead of a table: {', '.join((*TABLES, *RDF_FILES))}; "
            "without an ending, a folder for Neo4j."
        ),
    ] = None,
    prefix: Annotated[str | None, typer.Option(help="RDF: base IRI for names that are not IRIs.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what --out would hold, and write nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find the most probable triples of a whole graph that it does not hold yet.

    What no fact of a relation shows is left out: a second answer where each question has one, loops, and
    heads and tails of a type that the relation does not hold there, as learned from train.
    """


@command(epilog="Example: modulekge score runs/demo triples.tsv --out scored.parquet")
def score(
    run: RunArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Triples, in any format that 'train' reads.")],
    columns: Columns = None,
    skip_unknown: Annotated[
        bool,
        typer.Option("--skip-unknown", help="Leave out triples with unknown names, or labels of several."),
    ] = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Say of each triple of a file how probable it is, how it ranks, and whether the graph holds it."""
