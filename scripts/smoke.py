"""Install a wheel or an sdist where nothing else is, and use it: from its version to answers and the page.

The page needs an extra: the command that the program names for it is run as it stands.

``python scripts/smoke.py dist/*.whl``; with ``--lowest``, at the lower ends of all its ranges. Needs nothing
but Python and an index of packages, and works with any Python that the package allows.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
RANGE = re.compile(r"([\w-]+)>=([\d.]+)")
QUICK = ("--set", "train.epochs=1", "--set", "model.k=8", "--out", "run")
PAGE = """
from importlib import metadata, resources
page = [file.name for file in (resources.files("modulekge.server") / "page").iterdir()]
assert "index.html" in page, page
assert (resources.files("modulekge") / "py.typed").is_file()
assert any("LICENSE" in str(file) for file in metadata.files("modulekge"))
from modulekge.server.http import make_app
"""
RECIPES = """
from importlib import resources
print(*(f"{folder.name}/{file.name}" for folder in (resources.files("modulekge") / "recipes").iterdir()
        for file in folder.iterdir()))
"""


def lowest() -> list[str]:
    """Return what the ranges of pyproject.toml begin with, as ``torch==2.8``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["serve"]]
    return ["{}=={}".format(*RANGE.match(each).groups()) for each in wanted]


def smoke(package: Path, pins: list[str]) -> dict[str, str | int]:
    """Install a package into a new environment and go through what a user does first."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        venv.create(place / "env", with_pip=True)
        program, python = place / "env" / "bin" / "modulekge", place / "env" / "bin" / "python"

        def run(*command: str | Path) -> str:
            done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{command}: {done.stderr[-3000:]}"
            return done.stdout

        begun = time.perf_counter()
        run(python, "-m", "pip", "install", "--quiet", package.resolve(), *pins)
        seconds = round(time.perf_counter() - begun)
        version = run(program, "--version").strip()
        run(program, "--help")
        run(program, "train", "--help")
        run(program, "data", "info", "world", "--json")
        run(program, "train", "world", *QUICK)
        answers = run(
            program, "predict", "run", "--head", "France", "--relation", "borders", "-k", "3", "--json"
        )
        assert len([json.loads(line) for line in answers.splitlines()]) == 3
        if not pins:  # which name the packages of the extra too
            refused = subprocess.run([program, "serve", "run"], cwd=place, capture_output=True, text=True)
            assert refused.returncode == 2, refused
            run("sh", "-c", refused.stderr.partition("install it: ")[2])
        run(python, "-c", PAGE)
        recipes = {f"{path.parent.name}/{path.name}" for path in (ROOT / "recipes").glob("*/*.toml")}
        assert set(run(python, "-c", RECIPES).split()) == recipes, "recipes are missing"
        found = run(python, "-m", "pip", "list", "--format", "json")
    return {
        "modulekge": version,
        "seconds": seconds,
        **{each["name"]: each["version"] for each in json.loads(found)},
    }


def main() -> None:
    """Try each package; print what each was tried with, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="+", type=Path)
    parser.add_argument("--lowest", action="store_true")
    asked = parser.parse_args()
    for package in asked.packages:
        used = smoke(package, lowest() if asked.lowest else [])
        print(json.dumps({"package": package.name, "python": sys.version.split()[0], "with": used}))


if __name__ == "__main__":
    main()
