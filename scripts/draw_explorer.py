"""Take the pictures of the explorer that stand in docs/screenshots.

    modulekge serve runs/demo --port 8000 &
    python scripts/draw_explorer.py http://127.0.0.1:8000/ [NAME ...]

Needs Playwright, Pillow, and Chromium at /usr/bin/chromium or where the variable CHROMIUM says; the run is
one of the embedded graph.
"""

import io
import os
import sys
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

FOLDER = Path(__file__).parent.parent / "docs" / "screenshots"
DESK, TALL, PHONE = (1080, 760), (1080, 850), (360, 720)
ASKED = "?s where Serbia official_language ?l and ?l written_in ?s"
PICTURES = {
    "answers": ("#/ask?tail=Swahili&relation=official_language", "light", DESK),
    "compound": (f"#/compound?q={quote(ASKED)}", "light", TALL),
    "neighbourhood": ("#/around?name=France", "dark", DESK),
    "map": ("#/map", "light", DESK),
    "phone": ("#/ask?tail=Swahili&relation=official_language&new=1", "dark", PHONE),
}
COLOURS = 64  # of a picture; more only make it larger


def draw(browser: Browser, address: str, name: str) -> Path:
    """Open a view and keep what is seen of it."""
    view, scheme, (width, height) = PICTURES[name]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(address + view)
    page.get_by_role("heading", level=1).wait_for()
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1000)  # bars grow
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    page.close()
    path = FOLDER / f"{name}.png"
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def main(address: str, *names: str) -> None:
    """Take the pictures of these names, or every one."""
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name in names or PICTURES:
            path = draw(browser, address, name)
            print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
