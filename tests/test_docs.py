"""The Python of the documents runs as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import modulekge

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import derive_figures  # noqa: E402
import tabulate_models  # noqa: E402
import transcripts  # noqa: E402


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
                "compound",
                "data",
                "exports",
                "notebooks",
                "run-folder",
                "synthetic",
                "tutorial",
            )
        ),
    ],
)
def test_the_code_of_a_document_runs_and_prints_what_stands_there(name, tmp_path, monkeypatch, capsys):
    text = (ROOT / name).read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks), name, "exec"), {})
    shown = [
        line for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL) for line in block.splitlines()
    ]
    assert transcripts.differs(shown, capsys.readouterr().out.splitlines()) == ""


def test_the_commands_of_the_readme_are_there_and_the_tests_are_what_ci_runs():
    text, makefile = ((ROOT / name).read_text("utf-8") for name in ("README.md", "Makefile"))
    named = set(re.findall(r"\bmake ([a-z-]+)", text))
    assert named >= {"demo", "test"}
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    assert "\nmake test\n" in (ROOT / ".ci" / "run").read_text("utf-8")


@pytest.mark.integration
def test_figures_of_documents_are_those_of_results():
    """Each figure has a source; again: python scripts/derive_figures.py."""
    for name in derive_figures.DOCUMENTS:
        text = (ROOT / name).read_text("utf-8")
        assert derive_figures.unmarked(text) == [], name
        assert derive_figures.derived(text) == text, name


def test_a_figure_that_differs_or_has_no_source_is_found():
    marked = '<!-- = test("WN18RR", "ModulE-HH") -->{}<!-- / -->'
    right = derive_figures.derived(marked.format(""))
    assert re.fullmatch(r"\.49\d\d", right.removeprefix(marked[:38]).removesuffix("<!-- / -->"))
    assert derive_figures.derived(marked.format(".5000")) == right
    assert derive_figures.unmarked(f"{right} and .5000, `.123`, 0.5, [x](a.123)") == [".5000"]
    with pytest.raises(KeyError, match="no result WN18RR-Nothing"):
        derive_figures.derived('<!-- = test("WN18RR", "Nothing") --><!-- / -->')


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "demo"
    transcripts.train_demo(folder)
    return folder


@pytest.mark.integration
@pytest.mark.parametrize("name", transcripts.DOCUMENTS)
def test_what_the_documents_show_is_what_the_program_prints(name, demo):
    """Again: python scripts/transcripts.py --write."""
    assert transcripts.check(name, demo) == []


def test_a_transcript_that_differs_is_found():
    alike = "1  France  4.778  35.2%  took 3 s", "1  France  4.779  35.9%  took 8 s"
    assert transcripts.differs([alike[0]], [alike[1]]) == ""
    assert "printed" in transcripts.differs([alike[0]], [alike[1].replace("35.9", "45.9")])
    assert "printed" in transcripts.differs([alike[0]], [alike[1].replace("France", "Spain")])
    assert transcripts.differs(["a", "..."], ["a", "b", "c"]) == ""
    assert "not printed: c" in transcripts.differs(["a", "c"], ["a"])
    assert "also printed: b" in transcripts.differs(["a"], ["a", "b"])


def test_the_page_of_models_is_what_the_program_has(tmp_path):
    """Again: python scripts/tabulate_models.py docs/models.md."""
    tabulate_models.main(str(tmp_path / "models.md"))
    assert (tmp_path / "models.md").read_text("utf-8") == (ROOT / "docs" / "models.md").read_text("utf-8")


@pytest.mark.parametrize("path", [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], ids=lambda p: p.name)
def test_links_between_documents_lead_somewhere(path):
    for target in re.findall(r"\]\((?!https?://)([^)#]+)\)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_reference_has_every_public_name():
    text = (ROOT / "docs" / "reference.md").read_text("utf-8")
    for name in set(modulekge.__all__) - {"__version__"}:
        assert f"modulekge.{name}" in text, name


@pytest.mark.integration
def test_the_page_of_commands_is_what_the_program_says(tmp_path):
    script = ROOT / "scripts" / "list_commands.py"
    subprocess.run([sys.executable, script, tmp_path / "commands.md"], check=True)
    again = f"run: python {script.relative_to(ROOT)} docs/commands.md"
    assert (tmp_path / "commands.md").read_text() == (ROOT / "docs" / "commands.md").read_text(), again


@pytest.mark.integration
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
