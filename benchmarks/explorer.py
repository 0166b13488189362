"""What the explorer weighs, how soon it answers, how its map moves, and what axe-core finds.

python benchmarks/explorer.py RUN [RUN ...] [--out results/explorer.json]

Needs Playwright, axe-playwright-python, and Chromium at /usr/bin/chromium or where CHROMIUM says.
"""

import argparse
import gzip
import json
import os
import statistics
import sys
import time
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

import torch
from axe_playwright_python import sync_playwright as axe
from playwright.sync_api import Browser, expect, sync_playwright
from torch import Tensor

from modulekge.run.run import Run, load
from modulekge.server.lookup import Lookup
from modulekge.server.projection import Places, directions, principal_plane, project

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS / "browser"), str(TESTS)]

from conftest import serving  # noqa: E402
from views import VIEWS  # noqa: E402

FLAGS = ["--no-sandbox", "--disable-gpu"]  # drawn by the processor, as where there is no GPU
ANSWERS = 5  # times that a page is opened afresh
NEAR, ASKED = 10, 3000  # points around one, and entities that are looked at
SECONDS = 3
MOVE = """async (seconds) => {
  const canvas = document.querySelector("canvas"), box = canvas.getBoundingClientRect(), frames = [];
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  for (let last = performance.now(), end = last + 1000 * seconds; last < end;) {
    const at = { clientX: box.x + 300 + frames.length % 50, clientY: box.y + 200 };
    canvas.dispatchEvent(new WheelEvent("wheel", { ...at, cancelable: true,
      deltaY: frames.length % 40 < 20 ? -24 : 24 }));
    await frame();
    frames.push(performance.now() - last);
    last = performance.now();
  }
  return frames;
}"""
AXE = "axe.run(document, { rules: { 'label-content-name-mismatch': { enabled: true } } })"


def weight() -> dict[str, int]:
    """Bytes of the page's own files, plain and as they are sent."""
    page = resources.files("modulekge.server") / "page"
    files = [
        file.read_bytes() for file in page.iterdir() if file.name.endswith((".js", ".css", ".html", ".svg"))
    ]
    return {"plain": sum(map(len, files)), "sent": sum(len(gzip.compress(file)) for file in files)}


def kept(run: Run) -> dict[str, Any]:
    """Of the ten nearest entities, the share that is of one group or joined: on planes, and in space."""
    table, lookup, n = run.embedding.entities(), Lookup(run.dataset), len(run.dataset.entities)
    group, (heads, _, tails) = torch.as_tensor(lookup.facts.most_asked()), run.dataset.train.T
    facts = torch.cat([heads * n + tails, tails * n + heads])
    chosen = torch.randperm(n, generator=torch.Generator().manual_seed(1))[:ASKED]

    def share(far: Tensor) -> float:
        far[torch.arange(len(chosen)), chosen] = torch.inf
        near = far.topk(NEAR, largest=False).indices
        alike = (group[near] == group[chosen, None]) | torch.isin(chosen[:, None] * n + near, facts)
        return round(float(alike.float().mean()), 3)

    def on(places: Places) -> float:
        return share(torch.cdist(places[chosen], places))

    x = directions(table)
    start = time.perf_counter()
    places = project(table)
    seconds = round(time.perf_counter() - start, 1)
    return {"seconds": seconds, "principal components": on(principal_plane(x)), "map": on(places),
            "whole space": share(-(x[chosen] @ x.T))}  # fmt: skip


def first_answer(browser: Browser, address: str, run: Run) -> float:
    """Seconds from an empty browser to the answers of a question, the median."""
    head, relation, _ = run.dataset.train[0].tolist()
    names, relations = run.dataset.entities.names, run.dataset.relations.names
    view, seconds = f"#/ask?head={quote(names[head])}&relation={quote(relations[relation])}", []
    for _ in range(ANSWERS):
        context = browser.new_context()
        page, start = context.new_page(), time.perf_counter()
        page.goto(address + view)
        page.locator(".answers li").first.wait_for()
        seconds.append(time.perf_counter() - start)
        context.close()
    return round(statistics.median(seconds), 2)


def frames(browser: Browser, address: str) -> dict[str, float]:
    """How the map moves while one zooms: frames a second, the median frame, and the best tenth."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.goto(f"{address}#/map")
    page.locator("canvas").wait_for()
    page.wait_for_load_state("networkidle")
    found = sorted(page.evaluate(MOVE, SECONDS))
    page.close()
    return {
        "frames a second": round(1000 * len(found) / sum(found), 1),
        "median ms": round(statistics.median(found), 1),
        "best tenth ms": round(found[len(found) // 10], 1),
    }


def rules(browser: Browser, address: str) -> dict[str, int]:
    """How many rules of axe-core each view breaks, in either theme."""
    script, broken = (Path(axe.__file__).parent / "axe.min.js").read_text("utf-8"), {}
    page = browser.new_page(reduced_motion="reduce")
    page.goto(address)
    page.evaluate(script)
    for name, view in VIEWS.items():
        page.evaluate("document.getElementById('main').replaceChildren()")
        page.goto(address + view.replace("run=DistMult&with=ComplEx&", ""))
        page.get_by_role("heading", level=1).first.wait_for()
        expect(page.locator(".loading")).to_have_count(0, timeout=60_000)
        for theme in ("light", "dark"):
            page.evaluate("theme => (document.documentElement.dataset.theme = theme)", theme)
            broken[f"{name}, {theme}"] = len(page.evaluate(AXE)["violations"])
    page.close()
    return broken


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+", help="the first one is of the embedded graph")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    measured: dict[str, Any] = {"weight": weight(), "load": os.getloadavg()[0], "runs": {}}
    with sync_playwright() as playwright:
        chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for i, path in enumerate(given.runs):
            run, line = load(path), {}
            with serving(path) as (_, address):
                line["first answer"] = first_answer(browser, address, run)
                line["map"] = frames(browser, address)
                if i == 0:
                    measured["axe"] = rules(browser, address)
            line["neighbours"] = kept(run)
            about = {
                "data": run.dataset.name,
                "model": run.name,
                "k": run.model.k,
                "entities": len(run.dataset.entities),
            }
            measured["runs"][path.name] = about | line
            print(path.name, json.dumps(line), flush=True)
        browser.close()
    text = json.dumps(measured, indent=1)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
