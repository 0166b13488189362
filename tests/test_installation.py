"""What the program says of its own installation, and how to get what is missing."""

import ast
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from program import call

import modulekge
from modulekge import installation, machine
from modulekge.installation import Check, package_checks, required, to_install, torch_check
from modulekge.render import checks_view, console

ROOT = Path(__file__).parent.parent
SOURCE = Path(modulekge.__file__).parent
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def calls(name):
    """Yield (file, arguments) of each call of a function of this name."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name:
                yield path, node.args


def test_messages_name_extras_that_there_are():
    named = {arg.value for _, (arg,) in calls("to_install") if isinstance(arg, ast.Constant)}
    assert {"serve", "tune", "rdf"} <= {*named, "serve"} <= EXTRAS.keys()
    for _, arguments in calls("_needing"):
        assert arguments[0].value in EXTRAS


def test_no_message_says_by_itself_how_to_install():
    for path in SOURCE.rglob("*.py"):
        if path.name != "installation.py":
            assert "pip install '" not in path.read_text(), path


def test_the_packages_of_extras_are_those_of_the_project():
    found = required()
    assert {*found} == {"", *EXTRAS} - {*installation.DEVELOPERS}
    assert {"torch", "numpy", "rich"} <= {*found[""]}
    assert {"fastapi", "uvicorn"} == {*found["serve"]}


@pytest.mark.integration
@pytest.mark.parametrize(("flags", "expected"), [((), "install 'modulekge[serve]'"), (("-S",), None)])
def test_a_clone_that_pip_does_not_know_is_named_by_its_folder(flags, expected, tmp_path):
    code = f"import sys; sys.path.insert(0, {str(SOURCE.parent)!r}); from modulekge.installation import *"
    command = [sys.executable, *flags, "-c", f"{code}; print(to_install('serve')); print(*required())"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    said, groups = done.stdout.splitlines()
    assert said.endswith(expected or f"pip install --editable '{SOURCE.parents[1]}[serve]'")
    assert {*groups.split()} == {*EXTRAS} - {*installation.DEVELOPERS}


def test_pip_is_called_by_its_name_only_where_a_shell_would_find_this_one(monkeypatch, tmp_path):
    for folder in (tmp_path / "env", tmp_path / "other"):
        (folder / "bin").mkdir(parents=True)
        for name in ("pip", "python"):
            (folder / "bin" / name).touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "env" / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "env" / "bin"))
    assert installation.pip() == "pip"
    monkeypatch.setenv("PATH", str(tmp_path / "other" / "bin"))
    assert installation.pip() == "env/bin/python -m pip"
    assert to_install("serve").startswith("env/bin/python -m pip install ")


def test_a_missing_package_is_a_problem_and_a_missing_extra_is_not(monkeypatch):
    monkeypatch.setattr(
        installation, "required", lambda: {"": ["torch", "nosuch"], "serve": ["none", "rich"]}
    )
    by_name = {check.name: check for check in package_checks()}
    assert (by_name["nosuch"].level, by_name["torch"].level) == ("problem", "ok")
    assert by_name["nosuch"].advice.endswith("pip install nosuch")
    assert by_name["extra serve"] == Check("extra serve", "without none", to_install("serve"), "note")
    assert torch_check() is None


def test_only_what_can_be_used_is_called_ready():
    for level, last in (("note", "ready"), ("problem", "thing    broken; mend it")):
        with (shown := console()).capture() as fine:
            shown.print(checks_view([Check("good", "fine"), Check("thing", "broken", "mend it", level)]))
        assert fine.get().splitlines()[-1].split() == last.split()


def test_memory_that_a_container_was_given_is_all_there_is(tmp_path):
    free = machine._free_of_container
    assert free(tmp_path) == []
    (tmp_path / "memory.current").write_text("300\n")
    for most, left in (("max\n", []), ("1000\n", [700]), ("200\n", [0])):
        (tmp_path / "memory.max").write_text(most)
        assert free(tmp_path) == left


@pytest.mark.integration
def test_doctor_tries_a_compiler_and_says_that_it_is_ready(tmp_path):
    (tmp_path / "Nations").mkdir()
    done = call("doctor", "--json", cwd=tmp_path)
    said = json.loads(done.stdout)
    by_name = {check["name"]: check for check in said["checks"]}
    assert (done.returncode, said["ready"]) == (0, True)
    assert {"Python", "torch", "extra serve", "CPU", "GPU", "torch.compile (cpu)", "memory"} <= by_name.keys()
    assert "there: Nations" in by_name["data sets"]["found"]
    assert str(tmp_path) in by_name["disk"]["found"]


@pytest.mark.integration
def test_doctor_answers_where_pytorch_cannot_be_imported(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('libtorch.so: no such file')")
    command = [sys.executable, "-c", "from modulekge_program import main; main()", "doctor"]
    path = os.pathsep.join([str(tmp_path), str(SOURCE.parent)])
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 2
    assert "ready" not in done.stdout
    assert done.stderr.startswith("error: torch cannot be imported: libtorch.so: no such file; ")
    assert done.stderr.count("\n") == 1
