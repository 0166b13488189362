"""Words of a question with their places, read one after the other."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from modulekge.answers.compound.formula import Variable, Word
from modulekge.errors import PointedError, QuestionError

LONGEST = 10_000  # characters of a question
_DEEPEST = 50  # brackets and nots inside each other


@dataclass(frozen=True)
class Token:
    """A word, its kind, and where it stands."""

    kind: str
    text: str
    start: int
    end: int


@dataclass
class Reader:
    """Tokens of a text, and the place that was reached."""

    text: str
    tokens: Sequence[Token]
    place: int = 0
    _depth: int = field(default=0, init=False)

    @classmethod
    def of(cls, text: str, pattern: re.Pattern[str], keywords: Sequence[str]) -> "Reader":
        """Cut a text into words by a pattern with a group for each kind; keywords are known in any case."""
        if len(text) > LONGEST:
            raise QuestionError(f"the question has {len(text):,} characters; ask one of {LONGEST:,} at most")
        tokens, place = [], 0
        while place < len(text):
            found = pattern.match(text, place)
            if found is None:
                what = (
                    "a quote that does not end" if text[place] in "\"'" else "a sign that means nothing here"
                )
                raise PointedError(f"{what}; see 'modulekge ask --help'", text, place, place + 1)
            kind, word = str(found.lastgroup), found[0]
            if kind == "word" and word.casefold() in keywords:
                kind = "keyword"
            if kind != "space":
                tokens.append(Token(kind, word, place, found.end()))
            place = found.end()
        return cls(text, [*tokens, Token("end", "", len(text.rstrip()), len(text.rstrip()) + 1)])

    @property
    def now(self) -> Token:
        """The next token."""
        return self.tokens[self.place]

    @property
    def before(self) -> Token | None:
        """The token that was taken last."""
        return self.tokens[self.place - 1] if self.place else None

    def take(self) -> Token:
        """Return the next token, and go on."""
        token = self.now
        self.place += token.kind != "end"
        return token

    def take_if(self, word: str) -> bool:
        """Go on if the next token is this keyword or sign."""
        if self.now.kind in ("keyword", "sign") and self.now.text.casefold() == word.casefold():
            self.place += 1
            return True
        return False

    def variable(self) -> Variable | None:
        """Return the variable that comes next, and go on; None where there is none."""
        if self.now.kind != "variable":
            return None
        token = self.take()
        return Variable(token.text[1:], start=token.start, end=token.end)

    def no_variable(self) -> None:
        """Refuse a variable where a relation is to come."""
        if self.now.kind == "variable":
            raise self.refusal("expected a relation by name; only entities can be variables")

    def refusal(self, finding: str, at: Token | Word | Variable | None = None) -> PointedError:
        """Return an error that points at a word, else at the next one."""
        place = at or self.now
        return PointedError(finding, self.text, place.start, place.end)

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Go into a bracket; too many are refused."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.refusal(f"more than {_DEEPEST} brackets inside each other; ask something simpler")
        yield
        self._depth -= 1


def unquoted(text: str) -> str:
    r"""Return what stands in quotes; ``\"`` is a quote.

    >>> unquoted('"a \\"b\\""')
    'a "b"'
    """
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
