"""Commands that look at runs that were kept."""

import json
from dataclasses import asdict
from pathlib import Path

from modulekge import render
from modulekge.run.comparison import compare as compare_runs
from modulekge.run.comparison import write_comparison
from modulekge.run.folder import RunFolder
from modulekge.run.trackers import send


def compare(runs: list[Path], out: Path | None, as_json: bool) -> None:
    """Lay runs side by side: the settings that differ, the metrics, the curves of valid MRR."""
    comparison = compare_runs(runs)
    if out:
        write_comparison(comparison, out)
    if as_json:
        print(json.dumps(asdict(comparison), ensure_ascii=False))
    else:
        render.console().print(render.comparison_view(comparison))


def track(run: Path, to: str) -> None:
    """Send a run that was kept to a tracker: its settings, every epoch, its report on test."""
    send(RunFolder.existing(run), to)
    render.console(stderr=True).print(f"sent to {to}")
