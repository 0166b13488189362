"""What a shell offers for a word that is being typed: of these, those that begin with it."""

from collections.abc import Callable, Iterable
from pathlib import Path

from modulekge.choices import EXPORT_FORMATS, STUDIES, SYNTHETIC_PATTERNS, TRACKERS
from modulekge.data.benchmarks import SPLITS, WORLD, benchmarks
from modulekge.models.table import ROWS


def _among(names: Iterable[str]) -> Callable[[], list[str]]:
    return lambda: list(names)


models, studies, splits = _among(ROWS), _among(STUDIES), _among(SPLITS)
patterns, trackers, formats = _among(SYNTHETIC_PATTERNS), _among(TRACKERS), _among(EXPORT_FORMATS)


def datasets(incomplete: str) -> list[str]:
    """The data sets known by name, and the files and folders beside the path typed so far."""
    return [WORLD, *benchmarks(), *_paths(incomplete)]


def run_folders() -> list[str]:
    """The run folders under runs/; for any other place, the shell offers its own files."""
    from modulekge.run.listing import find_runs

    return sorted(map(str, find_runs(Path("runs"))))


def _paths(incomplete: str) -> list[str]:
    folder, slash, start = incomplete.rpartition("/")
    try:
        names = sorted(path.name for path in Path(folder + slash).iterdir())
    except OSError:
        return []
    return [f"{folder}{slash}{name}" for name in names if start or not name.startswith(".")]
