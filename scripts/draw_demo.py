"""Draw what ``make demo`` shows: python scripts/draw_demo.py runs/demo docs/demo.svg."""

import io
import re
import sys
from pathlib import Path

from rich.console import Console

import modulekge
from modulekge import render


def draw(folder: str, picture: Path) -> None:
    """Ask the run what the demo asks, and draw the answers as a terminal shows them."""
    console = Console(record=True, width=92, file=io.StringIO(), highlight=False)
    run = modulekge.load(folder)
    console.print(f"$ modulekge evaluate {folder}", style="cyan")
    console.print(render.report_view(modulekge.evaluate(run), False))
    for asked in (
        {"head": "France", "relation": "borders", "k": 10},
        {"tail": "Swahili", "relation": "official_language", "k": 5},
    ):
        words = " ".join(f"-k {v}" if key == "k" else f"--{key} {v}" for key, v in asked.items())
        console.print(f"\n$ modulekge predict {folder} {words}", style="cyan")
        question = f"{asked.get('head', '?')}  {asked['relation']}  {asked.get('tail', '?')}"
        console.print(render.answers_view(question, modulekge.predict(run, **asked)))  # type: ignore[arg-type]
    svg = console.export_svg(title="modulekge", unique_id="demo")
    picture.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), "utf-8")  # no web fonts


if __name__ == "__main__":
    draw(sys.argv[1], Path(sys.argv[2]))
