"""The runs that were kept, a line each."""

import json
from dataclasses import asdict
from pathlib import Path

from modulekge import render
from modulekge.run.listing import Order, list_runs


def runs(folder: Path, sort: Order, as_json: bool) -> None:
    """List runs: what they are of, how far they came, how good they are, and their state."""
    lines = list_runs(folder, sort)
    if as_json:
        print(json.dumps([asdict(line) for line in lines], ensure_ascii=False))
    elif lines:
        render.console().print(render.runs_table(lines))
    else:
        render.console(stderr=True).print(f"no runs in {folder}; 'modulekge train' makes one")
