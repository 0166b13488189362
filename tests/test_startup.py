"""What needs no PyTorch answers without importing it."""

import inspect
import os
import subprocess
import sys
from importlib import import_module
from typing import get_type_hints

import pytest

import modulekge
from modulekge import choices
from modulekge.algebra.parametrizations import UNIT_PARAMETRIZATIONS
from modulekge.cli.app import app
from modulekge.cli.data import data_app
from modulekge.config import ModelConfig
from modulekge.data.synthetic.patterns import PATTERNS
from modulekge.exports.formats import FORMATS
from modulekge.exports.rdf import SYNTAXES
from modulekge.run.rows import WRITERS
from modulekge.run.trackers import TRACKERS
from modulekge.studies.catalogue import STUDIES
from modulekge.studies.future import FUTURES
from modulekge.studies.tuning import SPACES

pytestmark = pytest.mark.integration

PROGRAM = """
import sys
from modulekge_program import main
sys.argv = ["modulekge", *sys.argv[1:]]
try:
    main()
finally:
    print("heavy:", *sorted({"torch", "numpy", "pyarrow", "mcp"} & sys.modules.keys()), file=sys.stderr)
"""
COMMANDS = (
    ["--help"],
    ["--version"],
    ["train", "--help"],
    ["mcp", "--help"],
    ["reproduce", "--help"],
    ["doctor", "--help"],
    ["data", "synth", "--help"],
    ["runs"],
    ["runs", "--json"],
    ["data", "list"],
    ["train"],
    ["predict", "--nope"],
    ["nosuch"],
    ["tune", "world", "--trials", "0"],
)


def started(*words, cwd=None, **variables):
    command = [sys.executable, "-c", PROGRAM, *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env={**os.environ, **variables})


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_pytorch_is_not_imported(words, tmp_path):
    (tmp_path / "runs").mkdir()
    done = started(*words, cwd=tmp_path)
    assert done.stderr.splitlines()[-1] == "heavy:"
    assert done.returncode == (0 if words in COMMANDS[:10] else 2)


def test_a_question_takes_pytorch_but_not_what_reads_tables(tmp_path):
    done = started("predict", "nowhere", "--head", "France", "--relation", "borders", cwd=tmp_path)
    assert done.stderr.splitlines()[-1] == "heavy: numpy torch"


ADDING = """
import sys
from modulekge.run.add import add
print(len(add(*sys.argv[1:]).dataset.entities), "torch._dynamo" in sys.modules)
"""


def test_adding_facts_takes_no_compiler(drawn_run, family, tmp_path):
    run = drawn_run(family, "ModulE-HH")
    (tmp_path / "new.tsv").write_text("newcomer\tparent\tada\n")
    done = subprocess.run(
        [sys.executable, "-c", ADDING, run.folder.path, tmp_path / "new.tsv"], capture_output=True, text=True
    )
    assert done.stdout.split() == [str(len(family.entities) + 1), "False"], done.stderr


def test_a_shell_is_offered_names_without_pytorch():
    done = started(
        _MODULEKGE_COMPLETE="complete_bash", COMP_WORDS="modulekge train --model ModulE-H", COMP_CWORD="3"
    )
    assert "ModulE-HH-unit" in done.stdout.split()
    assert done.stderr.splitlines()[-1] == "heavy:"


def test_the_names_that_are_offered_are_those_there_are():
    assert tuple(FORMATS) == choices.EXPORT_FORMATS
    assert tuple(UNIT_PARAMETRIZATIONS) == choices.PARAMETRIZATIONS
    assert ModelConfig().parametrization in choices.PARAMETRIZATIONS
    assert tuple(SYNTAXES) == choices.RDF_FILES
    assert tuple(SPACES) == choices.SEARCH_SPACES
    assert (*STUDIES, *FUTURES) == choices.STUDIES
    assert tuple(PATTERNS) == choices.SYNTHETIC_PATTERNS
    assert tuple(WRITERS) == choices.TABLES
    assert tuple(TRACKERS) == choices.TRACKERS


def test_every_public_name_can_be_had_and_no_other_is_shown():
    assert dir(modulekge) == sorted(set(modulekge.__all__) - {"__version__"})
    for name in modulekge.__all__:
        assert getattr(modulekge, name) is not None
        assert not isinstance(getattr(modulekge, name), type(sys)), f"{name} is a module"
    with pytest.raises(AttributeError, match="module 'modulekge' has no attribute 'sharpness'"):
        _ = modulekge.sharpness


def test_what_a_command_declares_is_what_its_function_takes():
    declared = [inspect.unwrap(each.callback) for each in app.registered_commands]
    declared += [inspect.unwrap(each.callback) for each in data_app.registered_commands]
    assert {"runs", "data_list"} < {options.__name__ for options in declared}
    for options in declared:
        if options.__name__ not in ("runs", "data_list", "doctor"):  # which need no PyTorch
            home = import_module(options.__module__.replace(".cli.", ".commands."))
            takes = get_type_hints(getattr(home, options.__name__))
            assert get_type_hints(options) | {"return": takes["return"]} == takes
