"""The Python of the documents runs as it stands there."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from modulekge import show
from modulekge.algebra.groups import UNIT_CHARTS
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
