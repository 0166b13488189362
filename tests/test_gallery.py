"""The notebooks of the gallery: what they hold, what they show when they run, how they become pages."""

import base64
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GALLERY = ROOT / "docs" / "gallery"
sys.path.insert(0, str(ROOT / "scripts"))

run_gallery = pytest.importorskip("run_gallery")
site_notebooks = pytest.importorskip("site_notebooks")

NAMES = [path.stem for path in sorted(GALLERY.glob("*.ipynb"))]
pytestmark = pytest.mark.parametrize("name", NAMES)


def test_a_notebook_is_small_and_says_nothing_of_where_it_was_made(name):
    text = (GALLERY / f"{name}.ipynb").read_text("utf-8")
    assert len(text) < 200_000
    plain = re.sub(r'"image/png": "[^"]*"', "", text)
    assert not re.search(r"https?://|/(?:tmp|root|home|work)/", plain)
    for cell in run_gallery.cells(run_gallery.read(name)):
        assert cell.metadata == {}
        assert {output.output_type for output in cell.outputs} <= {"execute_result", "display_data", "stream"}


def test_every_cell_was_run_in_order(name):
    cells = run_gallery.cells(run_gallery.read(name))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))


def test_its_last_picture_stands_in_the_list(name):
    pictures = list(run_gallery.pictures(run_gallery.read(name)))
    assert pictures
    assert all(len(picture) < 60_000 for picture in pictures)
    assert (GALLERY / f"{name}.png").read_bytes() == pictures[-1]
    index = (GALLERY / "index.md").read_text("utf-8")
    assert f'<img src="{name}.png" ' in index
    assert f"({name}.ipynb)" in index


def test_it_opens_with_what_it_gives_and_how_long_it_takes_and_closes_with_where_to_go(name):
    first, *_, last = run_gallery.read(name).cells
    assert first.source.startswith("# ")
    assert "minute" in first.source
    assert "## Read on" in last.source
    for target in re.findall(r"\]\(([^)]+)\)", last.source):
        assert (GALLERY / target).exists(), target


def test_as_a_page_it_has_its_code_its_tables_and_its_pictures(name):
    kept = json.loads((GALLERY / f"{name}.ipynb").read_text("utf-8"))
    page = site_notebooks.markdown(kept)
    assert page.startswith("# ")
    assert page.count("```python\n") == sum(cell["cell_type"] == "code" for cell in kept["cells"])
    assert "<table>" in page
    found = re.findall(r'<img alt="([^"]+)" src="data:image/png;base64,([^"]+)">', page)
    pictures = list(run_gallery.pictures(run_gallery.read(name)))
    assert [base64.b64decode(data) for _, data in found] == pictures


@pytest.mark.integration
def test_run_anew_it_shows_what_is_kept(name):
    """Again: python scripts/run_gallery.py NAME."""
    if name in run_gallery.READS:
        pytest.skip("reads a graph that scripts/build_graphs.py makes; minutes")
    assert run_gallery.differs(run_gallery.read(name), run_gallery.run(name)) == ""
