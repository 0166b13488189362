"""Compound questions in SPARQL: SELECT of one variable, with triple patterns, UNION and FILTER NOT EXISTS."""

import re
from dataclasses import dataclass, field
from urllib.parse import unquote

from modulekge.answers.compound.formula import (
    CompoundQuestion,
    Formula,
    Not,
    Triple,
    Variable,
    Word,
    all_of,
    any_of,
)
from modulekge.answers.compound.tokens import Reader, Token, unquoted

_TOKENS = re.compile(
    r"""
    (?P<space>(?:\s|\#[^\n]*(?:\n|$))+)
  | (?P<variable>[?$]\w+)
  | (?P<iri><[^<>\n]*>)
  | (?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<prefixed>[^\W\d][\w.-]*:(?:[\w:%-]|\.(?=[\w:%.-]))*|:(?:[\w:%-]|\.(?=[\w:%.-]))*)
  | (?P<word>[^\W\d]\w*|\*|\d+)
  | (?P<sign>[{}.;,()|/^+?!@=<>&\[\]\\-])
    """,
    re.VERBOSE,
)
_KEYWORDS = (
    "select",
    "distinct",
    "reduced",
    "where",
    "union",
    "filter",
    "not",
    "exists",
    "prefix",
    "base",
    "a",
)
_FORMS = ("ask", "construct", "describe")
_OUTSIDE = (
    "optional", "minus", "graph", "service", "bind", "values", "order", "limit", "offset", "group",
    "having", "from",
)  # fmt: skip
_PATHS = "|/^+?*!"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_NO_PATHS = "property paths are not answered; write each step as a triple pattern"
_HAVE = "there are triple patterns, UNION and FILTER NOT EXISTS"


def parse(text: str) -> CompoundQuestion:
    """Read a SPARQL query as a compound question; what has no meaning there is refused by its name.

    Names are IRIs, prefixed names or strings. A name that the graph does not have is looked for by what
    stands behind its last slash, hash or colon: ``<http://x/European%20Union>`` finds ``European Union``.

    >>> parse("SELECT ?x WHERE { :France :borders ?x }").answer.name
    'x'
    """
    return _Parser(Reader.of(text, _TOKENS, (*_KEYWORDS, *_FORMS, *_OUTSIDE))).query()


@dataclass(frozen=True)
class _Parser:
    reader: Reader
    prefixes: dict[str, str] = field(default_factory=dict)

    def query(self) -> CompoundQuestion:
        reader = self.reader
        while reader.take_if("prefix"):
            self._prefix()
        if reader.now.text.casefold() in ("base", *_FORMS):
            raise reader.refusal(f"{reader.now.text.upper()} is not answered; ask with SELECT")
        if not reader.take_if("select"):
            raise reader.refusal("expected SELECT")
        if not reader.take_if("distinct"):  # which answers are anyway
            reader.take_if("reduced")
        answer = reader.variable()
        if answer is None:
            raise reader.refusal("expected one variable, which is asked for, behind SELECT")
        if reader.now.kind == "variable":
            raise reader.refusal("expected one variable only; the others are given as witnesses")
        reader.take_if("where")
        where = self._group()
        if reader.now.kind != "end":
            raise self._outside("the end")
        return CompoundQuestion(answer, where, reader.text)

    def _prefix(self) -> None:
        name, iri = self.reader.take(), self.reader.now
        if name.kind != "prefixed" or not name.text.endswith(":") or iri.kind != "iri":
            raise self.reader.refusal("expected a prefix, as in PREFIX x: <http://x/>", name)
        self.prefixes[name.text] = self.reader.take().text[1:-1]

    def _group(self) -> Formula:
        reader, parts = self.reader, list[Formula]()
        opening = reader.now
        if not reader.take_if("{"):
            raise self._outside("'{'")
        with reader.deeper():
            while not reader.take_if("}"):
                if reader.now.text == "{":
                    parts.append(self._union())
                elif reader.take_if("filter"):
                    parts.append(Not(self._not_exists()))
                elif reader.now.kind in ("variable", "iri", "quoted", "prefixed"):
                    parts += self._triples()
                else:
                    raise self._outside("a triple pattern, FILTER NOT EXISTS, '{' or '}'")
                reader.take_if(".")
        if not parts:
            raise reader.refusal("expected a triple pattern between { and }", opening)
        return all_of(parts)

    def _union(self) -> Formula:
        parts = [self._group()]
        while self.reader.take_if("union"):
            parts.append(self._group())
        return any_of(parts)

    def _not_exists(self) -> Formula:
        if not (self.reader.take_if("not") and self.reader.take_if("exists")):
            raise self.reader.refusal("of filters there is FILTER NOT EXISTS only")
        return self._group()

    def _triples(self) -> list[Formula]:
        """Triples of one head: ``;`` starts another relation, ``,`` another tail."""
        found: list[Formula] = []
        head, more = self._term(), True
        while more:
            relation = self._relation()
            while more:
                found.append(Triple(head, relation, self._term()))
                more = self.reader.take_if(",")
            more = self.reader.take_if(";") and self.reader.now.text not in (".", "}")
        return found

    def _relation(self) -> Word:
        token = self.reader.now
        if token.kind == "keyword" and token.text == "a":
            self.reader.take()
            return Word(_TYPE, token.start, token.end, "type")
        self.reader.no_variable()
        relation = self._name("a relation")
        if self.reader.now.text in _PATHS and self.reader.now.kind in ("sign", "word"):
            raise self.reader.refusal(_NO_PATHS)
        return relation

    def _term(self) -> Word | Variable:
        return self.reader.variable() or self._name("an entity or a variable")

    def _name(self, expected: str) -> Word:
        token = self.reader.now
        if token.kind not in ("iri", "quoted", "prefixed"):
            if token.text in ("^", "!", "("):
                raise self.reader.refusal(_NO_PATHS)
            raise self._outside(expected)
        self.reader.take()
        if token.kind == "quoted":
            return Word(unquoted(token.text), token.start, token.end)
        name = token.text[1:-1] if token.kind == "iri" else self._expanded(token)
        return Word(name, token.start, token.end, unquote(re.split("[/#:]", name.rstrip("/"))[-1]))

    def _expanded(self, token: Token) -> str:
        """Return a prefixed name in full; one without a prefix may stand for itself."""
        prefix, _, local = token.text.partition(":")
        if prefix and prefix + ":" not in self.prefixes:
            raise self.reader.refusal(
                f"the prefix {prefix}: is not declared; begin with PREFIX {prefix}: <...>", token
            )
        return self.prefixes.get(prefix + ":", "") + local

    def _outside(self, expected: str) -> Exception:
        word = self.reader.now.text.upper()
        if self.reader.now.kind == "keyword" and word.casefold() in _OUTSIDE:
            advice = "; -k says how many answers" if word == "LIMIT" else ""
            return self.reader.refusal(f"{word} is not answered: {_HAVE}{advice}")
        return self.reader.refusal(f"expected {expected}")
