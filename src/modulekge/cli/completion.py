"""What a shell offers for a word that is being typed: of these, those that begin with it."""

from pathlib import Path

from modulekge.choices import EXPORT_FORMATS, STUDIES, SYNTHETIC_PATTERNS, TRACKERS
from modulekge.data.benchmarks import SPLITS, WORLD, benchmarks
from modulekge.models.table import ROWS


def models() -> list[str]:
    """The models by name."""
    return list(ROWS)


def datasets(incomplete: str) -> list[str]:
    """The data sets known by name, and the files and folders beside the path typed so far."""
    return [WORLD, *benchmarks(), *_paths(incomplete)]


def run_folders() -> list[str]:
    """The run folders under runs/; for any other place, the shell offers its own files."""
    from modulekge.run.listing import find_runs

    return sorted(map(str, find_runs(Path("runs"))))


def studies() -> list[str]:
    """The studies by name."""
    return list(STUDIES)


def splits() -> list[str]:
    """The splits of a data set."""
    return list(SPLITS)


def patterns() -> list[str]:
    """The structures of a synthetic graph."""
    return list(SYNTHETIC_PATTERNS)


def trackers() -> list[str]:
    """The trackers by name."""
    return list(TRACKERS)


def formats() -> list[str]:
    """The formats a run is exported to."""
    return list(EXPORT_FORMATS)


def _paths(incomplete: str) -> list[str]:
    folder, slash, start = incomplete.rpartition("/")
    try:
        names = sorted(path.name for path in Path(folder + slash).iterdir())
    except OSError:
        return []
    return [f"{folder}{slash}{name}" for name in names if start or not name.startswith(".")]
