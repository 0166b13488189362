"""The data sets that are known by name, and where they are looked for."""

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from modulekge.errors import DataError, unknown

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
WORLD = "world"
DATA_VARIABLE = "MODULEKGE_DATA"
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Benchmark:
    """A public data set: its published size, its licence, and where its files are."""

    name: str
    entities: int
    relations: int
    triples: dict[str, int]
    licence: str
    files: tuple[dict[str, Any], ...]


@cache
def benchmarks() -> dict[str, Benchmark]:
    """Return the registered benchmarks by name."""
    rows = json.loads((HERE / "registry.json").read_text("utf-8"))
    return {name: Benchmark(name, **{**row, "files": tuple(row["files"])}) for name, row in rows.items()}


def name_or_path(where: str | Path) -> str:
    """Return a registered name as it is registered, whatever its case, or the path of a folder or file."""
    if str(where).casefold() == WORLD:
        return WORLD
    if benchmark := named(str(where)):
        return benchmark.name
    if Path(where).exists():
        return str(where)
    if os.sep in str(where) or Path(where).suffix:
        raise DataError(f"{where}: no such file or folder; check the path")
    raise unknown("data set", str(where), [WORLD, *benchmarks()], "'modulekge data list' names them all")


def is_known(name: str) -> bool:
    """Whether a name is that of a graph whose size is known, which a folder of this name has to have."""
    return name.casefold() == WORLD or named(name) is not None


def named(name: str) -> Benchmark | None:
    """Return the benchmark of this name, whatever its case."""
    known = {benchmark.casefold(): benchmark for benchmark in benchmarks()}
    return benchmarks()[known[name.casefold()]] if name.casefold() in known else None


def local_folder(benchmark: Benchmark, data_dir: str | Path | None = None) -> Path | None:
    """Return the first local folder of this name that holds a train split."""
    variable = os.environ.get(DATA_VARIABLE, "").split(os.pathsep)
    for place in (data_dir, *variable, ".", cache_dir()):
        for folder in sorted(Path(place).glob("*")) if place else ():
            if folder.name.casefold() == benchmark.name.casefold() and any(folder.glob("train*")):
                return folder
    return None


def cache_dir() -> Path:
    """Return where downloads are kept: modulekge in the user's cache."""
    place = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111, no HOME is no error
    return Path(place) / "modulekge"
