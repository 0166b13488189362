"""Errors that say the place, the finding and the fix, each in one line."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from modulekge.suggest import nearest

Value = TypeVar("Value")


class ModulekgeError(Exception):
    """What a user can mend: the command line prints it as one line and exits with 2."""


class DataError(ModulekgeError):
    """A file of triples, labels or descriptions that cannot be read as one."""


class ConfigError(ModulekgeError):
    """A setting that does not exist or cannot have this value."""


class UnknownNameError(ModulekgeError):
    """A name (of a model, data set, entity, relation) that nothing bears."""


class QuestionError(ModulekgeError):
    """A question that cannot be answered as it was put."""


class PointedError(QuestionError):
    """A question with a word in it that is wrong, at which a caret points.

    >>> print(PointedError("unknown entity 'Frnce'", "Frnce borders ?x", 0, 5))
    unknown entity 'Frnce'
      Frnce borders ?x
      ^^^^^
    """

    field = "question"  # of a request that holds it

    def __init__(self, finding: str, text: str, start: int, end: int) -> None:
        self.finding, self.start = finding, start
        line_start = text.rfind("\n", 0, start) + 1
        line = text[line_start:].partition("\n")[0]
        gap = "".join("\t" if char == "\t" else " " for char in line[: start - line_start])
        self.pointer = f"  {line}\n  {gap}{'^' * max(1, min(end - start, len(line) - (start - line_start)))}"
        super().__init__(f"{finding}\n{self.pointer}")


class PointedNameError(PointedError, UnknownNameError):
    """A question with a name in it that nothing bears."""


class RunError(ModulekgeError):
    """A run folder that is missing something or is not what it says."""


class EndedError(ConfigError):
    """A run that has had all the training that its settings ask for."""


class TrainingError(ModulekgeError):
    """Training that cannot go on."""


class LostError(ModulekgeError):
    """One of several processes that is no longer there."""


def unknown(kind: str, word: str, known: Iterable[str], fix: str) -> UnknownNameError:
    """Say that no ``kind`` is called ``word``, with the nearest names, else how to list them all."""
    near = nearest(word, known)
    advice = f"did you mean {' or '.join(near)}?" if near else fix
    return UnknownNameError(f"unknown {kind} {word!r}; {advice}")


def one_of(kind: str, word: str, known: Mapping[str, Value]) -> Value:
    """Return the ``kind`` that is called ``word``; where none is, say which there are."""
    if word not in known:
        raise unknown(kind, word, known, f"choose one of {', '.join(known)}")
    return known[word]
