"""Run the notebooks of the gallery in Jupyter's kernel and keep what they show.

python scripts/run_gallery.py [NAME ...] [--check]

Outputs are kept in docs/gallery/NAME.ipynb, and the last picture also as NAME.png, for the page that lists
them. --check keeps nothing and compares: words to the letter, numbers nearly, as in scripts/transcripts.py.
A notebook runs in a folder of its own; a graph of scripts/build_graphs.py that it reads is in .data/graphs.
"""

import argparse
import base64
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import transcripts
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs" / "gallery"
GRAPHS = ROOT / ".data" / "graphs"
READS = {"packages": "debian.csv", "rare-diseases": "hpo.tsv"}  # what is not in the package


def names() -> list[str]:
    """Every notebook."""
    return sorted(path.stem for path in GALLERY.glob("*.ipynb"))


def read(name: str) -> Any:
    """Return a notebook as it is kept."""
    return nbformat.read(GALLERY / f"{name}.ipynb", as_version=4)


def run(name: str) -> Any:
    """Return a notebook with what its cells show now; one that raises ends it."""
    notebook = read(name)
    paths = filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")])
    threads, plots = {"OMP_NUM_THREADS": "1"}, {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    os.environ |= threads | plots | transcripts.ROUNDING  # more threads round otherwise
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    with tempfile.TemporaryDirectory() as folder:
        if name in READS:
            (Path(folder) / ".data").mkdir()
            (Path(folder) / ".data" / "graphs").symlink_to(GRAPHS.resolve())
        resources = {"metadata": {"path": folder}}
        client = NotebookClient(
            notebook, timeout=None, kernel_name="python3", resources=resources, record_timing=False
        )
        client.execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in cells(notebook):
        cell.metadata = {}
        cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def cells(notebook: Any) -> list[Any]:
    """Return the cells that hold code."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(cell: Any) -> list[str]:
    """Return the lines that a cell has shown."""
    shown = (output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs)
    return [line for text in shown for line in text.splitlines()]


def pictures(notebook: Any) -> Iterator[bytes]:
    """Yield the pictures that a notebook shows."""
    for cell in cells(notebook):
        for output in cell.outputs:
            if picture := output.get("data", {}).get("image/png"):
                yield base64.b64decode(picture)


def differs(kept: Any, now: Any) -> str:
    """Return the first place where two runs of a notebook differ by more than rounding, if they do."""
    for before, after in zip(cells(kept), cells(now), strict=True):
        if finding := transcripts.differs(texts(before), texts(after)):
            return f"{before.source.splitlines()[0]}\n   {finding}"
    before, after = (len(list(pictures(notebook))) for notebook in (kept, now))
    return "" if before == after else f"{after} pictures, kept are {before}"


def keep(name: str, notebook: Any) -> None:
    """Write a notebook, and its last picture."""
    nbformat.write(notebook, GALLERY / f"{name}.ipynb")
    *_, last = pictures(notebook)
    (GALLERY / f"{name}.png").write_bytes(last)


def main() -> int:
    """Run the notebooks that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=names())
    parser.add_argument("--check", action="store_true", help="keep nothing, and compare")
    given = parser.parse_args()
    found = False
    for name in given.names:
        notebook = run(name)
        finding = differs(read(name), notebook) if given.check else ""
        found |= bool(finding)
        print(f"{name}: {finding or 'as it is kept' if given.check else 'written'}", flush=True)
        if not given.check:
            keep(name, notebook)
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
