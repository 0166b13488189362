"""Where the triples of a file stand, for messages about one of them."""

from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path

from modulekge.data.readers.columns import is_wide
from modulekge.data.readers.delimited import form_of
from modulekge.data.readers.files import format_of
from modulekge.data.readers.headers import Header
from modulekge.data.readers.lines import numbered_lines, numbered_rows


def places(path: Path, columns: Sequence[str] | None = None, header: Header = ()) -> Iterator[str]:
    """Yield the place of each triple that ``read_file`` reads, in its order."""
    found = "" if is_wide(columns) else format_of(path)
    if found == "text" and (form := form_of(path, columns, header=header)):
        rows = numbered_rows(path, form.separator, form.quoted)
        yield from (f"{path}:{number}" for number, _ in rows if number > form.skip)
    elif found == "json":
        yield from (f"{path}:{number}" for number, text in numbered_lines(path) if str(text).strip())
    else:
        yield from (f"{path}: triple {number}" for number in count(1))


def place(path: Path, columns: Sequence[str] | None, i: int, header: Header = ()) -> str:
    """Say where the i-th triple of a file stands; of a folder, the folder alone."""
    return str(path) if path.is_dir() else next(islice(places(path, columns, header), i, None))
