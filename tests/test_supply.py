"""What the package needs: ranges with lower ends, and a page of licences that names all of it."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "scripts"))

from list_licences import DEVELOPERS, PAGE, needed  # noqa: E402
from smoke import lowest  # noqa: E402

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("word", PROJECT["dependencies"])
def test_every_dependency_has_a_lower_end(word):
    assert re.match(r"[\w-]+>=\d", word)


def test_the_lowest_versions_are_those_of_the_ranges():
    assert f"torch=={re.search('torch>=([0-9.]+)', str(PROJECT['dependencies']))[1]}" in lowest()
    assert len(lowest()) == len(PROJECT["dependencies"]) + len(PROJECT["optional-dependencies"]["serve"])


def test_the_page_of_licences_names_what_is_needed_and_a_licence_of_each():
    rows = re.findall(r"^\| ([\w-]+) \| (?:always|extra `(\w+)`) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    listed = {(name, extra or "always") for name, extra, _ in rows}
    assert listed == {(name, group) for group, names in needed().items() for name in names}
    assert not {group for _, group in listed} & set(DEVELOPERS)
    assert all(licence and licence != "says none" for *_, licence in rows)


def test_the_sdist_holds_what_its_users_need():
    kept = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"]
    assert all((ROOT / name).exists() for name in kept["only-include"])
    assert {"src", "tests", "LICENSE", "SECURITY.md"} <= set(kept["only-include"])
