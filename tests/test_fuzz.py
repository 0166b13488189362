"""The fuzzer for seconds: enough to know that it runs, and that nothing near the surface breaks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import modulekge

SOURCE = Path(modulekge.__file__).parent.parent
SCRIPT = Path(__file__).parent.parent / "scripts" / "fuzz.py"


def test_changed_inputs_break_no_reader(tmp_path):
    done = subprocess.run(
        [sys.executable, SCRIPT, "--seconds", "10", "--keep", tmp_path],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["broken"] == {}
    assert found["runs"] > 50
    assert found["kept"] > 25  # of which 24 are what it starts with
