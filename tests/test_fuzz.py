"""The fuzzer for seconds: enough to know that it runs, and that nothing near the surface breaks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import modulekge

pytestmark = pytest.mark.integration

SOURCE = Path(modulekge.__file__).parent.parent
SCRIPT = Path(__file__).parent.parent / "scripts" / "fuzz.py"


def run(script, *arguments, folder):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, script, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_changed_inputs_break_no_reader(tmp_path):
    found = json.loads(run(SCRIPT, "--seconds", "10", folder=tmp_path).stdout)
    assert found["broken"] == {}
    assert found["runs"] > 50
    assert found["kept"] > 25  # of which 24 are what it starts with


def test_nor_do_those_of_atheris(tmp_path):
    pytest.importorskip("atheris")
    done = run(SCRIPT.with_name("fuzz_atheris.py"), "-max_total_time=10", folder=tmp_path)
    assert "Done " in done.stderr
