"""Take the pictures of the explorer that stand in docs/screenshots.

    modulekge serve runs/demo runs/complex --port 8000 &
    python scripts/draw_explorer.py http://127.0.0.1:8000/ [NAME ...]

Needs Playwright, Pillow, and Chromium at /usr/bin/chromium or where the variable CHROMIUM says; the runs are
of the embedded graph.
"""

import io
import itertools
import os
import sys
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Browser, expect, sync_playwright

FOLDER = Path(__file__).parent.parent / "docs" / "screenshots"
SIZES = {"": (1080, 760), "-phone": (360, 720)}
OPEN = '["Monaco"]'
ASKED = "?s where Serbia official_language ?l and ?l written_in ?s"
PICTURES = {
    "start": ("#/", "light"),
    "entity": ("#/entity?name=France", "light"),
    "relation": ("#/relation?name=official_language", "light"),
    "answers": ("#/ask?tail=Swahili&relation=official_language", "light"),
    "why": ("#/why?head=Andorra&relation=borders&tail=Portugal", "light"),
    "compound": (f"#/compound?q={quote(ASKED)}", "light"),
    "neighbourhood": (f"#/around?name=France&open={quote(OPEN)}", "dark"),
    "map": ("#/map", "light"),
    "review": ("#/review", "dark"),
    "bulk": ("#/bulk", "light"),
    "run": ("#/run", "light"),
    "compare": ("#/compare?head=France&relation=borders", "dark"),
}
COLOURS = 64  # of a picture; more only make it larger


def draw(browser: Browser, address: str, name: str, size: str) -> Path:
    """Open a view and keep what is seen of it."""
    (view, scheme), (width, height) = PICTURES[name], SIZES[size]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(address + view)
    page.get_by_role("heading", level=1).wait_for()
    page.wait_for_load_state("networkidle")
    expect(page.locator(".loading")).to_have_count(0, timeout=60_000)
    page.wait_for_timeout(1000)  # bars grow
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    page.close()
    path = FOLDER / f"{name}{size}.png"
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def main(address: str, *names: str) -> None:
    """Take the pictures of these names, or every one."""
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, size in itertools.product(names or PICTURES, SIZES):
            path = draw(browser, address, name, size)
            print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
