"""This installation: what is there of it, and how to get the rest. Nothing here imports PyTorch."""

import os
import platform
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from modulekge.version import __version__

NAME = "modulekge"
SOURCE = Path(__file__).parent
DEVELOPERS = ("test", "lint", "docs")  # extras that only those who change the library install
_REQUIREMENT = re.compile(r"([\w.-]+)[^;]*(?:;.*extra == ['\"](\w+)['\"])?")

Level = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what was found, and what to do about it, if anything.

    Without what is a ``problem`` nothing can be trained or asked; a ``note`` tells what more there could be.
    """

    name: str
    found: str
    advice: str = ""
    level: Level = "ok"


def to_install(extra: str) -> str:
    """Return the command that brings an extra of this package, as it can be typed here.

    pip knows an installed package by its name, on whatever index it is or is not; a clone that was never
    installed has to be named by its folder.
    """
    if _installed():
        return f"{pip()} install {shlex.quote(f'{NAME}[{extra}]')}"
    return f"{pip()} install --editable {shlex.quote(f'{SOURCE.parents[1]}[{extra}]')}"


def required() -> dict[str, list[str]]:
    """Return the packages that this one needs under "", and those of each extra for users."""
    groups: dict[str, list[str]] = {"": []}
    for line in metadata.requires(NAME) or () if _installed() else _written():
        if found := _REQUIREMENT.match(line):
            package, extra = found[1], found[2] or ""
            if extra not in DEVELOPERS and package != NAME:
                groups.setdefault(extra, []).append(package)
    return groups


def package_checks() -> Iterator[Check]:
    """Look at Python, at each package that is needed, and at each extra."""
    yield Check(NAME, f"{__version__}, in {SOURCE}")
    yield Check("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    needed = required()
    for package in needed.pop(""):
        if version := _version(package):
            yield Check(package, version)
        else:
            yield Check(package, "missing", f"{pip()} install {package}", "problem")
    for extra, packages in needed.items():
        versions = {package: _version(package) for package in packages}
        if missing := [package for package, version in versions.items() if not version]:
            yield Check(f"extra {extra}", f"without {', '.join(missing)}", to_install(extra), "note")
        else:
            yield Check(f"extra {extra}", ", ".join(f"{name} {versions[name]}" for name in packages))


def torch_check() -> Check | None:
    """Import PyTorch, which all else needs; return what keeps it from being imported."""
    try:
        import torch  # noqa: F401
    except Exception as error:  # whatever a broken build raises
        finding = (str(error).splitlines() or [type(error).__name__])[0]
        advice = f"{pip()} install --force-reinstall torch"
        return Check("torch", f"cannot be imported: {finding}", advice, "problem")
    return None


def _installed() -> bool:
    """Whether pip knows this package."""
    return _version(NAME) is not None


def _version(package: str) -> str | None:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return None


def _written() -> Iterator[str]:
    """Yield what a clone that was never installed says that it needs."""
    import tomllib

    with suppress(OSError):
        project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
        yield from project["dependencies"]
        for extra, lines in project["optional-dependencies"].items():
            yield from (f"{line}; extra == '{extra}'" for line in lines)


def pip() -> str:
    """Return how to call the pip of this Python: by its name where that is the one a shell would find."""
    python = Path(sys.executable)
    if (found := shutil.which("pip")) and Path(found).parent == python.parent:
        return "pip"
    with suppress(ValueError):
        python = python.relative_to(Path.cwd())
    return f"{shlex.quote(os.fspath(python))} -m pip"
