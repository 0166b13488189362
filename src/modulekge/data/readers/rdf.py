"""RDF: N-Triples, Turtle, and stores in memory; literals are no entities, but some are kept for people."""

import importlib
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from io import BufferedIOBase
from operator import attrgetter, methodcaller
from pathlib import Path
from typing import Any, Literal, NamedTuple

from modulekge.data.readers.labels import TextKind
from modulekge.data.readers.lines import LONGEST, open_bytes
from modulekge.data.readers.tables import Graph, gathered
from modulekge.errors import DataError
from modulekge.installation import to_install
from modulekge.wording import counted

Syntax = Literal["N_TRIPLES", "TURTLE"]
_KINDS: dict[str, TextKind] = {
    "http://www.w3.org/2000/01/rdf-schema#label": "label",
    "http://www.w3.org/2000/01/rdf-schema#comment": "description",
    "http://www.w3.org/2004/02/skos/core#definition": "description",
    "http://schema.org/description": "description",
    "https://schema.org/description": "description",
}
# What the parser calls a node written [ ... ]: a number of 128 random bits, without the zeros in front
_ANONYMOUS = re.compile(r"[1-9a-f][0-9a-f]{20,31}")


class Terms(NamedTuple):
    """The classes by which a library tells the terms of RDF apart, and how it writes what they stand for."""

    literal: type
    blank: type
    about: type  # of a triple, or a graph, that stands in place of a node
    value: Callable[[Any], str]
    syntax: Callable[[Any], str]  # with the marks that tell it from all other terms


def read_rdf(path: Path, syntax: Syntax) -> Graph:
    """Read the triples between IRIs and blank nodes; the others are counted, and texts are kept.

    Of the labels of a node the first counts, one in English or without a language before any other;
    likewise of its descriptions.
    """
    return _Reader(str(path), _oxigraph(), path.name if syntax == "TURTLE" else "").graph(
        _parsed(path, syntax)
    )


def read_store(where: str, store: Iterable[Any], library: str) -> Graph:
    """Read a graph or store of pyoxigraph or rdflib, all its named graphs as one.

    It has no order of its own; triples are sorted, so that equal graphs give equal data sets.
    """
    terms = _oxigraph() if library == "pyoxigraph" else _rdflib()
    triples = {tuple(map(terms.syntax, triple)): triple for triple in (tuple(t)[:3] for t in store)}
    return _Reader(where, terms).graph(triples[key] for key in sorted(triples))


def _oxigraph() -> Terms:
    rdf = rdf_module()
    return Terms(rdf.Literal, rdf.BlankNode, rdf.Triple, attrgetter("value"), str)


def _rdflib() -> Terms:
    rdf = importlib.import_module("rdflib")  # which what is read is of
    return Terms(rdf.Literal, rdf.BNode, rdf.Graph, str, methodcaller("n3"))


def _parsed(path: Path, syntax: Syntax) -> Iterator[Any]:
    """Yield what the parser finds in a file; its errors are said with the line."""
    rdf, read = rdf_module(), 0
    try:
        with open_bytes(path) as file:
            for triple in rdf.parse(_Bounded(file), getattr(rdf.RdfFormat, syntax)):
                yield triple.subject, triple.predicate, triple.object
                read += 1
    except SyntaxError as error:
        found = error.msg.split(": ", 1)[-1]
        raise DataError(f"{path}:{error.lineno}: {found}; mend the line or remove it") from None
    except (EOFError, OSError, MemoryError) as error:
        after = f"{path}: after triple {read:,}: {error}"
        raise DataError(f"{after}; the file is damaged, or a line has no end") from None


class _Reader:
    """One pass over triples, and what it meets besides those between nodes."""

    def __init__(self, where: str, terms: Terms, file: str = "") -> None:
        self.where, self.terms, self.file = where, terms, file
        self.literals = self.about = 0
        self.shown: Counter[TextKind] = Counter()
        # whether for an English reader; the text
        self.found: dict[tuple[TextKind, str], tuple[bool, str]] = {}
        self.anonymous: dict[str, str] = {}

    def graph(self, triples: Iterable[tuple[Any, ...]]) -> Graph:
        table = gathered(self._between_nodes(triples))
        labels, descriptions = self.texts("label"), self.texts("description")
        return Graph((table,), labels, labels, descriptions, self.notes(), blank=True)

    def _between_nodes(self, triples: Iterable[tuple[Any, ...]]) -> Iterator[tuple[str, str, str]]:
        for subject, predicate, thing in triples:
            if isinstance(thing, self.terms.literal):
                self._count_literal(subject, predicate, thing)
            elif isinstance(thing, self.terms.about):
                self.about += 1
            else:
                yield self._name(subject), self.terms.value(predicate), self._name(thing)

    def _count_literal(self, subject: Any, predicate: Any, literal: Any) -> None:
        self.literals += 1
        kind = _KINDS.get(self.terms.value(predicate))
        if kind is None:
            return
        self.shown[kind] += 1
        key, text, language = (kind, self._name(subject)), self.terms.value(literal), literal.language
        good = language is None or language.lower().split("-")[0] == "en"
        if text and (key not in self.found or (good and not self.found[key][0])):
            self.found[key] = good, text

    def texts(self, kind: TextKind) -> dict[str, str]:
        return {name: text for (found, name), (_, text) in self.found.items() if found == kind}

    def _name(self, node: Any) -> str:
        """An IRI as it is; a blank node as _: and its id, or where it has none, the file and a number."""
        name = self.terms.value(node)
        if not isinstance(node, self.terms.blank):
            return name
        if self.file and _ANONYMOUS.fullmatch(name):
            name = self.anonymous.setdefault(name, f"{self.file}-{len(self.anonymous) + 1}")
        return f"_:{name}"

    def notes(self) -> tuple[str, ...]:
        found = []
        if self.literals:
            kinds = " and ".join(f"{count:,} of them {kind}s" for kind, count in self.shown.items())
            shown = f", {kinds}, which are shown" if kinds else ""
            found.append(f"{self.where}: {_left_out(self.literals, 'with a literal')}{shown}")
        if self.about:
            found.append(f"{self.where}: {_left_out(self.about, 'about triples')}")
        return tuple(found)


def _left_out(count: int, what: str) -> str:
    return counted(count, f"triple {what} is left out", f"triples {what} are left out")


class _Bounded:
    """A file for the parser, which takes no byte order mark and looks at a word without end for a minute."""

    def __init__(self, file: BufferedIOBase) -> None:
        self._file, self._length = file, 0
        self._start = file.read(len(BOM_UTF8)).removeprefix(BOM_UTF8)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, unless a line is too long."""
        part, self._start = self._start or self._file.read(size), b""
        behind = part.rfind(b"\n")
        self._length = len(part) - behind - 1 + (self._length if behind < 0 else 0)
        if self._length > LONGEST:
            raise OSError(f"a line is longer than {LONGEST >> 20} MiB")
        return part


def rdf_module() -> Any:
    """Return pyoxigraph, which reads and writes RDF."""
    try:
        return importlib.import_module("pyoxigraph")
    except ImportError:
        raise DataError(f"RDF needs pyoxigraph: {to_install('rdf')}") from None
