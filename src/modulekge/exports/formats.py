"""Out to other tools: a run as files that they read, written whole or not at all."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

from modulekge.errors import ConfigError, RunError, one_of
from modulekge.exports.hub import write_hub
from modulekge.exports.index import write_index
from modulekge.exports.rdf import SYNTAXES, write_links
from modulekge.exports.vectors import write_numpy, write_parquet, write_word2vec
from modulekge.run.files import whole
from modulekge.run.run import Run, load


@dataclass(frozen=True)
class Format:
    """How a run is written: to a path where nothing is yet, with its own options; returns what to know."""

    write: Callable[..., str]
    about: str
    suffixes: tuple[str, ...] = ()  # that name it; what is written as a folder has none


FORMATS = {
    "numpy": Format(write_numpy, "folder of arrays, names and how to score with them"),
    "parquet": Format(write_parquet, "file of names, labels and vectors", (".parquet",)),
    "word2vec": Format(write_word2vec, "text file of names and vectors", (".vec", ".w2v")),
    "hub": Format(write_hub, "folder for the Hugging Face hub, which loads as a run"),
    "index": Format(write_index, "folder with a nearest-neighbour index for link prediction"),
    "rdf": Format(write_links, "file of new links, of a question or of the whole graph", tuple(SYNTAXES)),
}


@dataclass(frozen=True)
class Export:
    """What was written, where, and what to know of it."""

    path: Path
    format: str
    note: str


def export(run: Run | str | Path, target: str | Path, to: str | None = None, **options: Any) -> Export:
    """Write a run for other tools: to numpy, parquet, word2vec, hub, index or rdf.

    The ending of the target names the format where it can: .parquet, .vec, .nt, .ttl. Formats have options:
    ``without_facts`` (hub); ``expansion`` (index); ``relation``, ``head``, ``tail``, ``k``, ``prefix`` (rdf).

    >>> modulekge.export("runs/demo", "vectors.parquet")  # doctest: +SKIP
    >>> modulekge.export("runs/demo", "shared", to="hub", without_facts=True)  # doctest: +SKIP
    """
    target = Path(target)
    name = to or _named_by(target)
    write = one_of("format", name, FORMATS).write
    takes = list(signature(write).parameters)[2:]
    for option in options:
        if option not in takes:
            known = f"it takes {', '.join(takes)}" if takes else "it takes no options"
            raise ConfigError(f"export to {name}: no option {option}; {known}")
    if target.exists() or target.is_symlink():
        raise RunError(f"{target}: exists already; remove it or choose another target")
    run = run if isinstance(run, Run) else load(run)
    with whole(target) as path:
        note = write(run, path, **options)
    return Export(target, name, note)


def _named_by(target: Path) -> str:
    for name, known in FORMATS.items():
        if target.suffix in known.suffixes:
            return name
    endings = ", ".join(suffix for known in FORMATS.values() for suffix in known.suffixes)
    raise ConfigError(
        f"{target}: the format cannot be told from the name; end it in {endings}, "
        f"or name one of {', '.join(FORMATS)}"
    )
