"""Which three columns of a table are head, relation and tail."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TypeVar

from modulekge.data.readers.tables import ROLES, Graph
from modulekge.errors import DataError
from modulekge.suggest import nearest

Table = TypeVar("Table")

COLUMNS = "--columns (columns= in Python)"  # what chooses them
BETWEEN = ";|,"  # what may stand between the values of a cell
EVERY = "*"  # after the column of heads, or for itself after the first one: each other one is a relation
# A column that is a relation, and what is between values in its cells
_CHOSEN = re.compile(r"\*(.+?)(?:\[(.+)\])?")
_COMMA = re.compile(r",(?![^\[]*\])")  # between columns, not in those brackets
_LETTERS = (("h", "r", "t"), ("s", "p", "o"))
_WORDS = {
    "head": "head subject subj source src from start",
    "relation": "relation rel predicate pred property relationship edge type label link",
    "tail": "tail object obj target dst to end",
}
_ROLE = {word: role for role, words in _WORDS.items() for word in words.split()}
_SUFFIX = re.compile(r"[ _-]?(id|name|label|iri|uri|type)$")


class NoColumnError(DataError):
    """A column that was chosen and is not there."""

    def __init__(self, place: str, column: str, titles: Sequence[str]) -> None:
        self.column, self.near = column, nearest(column, titles)
        advice = (
            f"did you mean {' or '.join(self.near)}?" if self.near else f"the columns are {listed(titles)}"
        )
        super().__init__(f"{place}: no column {column!r}; {advice}")


def known_places(titles: Sequence[str]) -> dict[str, int] | None:
    """Return where head, relation and tail stand if three titles say so in known words, or more in these."""
    words = tuple(title.strip().casefold() for title in titles)
    if all(words.count(role) == 1 for role in ROLES):
        return {role: words.index(role) for role in ROLES}
    if words in _LETTERS:
        return dict(zip(ROLES, range(3), strict=True))
    found = {_ROLE.get(word) or _ROLE.get(_SUFFIX.sub("", word)): i for i, word in enumerate(words)}
    return {role: found[role] for role in ROLES} if len(words) == 3 and set(found) == set(ROLES) else None


def named_columns(columns: str | Sequence[str | int] | None) -> list[str] | None:
    """Return columns as they were chosen: names or numbers, in a list or as text with commas; None: none."""
    if not columns:
        return None
    return _COMMA.split(columns) if isinstance(columns, str) else [str(column) for column in columns]


def is_wide(columns: Sequence[str] | None) -> bool:
    """Say whether a column of heads is chosen, or the first is, and all or some others are relations."""
    if not columns or (len(columns) == 1 and not columns[0].startswith(EVERY)):
        return False
    return all(column.startswith(EVERY) for column in columns[1:])


def read_each(
    tables: Sequence[Table],
    read: Callable[[Table, Sequence[str] | None], Graph],
    columns: Sequence[str] | None,
) -> dict[int, Graph]:
    """Read tables that are one graph, by their place; a relation's column may be missing, but not in all."""
    graphs: dict[int, Graph] = {}
    absent: dict[str, list[NoColumnError]] = defaultdict(list)
    for i, table in enumerate(tables):
        chosen = columns
        while chosen is columns or is_wide(chosen):  # else nothing of this table is asked for
            try:
                graphs[i] = read(table, chosen)
                break
            except NoColumnError as error:
                absent[error.column].append(error)
                rest = [each for each in chosen or () if error.column not in relations_of([each])]
                if len(rest) == len(chosen or ()):  # it names the heads
                    raise
                if len(absent[error.column]) == len(tables):
                    raise max(absent[error.column], key=lambda each: len(each.near)) from None
                chosen = rest
    return graphs


def head_of(columns: Sequence[str]) -> str:
    """Return which column of a wide table has the heads; nothing: the first."""
    return "" if columns[0].startswith(EVERY) else columns[0]


def relations_of(columns: Sequence[str], titles: Sequence[str] = ()) -> dict[str, str]:
    """Return the columns of a wide table that are chosen by name, and what is between values in their cells.

    ``titles`` are those of the table, where they are known: one may have brackets in it.
    """
    found: dict[str, str] = {}
    for column in columns:
        if chosen := _CHOSEN.fullmatch(column):
            whole = column.removeprefix(EVERY)
            found.update({whole: ""} if whole in titles else {chosen[1]: chosen[2] or ""})
    return found


def by_number(columns: Sequence[str]) -> bool:
    """Say whether columns are chosen by number rather than by name."""
    numbered = all(column.isdecimal() for column in columns)
    distinct = {column.lstrip("0") if numbered else column for column in columns}
    if len(columns) != 3 or not all(columns) or len(distinct) != 3:
        raise DataError(
            f"columns {','.join(columns)!r}: expected three, of head, relation and tail, "
            "such as subject,predicate,object or 1,3,2"
        )
    return numbered


def chosen_places(place: str, titles: Sequence[str], columns: Sequence[str]) -> dict[str, int]:
    """Return where the chosen columns stand among the titles; ``place`` is said where one does not."""
    numbered = by_number(columns)
    found = [place_of(place, titles, column, numbered) for column in columns]
    return dict(zip(ROLES, found, strict=True))


def place_of(place: str, titles: Sequence[str], column: str, numbered: bool) -> int:
    """Return where a column stands that is chosen by name, or by number from 1."""
    if numbered:
        if not 1 <= int(column) <= len(titles):
            raise DataError(f"{place}: no column {column}; there are {len(titles)}, counted from 1")
        return int(column) - 1
    if column not in titles:
        raise NoColumnError(place, column, titles)
    if list(titles).count(column) > 1:
        raise DataError(f"{place}: more than one column {column!r}; choose by number, such as 1,3,2")
    return list(titles).index(column)


def titled_places(place: str, titles: Sequence[str], columns: Sequence[str] | None) -> dict[str, int]:
    """Return where head, relation and tail stand in a table whose columns have titles for certain."""
    if columns is not None:
        return chosen_places(place, titles, columns)
    if (found := known_places(titles)) is None:
        raise undecided(place, titles)
    return found


def undecided(place: str, titles: Sequence[str]) -> DataError:
    """Say what the columns are and how to choose three of them."""
    if not titles:
        return DataError(f"{place}: no columns; expected three, of head, relation and tail")
    some = titles[len(titles) // 2]
    return DataError(
        f"{place}: which of the {len(titles)} columns {listed(titles)} are head, relation and tail? "
        f"choose with {COLUMNS}, by name or number, such as 1,2,3; where each column is a property, name the "
        f"one that says of what: '{titles[0]},{EVERY}', or some: '{titles[0]},{EVERY}{some}'; "
        f"'{EVERY}{some}[;]' makes a fact of each value between semicolons"
    )


def listed(titles: Sequence[str]) -> str:
    """Return the first titles, numbered, each cut to a length that can be read."""
    shown = [f"{i} {title if len(title) <= 40 else title[:37] + '...'}" for i, title in enumerate(titles, 1)]
    return ", ".join(shown[:12]) + (", ..." if len(shown) > 12 else "")
