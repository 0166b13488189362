"""The small language of compound questions: "?c where France borders ?x and ?x uses_currency ?c"."""

import re
from dataclasses import dataclass

from modulekge.answers.compound import sparql
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
from modulekge.answers.compound.tokens import Reader, unquoted

_TOKENS = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<variable>\?\w+)
  | (?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<sign>[()])
  | (?P<word>[^\s()"'?][^\s()]*)
    """,
    re.VERBOSE,
)
_KEYWORDS = ("where", "and", "or", "not")
_EXAMPLE = "?c where France borders ?x and ?x uses_currency ?c"


def parse(text: str) -> CompoundQuestion:
    """Read a question in the small language, or in SPARQL where it begins with SELECT or PREFIX.

        question = variable "where" either
        either   = both ("or" both)*
        both     = one ("and" one)*
        one      = "not" one | "(" either ")" | term name term
        term     = variable | name

    A variable is a word with a question mark before it. A name with spaces, brackets or quotes in it, or one
    that is a keyword, stands in quotes.

    >>> parse("?x where France borders ?x").answer.name
    'x'
    """
    if re.match(r"\s*(select|prefix|base|ask|construct|describe)\b", text, re.IGNORECASE):
        return sparql.parse(text)
    return _Parser(Reader.of(text, _TOKENS, _KEYWORDS)).question()


@dataclass(frozen=True)
class _Parser:
    reader: Reader

    def question(self) -> CompoundQuestion:
        reader = self.reader
        answer = reader.variable()
        if answer is None:
            raise reader.refusal(f"expected a variable, what is asked for, as in: {_EXAMPLE}")
        if not reader.take_if("where"):
            raise reader.refusal(f"expected 'where', as in: {_EXAMPLE}")
        where = self.either()
        if reader.now.kind != "end":
            raise reader.refusal(self._surplus())
        return CompoundQuestion(answer, where, reader.text)

    def either(self) -> Formula:
        parts = [self.both()]
        while self.reader.take_if("or"):
            parts.append(self.both())
        return any_of(parts)

    def both(self) -> Formula:
        parts = [self.one()]
        while self.reader.take_if("and"):
            parts.append(self.one())
        return all_of(parts)

    def one(self) -> Formula:
        reader = self.reader
        with reader.deeper():
            if reader.take_if("not"):
                return Not(self.one())
            if reader.take_if("("):
                inner = self.either()
                if not reader.take_if(")"):
                    raise reader.refusal(self._surplus("')'"))
                return inner
            head = self._term("an entity or a variable, which a link starts with")
            reader.no_variable()
            relation = self._name("a relation")
            return Triple(head, relation, self._term("an entity or a variable, which a link ends with"))

    def _term(self, expected: str) -> Word | Variable:
        return self.reader.variable() or self._name(expected)

    def _name(self, expected: str) -> Word:
        token = self.reader.now
        if token.kind == "quoted" or token.kind == "word":
            text = unquoted(token.text) if token.kind == "quoted" else token.text
            self.reader.take()
            return Word(text, token.start, token.end)
        hint = "; a name that is a keyword goes in quotes" if token.kind == "keyword" else ""
        raise self.reader.refusal(f"expected {expected}{hint}")

    def _surplus(self, closing: str = "the end") -> str:
        reader = self.reader
        before = reader.before
        if reader.now.kind == "word" and before is not None and before.kind == "word":
            joined = f'"{before.text} {reader.now.text}"'
            return f"expected 'and', 'or' or {closing}; a name of several words goes in quotes: {joined}"
        return f"expected 'and', 'or' or {closing}"
