"""Hundreds of malformed inputs: each is answered by one line, in bounded time, and nothing is written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import modulekge

pytestmark = pytest.mark.integration

HERE = Path(__file__).parent
SOURCE = Path(modulekge.__file__).parent.parent
LIMIT = 900  # seconds for all of them: a hang ends, an input that hangs by itself ends long before


@pytest.fixture(scope="module")
def tried():
    """What became of every input, each given to the real command in a process with little memory."""
    paths = os.pathsep.join(map(str, (SOURCE, HERE.parent)))
    done = subprocess.run(
        [sys.executable, HERE / "run_corpus.py"],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"after {found[-1:]}: {done.stderr[-3000:]}"
    return found


def test_every_malformed_file_is_one_line_that_says_so_and_leaves_all_as_it_was(tried):
    files = [line for line in tried if "code" in line]
    assert len(files) > 400
    wrong = [
        line
        for line in files
        if line["code"] != 2
        or not line["error"].startswith("error: ")
        or line["traceback"]
        or line["changed"]
    ]
    assert wrong == []


def test_every_malformed_body_is_refused_in_json(tried):
    bodies = [line for line in tried if "status" in line]
    assert len(bodies) > 100
    for line in bodies:
        assert line["status"] in (400, 404, 413, 422), line
        assert json.loads(line["body"])["error"], line
