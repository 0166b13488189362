"""Write docs/licences.md: what the package needs, by extra, and the licence that each says it has."""

import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from modulekge.installation import DEVELOPERS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "licences.md"
NAME = re.compile(r"[\w.-]+")
HEAD = """# Licences of dependencies

Which licences come with an installation. modulekge itself is under Apache-2.0 and contains no code of others;
these packages, and what they need in turn, are installed beside it. `python scripts/list_licences.py` writes
this page from what each says of itself. The graph `world` is of GeoNames and CLDR: `world/ATTRIBUTION.md`.
"""


def needed() -> dict[str, list[str]]:
    """Return the packages that the library needs, and those of each extra that a user installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {
        name: words for name, words in project["optional-dependencies"].items() if name not in DEVELOPERS
    }
    groups = {"always": project["dependencies"], **extras}
    return {
        name: [NAME.match(word)[0] for word in words if not word.startswith(f"{project['name']}[")]
        for name, words in groups.items()
    }


def licence(name: str) -> str:
    """Return the licence that an installed package names: its expression, else its classes or its field."""
    about = metadata.metadata(name)
    classed = [
        line.split(" :: ")[-1] for line in about.get_all("Classifier", []) if line.startswith("License ::")
    ]
    field = (about.get("License") or "").strip().splitlines()
    return about.get("License-Expression") or ", ".join(classed) or (field[0] if field else "says none")


def lines() -> Iterator[str]:
    """Yield the page, line by line."""
    yield HEAD
    yield "| package | needed | licence |"
    yield "|---|---|---|"
    for group, names in needed().items():
        for name in names:
            yield f"| {name} | {group if group == 'always' else f'extra `{group}`'} | {licence(name)} |"


if __name__ == "__main__":
    PAGE.write_text("\n".join(lines()) + "\n")
