"""Draw docs/quality.svg, MRR against minutes on one H200: python scripts/draw_quality.py docs/quality.svg."""

import json
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from modulekge.run.plotting import new_figure, write_figure

RESULTS = Path(__file__).parent.parent / "results"
PUBLISHED = {"NBFNet": "top", "AdaProp": "bottom", "KnowFormer": "bottom"}  # where their names stand
EMBEDDINGS = {
    "FB15k-237": ("ModulE-HH", "ModulE-HH-extended", "ComplEx-best"),
    "WN18RR": ("ModulE-HH", "ModulE-HH-extended", "BiQUE-best"),
}
KINDS = {"embedding": ("o", "#5b8db8"), "paths": ("s", "#2a7f62"), "mixture": ("D", "#c8553d")}
Point = tuple[str, str, float, float]  # kind, name, minutes, MRR


def read(name: str) -> Any:
    """Return what a file of results holds."""
    return json.loads((RESULTS / name).read_text("utf-8"))


def points(data: str) -> list[Point]:
    """What was trained on a data set: embeddings as the mean of their seeds, in the time of the quickest."""
    found: list[Point] = []
    for model in EMBEDDINGS[data]:
        runs = [read(str(path)) for path in (RESULTS / "studies").glob(f"{data}-{model}-seed*.json")]
        minutes = min(run["train_seconds"] for run in runs) / 60
        found.append(("embedding", model, minutes, fmean(run["both"]["mrr"] for run in runs)))
    runs = [
        run for run in read("paths-h200.json")["trainings"] if run["data"] == data and "stopped" not in run
    ]
    newest = [run for run in runs if run["commit"] == runs[-1]["commit"]]
    seconds, ranks = zip(*((run["train_seconds"], run["test"]["mrr"]) for run in newest), strict=True)
    found.append(("paths", "Paths", min(seconds) / 60, fmean(ranks)))
    found += [
        ("mixture", f"--minutes {run['minutes']:g}:", run["seconds"] / 60, run["mixture"]["test"]["mrr"])
        for run in read("mixtures.json")
        if run["data"] == data and run["device"].startswith("NVIDIA")
    ]
    return found


def draw() -> Any:
    """A panel for each data set: our points, and strokes where published path models stand."""
    figure = new_figure()
    published = read("published.json")
    for axes, data in zip(figure.subplots(1, 2), EMBEDDINGS, strict=True):
        for name, side in PUBLISHED.items():
            axes.axhline(mrr := published[name][data], color="#999999", linestyle=":", linewidth=1)
            axes.annotate(f"{name} {mrr:.3f}", (0.01, mrr), xycoords=("axes fraction", "data"),
                          va=side, fontsize="x-small", color="#777777")  # fmt: skip
        for kind, name, minutes, mrr in points(data):
            marker, colour = KINDS[kind]
            axes.plot(minutes, mrr, marker, color=colour)
            side = "right" if kind == "paths" else "left"
            axes.annotate(f"  {name} {mrr:.3f}  ", (minutes, mrr), fontsize="x-small", va="center", ha=side)
        axes.set(title=data, xlabel="minutes on one H200", ylabel="test MRR", xscale="log", xlim=(0.4, 60))
        axes.set_xticks([0.5, 1, 2, 5, 10, 20, 50], ["0.5", "1", "2", "5", "10", "20", "50"])
        axes.grid(alpha=0.3)
    return figure


if __name__ == "__main__":
    write_figure(draw(), Path(sys.argv[1]))
