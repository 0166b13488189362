"""Predictions as RDF: statements with a score, which assert nothing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from modulekge.answers.predictor import Predictor
from modulekge.choices import FEW
from modulekge.data.dataset import Dataset
from modulekge.data.readers.rdf import rdf_module
from modulekge.data.vocabulary import PLURAL, Vocabulary
from modulekge.errors import ConfigError
from modulekge.run.run import Run

Prediction = tuple[str, str, str, float, float | None]  # head, relation, tail, score, probability if known
Form = Callable[[Any, Any, Sequence[Any]], Iterator[Any]]  # (rdf, node, terms): what names the triple
PREFIX = "urn:modulekge:"
SYNTAXES = {".nt": "N_TRIPLES", ".ttl": "TURTLE"}
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_TERMS = "urn:modulekge:terms#"  # no name makes such an IRI: its # would be %23
_SHORT = {"rdf": _RDF, "kge": _TERMS, "xsd": "http://www.w3.org/2001/XMLSchema#"}  # in Turtle


def as_statement(rdf: Any, node: Any, terms: Sequence[Any]) -> Iterator[Any]:
    """Name a triple as an rdf:Statement of its three parts, which every store reads."""
    yield rdf.Triple(node, rdf.NamedNode(f"{_RDF}type"), rdf.NamedNode(f"{_RDF}Statement"))
    for part, term in zip(("subject", "predicate", "object"), terms, strict=True):
        yield rdf.Triple(node, rdf.NamedNode(_RDF + part), term)


def as_triple_term(rdf: Any, node: Any, terms: Sequence[Any]) -> Iterator[Any]:
    """Name a triple as a term of RDF 1.2, as RDF-star became: ``node rdf:reifies <<( s p o )>>``."""
    yield rdf.Triple(node, rdf.NamedNode(f"{_RDF}reifies"), rdf.Triple(*terms))


def write_rdf(
    predictions: Iterable[Prediction], target: Path, prefix: str = PREFIX, form: Form = as_statement
) -> int:
    """Write each prediction as a triple that is named, with its score; return how many there were.

    The predicted triple itself is not written: a prediction is no fact. A name that is an IRI stays as it is,
    another one follows ``prefix``, percent-encoded.
    """
    return RdfWriter(prefix, form).write(predictions, target)


class RdfWriter:
    """One pass over predictions, and their number."""

    def __init__(self, prefix: str, form: Form) -> None:
        self.rdf, self.prefix, self.form, self.count = rdf_module(), prefix, form, 0
        try:
            self.rdf.NamedNode(f"{prefix}x")
        except ValueError as error:
            raise ConfigError(f"prefix {prefix!r}: {error}; expected the start of an IRI") from None

    def write(self, predictions: Iterable[Prediction], target: Path) -> int:
        """Write a file in the syntax that its ending names."""
        if target.suffix not in SYNTAXES:
            raise ConfigError(f"{target}: expected a file that ends in {' or '.join(SYNTAXES)}")
        with target.open("wb") as file:
            syntax = getattr(self.rdf.RdfFormat, SYNTAXES[target.suffix])
            self.rdf.serialize(self._triples(predictions), file, syntax, prefixes=_SHORT)
        return self.count

    def _triples(self, predictions: Iterable[Prediction]) -> Iterator[Any]:
        rdf = self.rdf
        measures = [rdf.NamedNode(f"{_TERMS}{measure}") for measure in ("score", "probability")]
        for *names, score, probability in predictions:
            self.count += 1
            about = rdf.BlankNode(f"p{self.count}")
            yield from self.form(rdf, about, [self._iri(str(name)) for name in names])
            for measure, value in zip(measures, (score, probability), strict=True):
                if value is not None:
                    yield rdf.Triple(about, measure, rdf.Literal(float(value)))

    def check_apart(self, dataset: Dataset) -> None:
        """Refuse a prefix that makes of one name the IRI that another one is."""
        for names in (dataset.entities, dataset.relations):
            self._check_names(names)

    def _check_names(self, names: Vocabulary) -> None:
        prefixed = {name for name in names.names if name.startswith(self.prefix)}
        bare = {unquote(name.removeprefix(self.prefix)): name for name in prefixed}
        for other in bare.keys() & names.names if bare else ():
            if (name := bare[other]) != other and self._iri(other) == self._iri(name):
                finding = f"prefix {self.prefix!r}: {other!r} and {name!r} are both {PLURAL[names.kind]}"
                raise ConfigError(f"{finding}; choose another --prefix")

    def _iri(self, name: str) -> Any:
        try:
            return self.rdf.NamedNode(name)
        except ValueError:
            return self.rdf.NamedNode(self.prefix + quote(name, safe=""))


def write_links(
    run: Run,
    path: Path,
    *,
    relation: str | None = None,
    head: str | None = None,
    tail: str | None = None,
    k: int | None = None,
    prefix: str = PREFIX,
) -> str:
    """Write the ``k`` best new answers to a question, or the most probable new links of a whole graph."""
    writer = RdfWriter(prefix, as_statement)
    writer.check_apart(run.dataset)
    count = writer.write(new_links(run, relation, head, tail, k), path)
    return f"{count} new links, each a statement with its score"


def new_links(
    run: Run, relation: str | None, head: str | None, tail: str | None, k: int | None = None
) -> Iterator[Prediction]:
    """Yield what is written as RDF: without a head and a tail, links of the relation, or of all."""
    asked = Predictor(run)
    if head is None and tail is None:
        for link in asked.links(None if relation is None else [relation], FEW if k is None else k):
            yield link.head, link.relation, link.tail, link.score, link.probability
        return
    entities, relations = run.dataset.entities, run.dataset.relations
    given = [
        None if name is None else names.names[names.find(name)]
        for name, names in zip((head, relation, tail), (entities, relations, entities), strict=True)
    ]
    for answer in asked.predict(head=head, relation=relation, tail=tail, k=k, known="exclude"):
        subject, predicate, object_ = (answer.name if name is None else name for name in given)
        yield subject, predicate, object_, answer.score, answer.probability
