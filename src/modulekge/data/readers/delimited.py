"""Tables as text: fields separated by tabs, commas, semicolons or spaces, with or without a header."""

import csv as plain_csv
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from modulekge.data.readers import lines
from modulekge.data.readers.columns import by_number, chosen_places, known_places, undecided
from modulekge.data.readers.headers import Header, Verdict, judged, said
from modulekge.data.readers.lines import numbered_lines, numbered_rows, packed
from modulekge.data.readers.tables import ROLES, distinct, encoded
from modulekge.errors import DataError

_WORDS = {"\t": "tab", ",": "comma", ";": "semicolon", " ": "space"}
_QUOTED = ",;"  # in other files a quote is an ordinary character
_SAMPLE = 32  # lines looked at to tell separators apart
_LOOK = 1000  # rows looked at before a whole file is read to tell a header from a fact


@dataclass(frozen=True)
class Form:
    """How a file is written: its separator, the fields of a line, and where the ones wanted stand."""

    separator: str
    width: int
    places: Mapping[str, int]
    skip: int = 0  # lines before the first row: blank ones, and a header or a count
    header: tuple[str, ...] = ()  # the titles of a first row that was taken for a header
    doubtful: tuple[str, ...] = ()  # those of one that may be a header, and was taken for a fact
    note: str = ""  # what is to be said of the first row, for people
    sparse: bool = False  # whether a cell may be empty

    @property
    def quoted(self) -> bool:
        """Whether a field may stand in quotes."""
        return self.separator in _QUOTED


def two_columns(path: Path, second: str) -> Form:
    """Return the form of a file of ``name text``, where a text may hold anything but the separator."""
    return Form(_by_ending(path), 2, {"name": 0, second: 1})


def form_of(
    path: Path, columns: Sequence[str] | None = None, skip: int = 0, header: Header = ()
) -> Form | None:
    """Find out how a file of triples is written, from its ending and its first lines; None if it is empty.

    The first line is a header if columns are chosen by name, if it says head, relation, tail in known
    words, or if ``header`` makes it one. ``skip`` lines before it are passed over.
    """
    numbered = columns is not None and by_number(columns)
    separator = _separator(path, max(map(int, columns)) if columns and numbered else 3, skip)
    number, fields, bad = _first_row(path, separator, skip)
    if bad and (not fields or columns is not None or header is True):
        raise bad
    if not fields:
        return None
    if columns is not None:
        if header is False and not numbered:
            raise DataError(f"{path}:{number}: columns chosen by name need a header; choose them by number")
        places = chosen_places(f"{path}:{number}", fields, columns)
        titled = not numbered or known_places([fields[i] for i in places.values()]) is not None
    elif len(fields) > 3 and (header is False or known_places(fields) is None):
        raise undecided(f"{path}:{number}", fields)
    else:
        known = None if bad or header is False else known_places(fields)
        places, titled = known or dict(zip(ROLES, range(3), strict=True)), known is not None
    form = Form(separator, max(3, len(fields)), places, skip)
    if header is False or len(fields) < 3:
        return form
    if titled or header is True:
        return replace(form, skip=number)
    titles = tuple(fields[place] for place in places.values())
    if header is None:
        verdict: Verdict = "fact" if bad else _verdict(path, form, number, titles)
    else:
        verdict = "header" if titles == header else "fact"
    form = replace(form, note=said(path, number, titles, verdict))
    if verdict == "header":
        return replace(form, skip=number, header=titles)
    return replace(form, doubtful=titles) if verdict == "doubtful" else form


def _verdict(path: Path, form: Form, number: int, titles: tuple[str, ...]) -> Verdict:
    """Say what the first row is by all others; mostly one of the next repeats a name and makes it a fact."""
    for line, fields in islice(numbered_rows(path, form.separator, form.quoted), _LOOK):
        if line > number and isinstance(fields, list) and len(fields) == form.width:
            names = (fields[place] for place in form.places.values())
            if any(map(str.__eq__, names, titles)):
                return "fact"
    try:
        return judged(titles, read_text(path, form))
    except DataError:  # which is said when the file is read for good
        return "fact"


def _first_row(path: Path, separator: str, skip: int) -> tuple[int, list[str], DataError | None]:
    """Return the first row that can be read, none as [], and what is wrong with a row before it."""
    bad = None
    for number, fields in numbered_rows(path, separator, separator in _QUOTED):
        if isinstance(fields, DataError):
            bad = bad or fields
        elif number > skip:
            return number, fields, bad
    return 0, [], bad


def _by_ending(path: Path) -> str:
    return "," if path.name.lower().removesuffix(".gz").endswith(".csv") else "\t"


