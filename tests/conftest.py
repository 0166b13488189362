import importlib.util
import math
import os
import random
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from hypothesis import settings

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # kernels run here as Python; Triton reads this when imported

import modulekge
from modulekge import machine
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.run import estimate
from modulekge.run.checkpoint import begin
from modulekge.run.folder import RunFolder
from modulekge.run.plan import NO_RECIPE, resolve
from modulekge.run.run import Run, load

settings.register_profile("untimed", deadline=None)  # a busy machine is no finding
settings.load_profile("untimed")


def pytest_addoption(parser):
    parser.addoption("--shuffle", type=int, metavar="SEED", help="files, and tests in each, in a drawn order")


def pytest_collection_modifyitems(config, items):
    if (seed := config.getoption("--shuffle")) is not None:
        draw = random.Random(seed)
        files = {path: draw.random() for path in sorted({item.path for item in items})}
        draw.shuffle(items)
        items.sort(
            key=lambda item: files[item.path]
        )  # together, so that what a file's tests share is made once


@pytest.fixture(autouse=True)
def _same_numbers_every_time():
    torch.manual_seed(0)
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _no_user_folders(monkeypatch, tmp_path):
    monkeypatch.delenv("MODULEKGE_DATA", raising=False)
    monkeypatch.setattr(estimate, "_QUICK", math.inf)  # no test depends on how fast this machine is
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def _no_further_process(request, monkeypatch):
    """Keep ``make test`` quick: what starts a process, a compiler or a browser is an integration test."""
    if request.node.get_closest_marker("integration"):
        return
    start = subprocess.Popen.__init__

    def refuse(self, args, *rest, **options):
        if args[0] not in (
            "git",
            "uname",
            "fc-list",
        ):  # which say in moments what a run is made of, and with which fonts
            pytest.fail(f"starts a process: {args}; mark it with pytest.mark.integration")
        start(self, args, *rest, **options)

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)


@pytest.fixture(scope="session")
def as_written():
    """Import a module of kernels without checks of shapes, which others get in tests but Triton is not."""

    def load(name):
        whole = f"modulekge.kernels.{name}"
        path = Path(modulekge.__file__).parent / "kernels" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(whole, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[whole] = module  # for kernels that use these
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def compiler():
    """What torch.compile needs on a CPU; it warns of itself, and warnings are errors here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not machine.can_compile.__wrapped__("cpu"):
            pytest.skip("nothing to compile loops with")


@pytest.fixture
def double():
    """Run a test in float64, where laws hold to many digits."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="session")
def family() -> Dataset:
    """Two families of three generations: parent, its inverse child, and the symmetric sibling."""
    people = ("ada", "bob", "cid", "dan", "eve", "fay", "gil", "hal")
    parent = [(0, 1), (0, 2), (1, 3), (2, 4), (5, 6), (5, 7)]
    triples = [(a, 0, b) for a, b in parent] + [(b, 1, a) for a, b in parent]
    triples += [(1, 2, 2), (2, 2, 1), (6, 2, 7), (7, 2, 6)]
    ids = torch.tensor(triples)
    held = torch.tensor([4, 12])
    train = torch.ones(len(ids), dtype=torch.bool)
    train[held] = False
    return Dataset(
        "family",
        Vocabulary("entity", people, {"ada": "Ada Lovelace"}, {"ada": "Wrote a program.", "zoe": "Nobody."}),
        Vocabulary("relation", ("parent", "child", "sibling")),
        ids[train],
        ids[held[:1]],
        ids[held[1:]],
    )


@pytest.fixture(scope="session")
def odd() -> Dataset:
    """A graph whose names hold what files and addresses are made of."""
    names = (
        "New York",
        "tab\there",
        "Zürich 北京",
        "quo\"te's",
        "back\\slash",
        "100%",
        "line\nend",
        "http://x/é",
    )
    triples = torch.tensor([(i, i % 2, (3 * i + 1) % 8) for i in range(8)])
    return Dataset(
        "odd",
        Vocabulary("entity", names, {"New York": "The\tBig Apple", "100%": "all of it"}),
        Vocabulary("relation", ("lies in", "http://x/r")),
        triples[:5],
        triples[5:6],
        triples[6:],
    )


@pytest.fixture
def drawn_run(tmp_path):
    """Make a run of a row with weights as they are drawn, and biases where it has them."""

    def make(dataset: Dataset, name: str, **settings) -> Run:
        model = {"k": 3, "scalar_scale": 0.5, **settings}
        config = resolve(dataset, name, [{"model": model}], recipe=NO_RECIPE)
        folder = RunFolder.create(
            tmp_path / "drawn" / f"{name}-{len(list(tmp_path.rglob('run.json')))}", config, dataset
        )
        weights, _ = begin(config, dataset)
        torch.nn.init.normal_(weights.entity_bias)
        folder.save_weights(weights)
        return load(folder.path)

    return make
