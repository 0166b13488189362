"""The Python of the documents runs as it stands there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import modulekge
from modulekge import cli

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
        pytest.param("docs/reference.md", marks=pytest.mark.integration),  # it trains five runs
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


def commands_in(text):
    """What follows "modulekge" in blocks and in the text, without comments; usage like [--json] left out."""
    blocks = re.findall(
        r"^```(?:sh|console|text)?\n(.*?)^```|((?:^    .*\n)+)", text, re.MULTILINE | re.DOTALL
    )
    lines = [line for pair in blocks for line in "".join(pair).replace("\\\n", " ").splitlines()]
    for line in (*lines, *re.findall(r"`([^`\n]+)`", text)):
        if found := re.match(r" *(?:\$ )?(?:torchrun .*-m )?modulekge ([a-z].*)", line):
            words = shlex.split(re.sub(r"\[.*?\]|\.\.\.", "", found[1]), comments=True)
            yield words


@pytest.mark.parametrize("path", [ROOT / "README.md", *ROOT.glob("docs/*.md")], ids=lambda path: path.name)
def test_every_command_of_a_document_has_the_options_that_stand_there(path):
    """What runs for minutes, or wants files that are not there, is parsed; transcripts are run."""
    for words in commands_in(path.read_text("utf-8")):
        command = typer.main.get_command(cli.app)
        while hasattr(command, "commands"):
            assert words and words[0] in command.commands, words
            command = command.commands[words.pop(0)]
        command.make_parser(command.context_class(command)).parse_args(words)  # or raises


def test_a_command_that_is_none_is_found():
    text = (
        "run `modulekge predict runs/a --head x`:\n\n```sh\nmodulekge train \\\n    g.csv  # a comment\n```\n"
    )
    assert list(commands_in(text)) == [["train", "g.csv"], ["predict", "runs/a", "--head", "x"]]
    predict = typer.main.get_command(cli.app).commands["predict"]
    with pytest.raises(Exception, match="--haed"):
        predict.make_parser(predict.context_class(predict)).parse_args(["runs/a", "--haed", "x"])


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
    """The run that 'make demo' trains, where every processor rounds alike."""
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


@pytest.mark.parametrize("path", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], ids=lambda p: p.name)
def test_links_between_documents_lead_somewhere(path):
    for target in re.findall(r"\]\((?!https?://)([^)#]+)\)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_reference_has_every_public_name():
    text = (ROOT / "docs" / "reference.md").read_text("utf-8")
    for name in set(modulekge.__all__) - {"__version__"}:
        assert f"modulekge.{name}" in text, name


@pytest.mark.integration
@pytest.mark.parametrize("name", ["commands", "settings"])
def test_a_page_that_is_made_of_the_program_is_what_it_says(tmp_path, name):
    script, page = ROOT / "scripts" / f"list_{name}.py", f"{name}.md"
    subprocess.run([sys.executable, script, tmp_path / page], check=True)
    again = f"run: python {script.relative_to(ROOT)} docs/{page}"
    assert (tmp_path / page).read_text() == (ROOT / "docs" / page).read_text(), again


@pytest.mark.integration
def test_the_site_can_be_built(tmp_path):
    """Every page is in its menu, every link leads somewhere, every name of the reference is there."""
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "site" / "reference" / "index.html").read_text("utf-8")
    assert "Return the best answers to one question" in text
    assert "$" not in re.sub(
        r"<(?:script|style).*?</(?:script|style)>", "", text, flags=re.DOTALL
    )  # formulas
    assert ":class:" not in text and ":func:" not in text
    notebook = (tmp_path / "site" / "gallery" / "own-csv" / "index.html").read_text("utf-8")
    assert 'src="data:image/png;base64,' in notebook
    assert 'href="../../tutorial/"' in notebook
    for page in (tmp_path / "site").rglob("*.html"):
        html = page.read_text("utf-8")
        assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="https?://', html), page
        assert 'class="mermaid"' not in html, page  # for which the theme would fetch a program
    for style in (tmp_path / "site").rglob("*.css"):
        assert "url(http" not in style.read_text("utf-8"), style
