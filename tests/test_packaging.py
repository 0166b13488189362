"""What the repository says of building, checking and reporting is what is there."""

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
yaml = pytest.importorskip("yaml", reason="comes with mkdocs")
sys.path.append(str(ROOT / "scripts"))


def test_the_checks_on_a_change_are_those_that_anyone_can_run():
    steps = [
        step
        for job in yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"].values()
        for step in job["steps"]
    ]
    assert [step["run"] for step in steps if "run" in step] == [".ci/run"]
    assert all(step["uses"].startswith("actions/checkout@") for step in steps if "uses" in step)
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"))


@pytest.mark.parametrize("path", FORMS, ids=lambda p: p.name)
def test_forms_ask_each_thing_once_and_say_what_it_is(path):
    form = yaml.safe_load(path.read_text())
    assert {"name", "description", "body"} <= form.keys()
    asked = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert len(asked) == len(set(asked)) > 0
    for part in form["body"]:
        assert part["type"] in ("textarea", "markdown")
        assert part["attributes"].get("label") or part["type"] == "markdown"
    for command in re.findall(r"'modulekge ([a-z ]+)'", path.read_text()):
        assert f"## modulekge {command}" in (ROOT / "docs" / "commands.md").read_text(), command


def steps(path):
    """Return (word, rest) of each instruction of a container file, its lines joined."""
    joined = path.read_text().replace("\\\n", " ")
    lines = (line.strip() for line in joined.splitlines())
    return [tuple(line.split(maxsplit=1)) for line in lines if line and not line.startswith("#")]


def test_the_container_serves_a_run_as_somebody_who_is_not_root():
    import modulekge.cli

    found = steps(ROOT / "Containerfile")
    last = dict(found)  # of each word the last, which is of the final stage
    assert last["USER"].isdecimal()
    assert int(last["USER"]) > 0
    command = [*eval(last["ENTRYPOINT"]), *eval(last["CMD"])]
    assert command[:3] == ["modulekge", "serve", last["VOLUME"]]
    port = command[command.index("--port") + 1]
    assert last["EXPOSE"] == port
    assert f"127.0.0.1:{port}/health" in last["HEALTHCHECK"]
    assert "--public" not in command  # it takes a token, or is told
    for word, rest in found:
        if word == "COPY" and "--from" not in rest:
            assert all((ROOT / name).exists() for name in shlex.split(rest)[:-1]), rest
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    version = re.search(r"python:3\.(\d+)", last["FROM"])
    assert version
    assert int(version[1]) >= int(requires.removeprefix(">=3."))
    assert modulekge.cli.app


def test_the_changelog_has_the_sections_of_its_form_and_says_nothing_twice():
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.findall(r"^## (.+)$", text, re.MULTILINE)[0] == "Unreleased"
    kinds = re.findall(r"^### (.+)$", text, re.MULTILINE)
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    commands = re.findall(r"`(ask|add|explain|mcp|serve|rerank|links|predict|tune|doctor)`", text)
    assert len(commands) == len(set(commands))


def test_nobody_is_asked_to_write_to_an_address():
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md"):
        assert "@" not in (ROOT / name).read_text(), name
