import importlib.util
import os
from pathlib import Path

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # kernels run here as Python; Triton reads this when imported

from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary


@pytest.fixture(autouse=True)
def _same_numbers_every_time():
    torch.manual_seed(0)
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _no_user_folders(monkeypatch, tmp_path):
    monkeypatch.delenv("MODULEKGE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def as_written():
    """Import a module of kernels without checks of shapes, which others get in tests but Triton is not."""

    def load(beside):
        path = Path(beside.__file__).with_name("kernels.py")
        spec = importlib.util.spec_from_file_location("kernels", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


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
        Vocabulary("entity", people, {"ada": "Ada Lovelace"}),
        Vocabulary("relation", ("parent", "child", "sibling")),
        ids[train],
        ids[held[:1]],
        ids[held[1:]],
    )
