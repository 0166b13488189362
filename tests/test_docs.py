"""The Python of the documents runs as it stands there."""

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

import modulekge
from modulekge import show
from modulekge.algebra.charts import UNIT_CHARTS
from modulekge.models.table import TABLE_1

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        *(
            f"docs/{name}.md"
            for name in (
                "adding-a-model",
                "answers",
                "changing-graphs",
                "data",
                "exports",
                "run-folder",
                "synthetic",
                "tutorial",
            )
        ),
    ],
)
def test_the_code_of_a_document_runs(name, tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks), name, "exec"), {})


def test_the_readme_names_its_two_commands():
    text = (ROOT / "README.md").read_text("utf-8")
    assert "make demo" in text
    assert "make test" in text


def test_the_readme_shows_the_table_of_models_as_it_is():
    text = (ROOT / "README.md").read_text("utf-8")
    console = Console(file=io.StringIO(), width=160)
    console.print(show.models_table(TABLE_1, UNIT_CHARTS["normalised"]))
    for line in console.file.getvalue().splitlines():
        assert f"    {line.rstrip()}\n" in text


@pytest.mark.parametrize("path", [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], ids=lambda p: p.name)
def test_links_between_documents_lead_somewhere(path):
    for target in re.findall(r"\]\((?!https?://)([^)#]+)\)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_reference_has_every_public_name():
    text = (ROOT / "docs" / "reference.md").read_text("utf-8")
    for name in set(modulekge.__all__) - {"__version__"}:
        assert f"modulekge.{name}" in text, name


def test_the_page_of_commands_is_what_the_program_says(tmp_path):
    script = ROOT / "scripts" / "list_commands.py"
    subprocess.run([sys.executable, script, tmp_path / "commands.md"], check=True)
    again = f"run: python {script.relative_to(ROOT)} docs/commands.md"
    assert (tmp_path / "commands.md").read_text() == (ROOT / "docs" / "commands.md").read_text(), again


def test_the_site_can_be_built(tmp_path):
    """Every page is in its menu, every link leads somewhere, every name of the reference is there."""
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "site" / "reference" / "index.html").read_text("utf-8")
    assert "Return the best answers to one question" in text
    for page in (tmp_path / "site").rglob("*.html"):
        assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="https?://', page.read_text("utf-8")), (
            page
        )