def _separator(path: Path, fields: int, skip: int) -> str:
    """Return the separator that the ending names if it cuts the first line, else the one that does."""
    usual = _by_ending(path)
    width = len(_first_row(path, usual, skip)[1])
    if width >= fields or (usual == "\t" and width != 1):
        return usual
    sample = list(islice(_texts(path, skip), _SAMPLE))
    number, first = sample[0] if sample else (0, "")
    found = [separator for separator in _WORDS if _count(first, separator) >= fields]
    for test in (
        lambda s: len({_count(text, s) for _, text in sample}) == 1,
        lambda s: _count(first, s) == fields,
    ):
        found = list(filter(test, found)) if len(found) > 1 else found
    if len(found) > 1:
        both = " and ".join(f"{_WORDS[separator]}s" for separator in found)
        raise DataError(f"{path}:{number}: could be cut at {both} alike; separate the fields with tabs")
    return found[0] if found else usual


def _texts(path: Path, skip: int) -> Iterator[tuple[int, str]]:
    for number, text in numbered_lines(path):
        if number > skip and isinstance(text, str) and text:
            yield number, text


def _count(text: str, separator: str) -> int:
    """Return how many fields a line has if it is cut at this separator."""
    if separator not in _QUOTED:
        return text.count(separator) + 1
    try:
        return len(next(plain_csv.reader([text], delimiter=separator)))
    except plain_csv.Error:
        return 0


def read_text(path: Path, form: Form) -> pa.Table:
    """Read the columns of a form, whose cells are names."""
    table = encoded(_parsed(path, form))
    if _suspicious(table) and (problem := next(text_problems(path, form), None)):
        raise problem
    return table


def _parsed(path: Path, form: Form) -> pa.Table:
    """Read columns as they are: no number is guessed, so ids keep their leading zeros."""
    titles = [str(i) for i in range(form.width)]
    wanted = [titles[place] for place in form.places.values()]
    try:
        # of Arrow: its threads may still read a file of Python's as the program ends, which aborts it
        with pa.OSFile(os.fsencode(path)) as file:
            table = csv.read_csv(
                pa.CompressedInputStream(file, "gzip") if packed(path) else file,
                csv.ReadOptions(
                    column_names=titles,
                    skip_rows_after_names=form.skip,
                    block_size=lines.LONGEST,
                ),
                csv.ParseOptions(
                    delimiter=form.separator,
                    quote_char='"' if form.quoted else False,
                    newlines_in_values=form.quoted,
                ),
                csv.ConvertOptions(column_types=dict.fromkeys(titles, pa.string()), include_columns=wanted),
            )
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError, EOFError) as error:
        if problem := next(text_problems(path, form), None):
            raise problem from None
        if "Empty CSV" not in str(error):
            raise DataError(f"{path}: {error}; is the file whole, and what its name says?") from None
        table = pa.table({title: pa.array([], pa.string()) for title in wanted})
    return table.select(wanted).rename_columns(list(form.places))


def titled_text(path: Path) -> pa.Table:
    """Read all columns of a file whose first row has their titles."""
    separator = _separator(path, 2, 0)
    number, titles, bad = _first_row(path, separator, 0)
    if bad:
        raise bad
    if len(titles) != len(set(titles)):
        raise DataError(f"{path}:{number}: two columns have one title; rename one of them")
    places = {title: i for i, title in enumerate(titles)}
    return _parsed(path, Form(separator, len(titles), places, number, sparse=True))


def _suspicious(table: pa.Table) -> bool:
    """Say whether a name is empty or holds NUL, or a line end: what a quote left open runs into.

    Arrow would look for pandas to understand a word to compare with, which takes half a second.
    """
    return any(pc.any(pc.match_substring_regex(names, "^$|[\\x00\n]")).as_py() for names in distinct(table))


def text_problems(path: Path, form: Form) -> Iterator[DataError]:
    """Yield what is wrong with each line, slowly and surely."""
    for number, fields in numbered_rows(path, form.separator, form.quoted):
        if isinstance(fields, DataError):
            yield fields
        elif number <= form.skip:
            continue
        elif len(fields) != form.width:
            yield _miscounted(f"{path}:{number}", form, fields)
        else:
            for name, place in form.places.items():
                if not fields[place] and not form.sparse:
                    yield DataError(f"{path}:{number}: the {name} is empty; fill it in or remove the line")


def _miscounted(place: str, form: Form, fields: list[str]) -> DataError:
    """Say how many fields there should be, and whether another separator would give as many."""
    text = form.separator.join(fields)
    others = [word for s, word in _WORDS.items() if s != form.separator and _count(text, s) == form.width]
    none = " or ".join(name for name, place in form.places.items() if place >= len(fields))
    hint = f", so no {none}" if none else ""
    if others:
        hint = f"; cut at {others[0]}s it has {form.width}: separate all lines alike"
    elif len(fields) == 2 and form.width == 3:
        hint += "; a table of pairs is read by its first column: --columns '*'"
    what = f" ({', '.join(form.places)})" if len(form.places) == form.width else ""
    return DataError(
        f"{place}: expected {form.width} {_WORDS[form.separator]}-separated fields{what}, "
        f"found {len(fields)}{hint}"
    )
