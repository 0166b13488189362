"""A real browser on a real server, over runs that train in seconds."""

import contextlib
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from program import call

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
FLAGS = ["no-sandbox", "disable-gpu", "disable-background-networking", "disable-component-update"]
FLAGS += ["disable-sync", "no-first-run"]
PATIENCE = 30_000  # ms that a loaded machine may take
SMALL = {"train.epochs": 4, "train.eval_every": 1, "train.batch": 512, "model.k": 16}
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"


def trained(folder: Path, data: str, model: str, *more: str) -> Path:
    """Train a small run in a folder."""
    chosen = [f"--set={key}={value}" for key, value in SMALL.items()]
    done = call(
        "train", data, "--recipe=none", f"--model={model}", f"--out={model}", *chosen, *more, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return folder / model


@contextlib.contextmanager
def serving(*runs: Path, port: str = "0", **variables: str):
    """Serve runs, at a free port unless said; yields the process and the address."""
    command = [sys.executable, "-m", "modulekge", "serve", *map(str, runs), "--port", port]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            address = re.search(r"http://\S+", process.stdout.readline())[0]
            for _ in range(200):  # the line stands before the first connection is taken
                with (
                    contextlib.suppress(OSError),
                    urllib.request.urlopen(f"{address}health", timeout=30),
                ):
                    break
                time.sleep(0.05)
            yield process, address
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def installed() -> None:
    """Skip before anything is trained."""
    pytest.importorskip("playwright", reason="needs Playwright: pip install playwright")
    pytest.importorskip("uvicorn", reason="needs a server: pip install '.[serve]'")
    if not CHROMIUM.exists():
        pytest.skip(f"needs Chromium: none at {CHROMIUM}; the variable CHROMIUM may say where it is")


@pytest.fixture(scope="session")
def runs(installed, tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("explored")
    return trained(folder, "world", "DistMult"), trained(folder, "world", "ComplEx")


@pytest.fixture(scope="session")
def hostile_run(installed, tmp_path_factory) -> Path:
    """A run whose names and texts would be scripts if they were markup, or are very long.

    Of the entity ``late`` test alone knows something.
    """
    folder = tmp_path_factory.mktemp("hostile")
    names = ["a&b", "<b>bold</b>", "c'\"d", "plain", "long" * 40, *(f"e{i}" for i in range(8))]
    relations = ["knows <i>", "/film/film/release_date_s./film/film_regional_release_date/region" * 2]
    lines = [f"{a}\t{r}\t{b}" for a in names for b in names if a < b for r in relations]
    train = [line for i, line in enumerate(lines) if i % 5 != 4]
    parts = {"train": train, "valid": lines[4::10], "test": [*lines[9::10], f"late\t{relations[0]}\te1"]}
    (folder / "graph").mkdir()
    for split, part in parts.items():
        (folder / "graph" / f"{split}.tsv").write_text("\n".join(part) + "\n", "utf-8")
    (folder / "labels.tsv").write_text(f"plain\t{HOSTILE}\n", "utf-8")
    told = {"plain": HOSTILE, "e0": "\u202eلغة عربية", "long" * 40: "endless" * 1000}
    lines = [f"{name}\t{text}\n" for name, text in told.items()]
    (folder / "told.tsv").write_text("".join(lines), "utf-8")
    texts = "--labels=labels.tsv", "--descriptions=told.tsv"
    return trained(folder, "graph", "DistMult", *texts)


@pytest.fixture(scope="session")
def hostile(hostile_run):
    with serving(hostile_run) as (_, address):
        yield address


@pytest.fixture
def markup() -> str:
    return HOSTILE


@pytest.fixture
def serve():
    return serving


@pytest.fixture(scope="session")
def address(runs, hostile_run):
    """The address of two runs of one graph, and one of another."""
    with serving(*runs, hostile_run) as (_, address):
        yield address


@pytest.fixture(scope="module")
def chromium(installed):
    """Not for the session: while it is open, nothing else in this process can run an event loop."""
    from playwright import sync_api

    sync_api.expect.set_options(timeout=PATIENCE)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[f"--{flag}" for flag in FLAGS])
        yield browser
        browser.close()


@pytest.fixture
def new_page(chromium):
    """Make pages of which the browser may not complain: no errors, nothing refused or from elsewhere."""
    contexts, complaints = [], []

    def make(expected: str = "nothing is expected", **settings):
        contexts.append(chromium.new_context(**{"viewport": {"width": 1200, "height": 900}, **settings}))
        page = contexts[-1].new_page()
        page.set_default_timeout(PATIENCE)

        def complain(text):
            if not re.search(expected, text):
                complaints.append(text)

        page.on("console", lambda said: complain(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: complain(f"error: {error}"))
        page.on("response", lambda got: got.ok or got.status == 304 or complain(f"{got.status}: {got.url}"))
        page.on("requestfailed", lambda lost: _given_up(lost) or complain(f"{lost.failure}: {lost.url}"))
        page.on("request", lambda made: "127.0.0.1" in made.url or complain(f"elsewhere: {made.url}"))
        return page

    yield make
    for context in contexts:
        context.close()
    assert complaints == []


def _given_up(request) -> bool:
    """The page itself stops waiting for what is no longer shown."""
    return request.failure == "net::ERR_ABORTED"
