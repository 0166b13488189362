"""Draw docs/speed.svg, a step of training here and elsewhere: python scripts/draw_speed.py docs/speed.svg."""

import json
import sys
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "results"
# Measured on the same kind of device with the peers' own loops, but not in the same run
PEERS_ON_GPU = {
    "WN18RR": {"kbc ComplEx": 4.35, "LibKGE ComplEx": 9.10, "PyKEEN ComplEx": 86.9},
    "FB15k-237": {"kbc ComplEx": 3.75, "LibKGE ComplEx": 7.41, "PyKEEN ComplEx": 27.5},
}
WIDTH, LABEL, BAR = 720, 190, 18


def groups() -> list[tuple[str, dict[str, float]]]:
    """Milliseconds of a step, by what was measured together."""
    found = []
    for name in ("speed-h200.json", "speed-cpu.json"):
        for run in json.loads((RESULTS / name).read_text("utf-8")):
            if run.get("parametrization", "normalised") != "normalised" or run["precision"] == "bfloat16":
                continue
            bars: dict[str, float] = {}
            for row in run["measured"]:
                if row["row"] in ("ModulE-HH", "ModulE-RC", "ComplEx"):
                    bars[f"{row['row']} here"] = row["step_ms"]
                    if row["row"] == "ModulE-RC":
                        bars["floor of ModulE-RC"] = row["floor_ms"]
                elif "floor_ms" not in row:  # a peer
                    bars[row["row"]] = row["step_ms"]
            if run["device"].startswith("NVIDIA"):
                bars |= PEERS_ON_GPU[run["data"]]
            title = f"{run['data']}, batch {run['batch']}, {run['device']}, {run['precision']}"
            found.append((title, dict(sorted(bars.items(), key=lambda item: item[1]))))
    return found


def draw(parts: list[tuple[str, dict[str, float]]]) -> str:
    """One block of bars per group, each to its own scale."""
    lines: list[str] = []
    y = 24
    for title, bars in parts:
        lines.append(f'<text x="8" y="{y}" font-weight="bold">{title}: ms per step</text>')
        y += 10
        longest = max(bars.values())
        for name, value in bars.items():
            length = max(1.0, (WIDTH - LABEL - 90) * value / longest)
            shade = "#2a7f62" if name.endswith("here") else "#bbb" if "floor" in name else "#888"
            text, shown = y + BAR - 5, f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
            lines += [
                f'<text x="{LABEL - 8}" y="{text}" text-anchor="end">{name}</text>',
                f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR - 4}" fill="{shade}"/>',
                f'<text x="{LABEL + length + 6:.1f}" y="{text}">{shown}</text>',
            ]
            y += BAR
        y += 30
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y - 20}"'
    style = 'font-family="sans-serif" font-size="12" fill="#222">'
    ground = f'<rect width="{WIDTH}" height="{y - 20}" fill="white"/>'
    return "\n".join([f"{head} {style}", ground, *lines, "</svg>", ""])


def main(arguments: list[Any]) -> None:
    """Write the picture where it is wanted."""
    Path(arguments[1]).write_text(draw(groups()), "utf-8")


if __name__ == "__main__":
    main(sys.argv)
