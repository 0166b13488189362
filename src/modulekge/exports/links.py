"""Links with their probabilities as files that other systems load: tables, RDF 1.2, a folder for Neo4j."""

import csv
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from modulekge.answers.questions import Link
from modulekge.data.dataset import Dataset
from modulekge.errors import ConfigError
from modulekge.exports.rdf import PREFIX, SYNTAXES, RdfWriter, as_triple_term
from modulekge.run.files import whole
from modulekge.run.rows import WRITERS, Rows, check_target, with_labels

LinksWriter = Callable[[Sequence[Link], Dataset], None]

_LOAD = """\
// Predicted links of a knowledge graph. Copy both .csv files to the import folder of the database, then
// cypher-shell -f load.cypher
// A prediction is no fact: every link has the type PREDICTED, and its relation is a property.
// Where the entities are nodes of yours already, write their label and key for :Entity and name.
CREATE CONSTRAINT modulekge_entity_name IF NOT EXISTS FOR (e:Entity) REQUIRE e.name IS UNIQUE;
LOAD CSV WITH HEADERS FROM 'file:///entities.csv' AS row
MERGE (e:Entity {name: row.name})
SET e.label = row.label;
LOAD CSV WITH HEADERS FROM 'file:///links.csv' AS row
MATCH (head:Entity {name: row.head}), (tail:Entity {name: row.tail})
MERGE (head)-[link:PREDICTED {relation: row.relation}]->(tail)
SET link.score = toFloat(row.score), link.probability = toFloat(row.probability),
    link.tail_rank = toInteger(row.tail_rank), link.head_rank = toInteger(row.head_rank);
"""


def links_writer(target: Path, prefix: str | None = None) -> LinksWriter:
    """Return what writes links as what the target's ending names, whole or not at all.

    A table (.csv, .jsonl, .parquet), RDF 1.2 (.nt, .ttl) with names that are no IRIs behind ``prefix``, or,
    without an ending, a folder that Neo4j loads. What cannot be written is refused before there are links.
    """
    check_target(target, (*WRITERS, *SYNTAXES), folder="which Neo4j loads")
    if target.suffix in SYNTAXES:
        return partial(_write_rdf, target, RdfWriter(prefix or PREFIX, as_triple_term))
    if prefix is not None:
        raise ConfigError(f"{target}: a prefix is for RDF; end the name in {' or '.join(SYNTAXES)}")
    return partial(_write_table if target.suffix else _write_neo4j, target)


def _write_table(target: Path, links: Sequence[Link], dataset: Dataset) -> None:
    with_labels(Rows.of(Link, links), dataset).write(target)


def _write_rdf(target: Path, writer: RdfWriter, links: Sequence[Link], dataset: Dataset) -> None:
    writer.check_apart(dataset)
    with whole(target) as path:
        writer.write(((x.head, x.relation, x.tail, x.score, x.probability) for x in links), path)


def _write_neo4j(target: Path, links: Sequence[Link], dataset: Dataset) -> None:
    """Write the links, the entities they join, and the script that loads both."""
    names = dict.fromkeys(name for link in links for name in (link.head, link.tail))
    entities, rows = [(name, dataset.entities.labels.get(name, name)) for name in names], Rows.of(Link, links)
    with whole(target) as path:
        path.mkdir()
        _write_csv(path / "entities.csv", ("name", "label"), entities)
        _write_csv(path / "links.csv", rows.columns, (row.values() for row in rows.rows))
        (path / "load.cypher").write_text(_LOAD, "utf-8")


def _write_csv(path: Path, heading: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write what LOAD CSV reads: every cell in quotes, in which a backslash escapes and so is doubled."""
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        out.writerow(heading)
        out.writerows(["" if x is None else str(x).replace("\\", "\\\\") for x in row] for row in rows)
