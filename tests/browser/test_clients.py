"""The clients that docs/http.md shows, as they stand there, against a real server."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

TEXT = (Path(__file__).parents[2] / "docs" / "http.md").read_text("utf-8")


def shown(language, address):
    """Return the client of a language, for a run of the tests."""
    (code,) = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    assert "http://localhost:8000/api/v1/runs/demo" in code
    return code.replace("http://localhost:8000/", address).replace("runs/demo", "runs/DistMult")


def test_the_client_in_python_prints_answers(address):
    run = [sys.executable, "-c", shown("python", address)]
    lines = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == 3
    assert all(0 <= float(line.rpartition(" ")[2]) <= 1 for line in lines)


def test_the_client_in_a_page_prints_answers(new_page, address):
    page, lines = new_page(expected="log: "), []
    page.on("console", lambda said: lines.append(said.text))
    page.goto(address)
    page.evaluate(f"(async () => {{ {shown('js', address)} }})()")
    assert lines[0].startswith("Euro ")
    assert len(lines) == 3
