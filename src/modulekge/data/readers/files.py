"""One file of triples in any known format, told by its ending, else by how it starts."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from modulekge.data.readers.columns import is_wide
from modulekge.data.readers.delimited import form_of, read_text, text_problems
from modulekge.data.readers.headers import Header
from modulekge.data.readers.lines import numbered_lines, starts_with
from modulekge.data.readers.rdf import read_rdf
from modulekge.data.readers.records import json_records, json_rows, read_json, read_parquet
from modulekge.data.readers.tables import Graph
from modulekge.data.readers.wide import melted_records, read_wide
from modulekge.errors import DataError

Format = Literal["text", "json", "parquet", "N_TRIPLES", "TURTLE"]
_FORMATS: dict[str, Format] = {
    ".tsv": "text",
    ".csv": "text",
    ".del": "text",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".nt": "N_TRIPLES",
    ".ttl": "TURTLE",
}
ENDINGS = ("", ".txt", *_FORMATS)
TEXT_ENDINGS = tuple(ending for ending in ENDINGS if _FORMATS.get(ending, "text") == "text")
_PARQUET = b"PAR1"
_N_TRIPLE = re.compile(r"\s*(<[^>\s]*>|_:\S+)\s+<[^>\s]*>\s+\S.*\.\s*(#.*)?")
_TURTLE = re.compile(r"\s*(@prefix|@base|prefix|base)\s.*<[^>\s]*>", re.IGNORECASE)


def read_file(path: Path, columns: Sequence[str] | None = None, header: Header = ()) -> Graph:
    """Read a file of triples; three ``columns``, by name or number, where it has more or other ones.

    ``header`` says whether the first row of a text file is one.
    """
    found = format_of(path)
    if isinstance(header, bool) and found != "text":
        raise DataError(f"{path}: only tables as text have a header to choose; leave --header out")
    if columns is not None and is_wide(columns) and found in ("text", "parquet"):
        graph = read_wide(path, found, columns)
    elif columns is not None and is_wide(columns) and found == "json":
        graph = melted_records(str(path), json_records(path), columns)
    elif found == "N_TRIPLES" or found == "TURTLE":
        if columns is not None:
            raise DataError(f"{path}: RDF has no columns to choose; leave --columns out")
        graph = read_rdf(path, found)
    elif found == "parquet":
        graph = Graph((read_parquet(path, columns),))
    elif found == "json":
        graph = Graph((read_json(path, columns),))
    else:
        form = form_of(path, columns, header=header)
        graph = Graph(())
        if form:
            said = (form.note,) if form.note else ()
            graph = Graph((read_text(path, form),), notes=said, header=form.header, doubtful=form.doubtful)
    if not graph.splits or graph.splits[0].num_rows == 0:
        notes = "".join(f" ({note})" for note in graph.notes)
        raise DataError(f"{path}: no triples; each line should hold head, relation and tail{notes}")
    return graph


def format_of(path: Path) -> Format:
    """Return the format that the ending names, else the one that the first bytes and line look like."""
    name = path.name.lower().removesuffix(".gz")
    if found := _FORMATS.get(Path(name).suffix):
        return found
    if starts_with(path, _PARQUET):
        return "parquet"
    first = next((text for _, text in numbered_lines(path) if text), "")
    if isinstance(first, DataError):
        return "text"
    if first.lstrip()[:1] in ("{", "[") and _is_json(first):
        return "json"
    if _TURTLE.fullmatch(first.rstrip(" .")):
        return "TURTLE"
    return "N_TRIPLES" if _N_TRIPLE.fullmatch(first) else "text"


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


def problems(
    path: Path, columns: Sequence[str] | None = None, limit: int = 100, header: Header = ()
) -> Iterator[str]:
    """Yield what is wrong with a file of triples, line by line, ``limit`` findings at most.

    Each says the place, the finding and the fix. Of RDF and Parquet the first finding only is known.
    """
    return islice((str(problem) for problem in _problems(path, columns, header)), limit)


def _problems(path: Path, columns: Sequence[str] | None, header: Header) -> Iterator[DataError]:
    try:
        found = format_of(path)
        if is_wide(columns):
            read_file(path, columns, header)
        elif found == "json":
            yield from (row for row in json_rows(path, columns) if isinstance(row, DataError))
        elif found == "text" and (form := form_of(path, columns, header=header)):
            yield from text_problems(path, form)
        else:
            read_file(path, columns, header)
    except DataError as error:
        yield error
