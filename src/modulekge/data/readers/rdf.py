"""RDF: N-Triples and Turtle, streamed; literals are no entities, but some are kept for people."""

import importlib
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Literal

from modulekge.data.readers.labels import Kind
from modulekge.data.readers.lines import LONGEST, open_bytes
from modulekge.data.readers.tables import Graph, gathered
from modulekge.errors import DataError, to_install
from modulekge.wording import counted

Syntax = Literal["N_TRIPLES", "TURTLE"]
_KINDS: dict[str, Kind] = {
    "http://www.w3.org/2000/01/rdf-schema#label": "label",
    "http://www.w3.org/2000/01/rdf-schema#comment": "description",
    "http://www.w3.org/2004/02/skos/core#definition": "description",
    "http://schema.org/description": "description",
    "https://schema.org/description": "description",
}
# What the parser calls a node written [ ... ]: a number of 128 random bits, without the zeros in front
_ANONYMOUS = re.compile(r"[1-9a-f][0-9a-f]{20,31}")


def read_rdf(path: Path, syntax: Syntax) -> Graph:
    """Read the triples between IRIs and blank nodes; the others are counted, and texts are kept.

    Of the labels of a node the first counts, one in English or without a language before any other;
    likewise of its descriptions.
    """
    reader = _Reader(path, syntax)
    table = gathered(reader.triples())
    labels, descriptions = reader.texts("label"), reader.texts("description")
    return Graph((table,), labels, labels, descriptions, reader.notes(), blank=True)


class _Reader:
    """One pass over a file, and what it meets besides triples between nodes."""

    def __init__(self, path: Path, syntax: Syntax) -> None:
        self.path, self.syntax, self.rdf = path, syntax, rdf_module()
        self.read = self.literals = self.about = 0
        self.shown: Counter[Kind] = Counter()
        self.found: dict[tuple[Kind, str], tuple[bool, str]] = {}  # whether for an English reader; the text
        self.anonymous: dict[str, str] = {}

    def triples(self) -> Iterator[tuple[str, str, str]]:
        with open_bytes(self.path) as file:
            for triple in self._parsed(file):
                self.read += 1
                if isinstance(triple.object, self.rdf.Literal):
                    self._count_literal(triple)
                elif isinstance(triple.object, self.rdf.Triple):
                    self.about += 1
                else:
                    yield self._name(triple.subject), triple.predicate.value, self._name(triple.object)

    def _parsed(self, file: Any) -> Iterator[Any]:
        """Yield what the parser finds; its errors are said with the line."""
        try:
            yield from self.rdf.parse(_Bounded(file), getattr(self.rdf.RdfFormat, self.syntax))
        except SyntaxError as error:
            found = error.msg.split(": ", 1)[-1]
            raise DataError(f"{self.path}:{error.lineno}: {found}; mend the line or remove it") from None
        except (EOFError, OSError, MemoryError) as error:
            after = f"{self.path}: after triple {self.read:,}: {error}"
            raise DataError(f"{after}; the file is damaged, or a line has no end") from None

    def _count_literal(self, triple: Any) -> None:
        self.literals += 1
        kind = _KINDS.get(triple.predicate.value)
        if kind is None:
            return
        self.shown[kind] += 1
        key, text, language = (kind, self._name(triple.subject)), triple.object.value, triple.object.language
        good = language is None or language.lower().split("-")[0] == "en"
        if text and (key not in self.found or (good and not self.found[key][0])):
            self.found[key] = good, text

    def texts(self, kind: Kind) -> dict[str, str]:
        return {name: text for (found, name), (_, text) in self.found.items() if found == kind}

    def _name(self, node: Any) -> str:
        """An IRI as it is; a blank node as _: and its id, or where it has none, the file and a number."""
        name: str = node.value
        if not isinstance(node, self.rdf.BlankNode):
            return name
        if self.syntax == "TURTLE" and _ANONYMOUS.fullmatch(name):
            name = self.anonymous.setdefault(name, f"{self.path.name}-{len(self.anonymous) + 1}")
        return f"_:{name}"

    def notes(self) -> tuple[str, ...]:
        found = []
        if self.literals:
            kinds = " and ".join(f"{count:,} of them {kind}s" for kind, count in self.shown.items())
            shown = f", {kinds}, which are shown" if kinds else ""
            found.append(f"{self.path}: {_left_out(self.literals, 'with a literal')}{shown}")
        if self.about:
            found.append(f"{self.path}: {_left_out(self.about, 'about triples')}")
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
