"""A run folder is data: nothing in it is imported, unpickled or executed, whatever it is called."""

import ast
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import modulekge
from modulekge.run.train import train

pytestmark = pytest.mark.integration

SOURCE = Path(modulekge.__file__).parent
FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "runpy", "code", "yaml"}
FORBIDDEN_NAMES = {"eval", "exec", "compile", "__import__"}  # as functions; a method may be called so
FORBIDDEN_CALLS = {
    "torch.load",
    "np.load",
    "numpy.load",
    "os.system",
    "os.popen",
    "torch.jit.load",
    "torch.hub.load",
}
TOUCH = "import pathlib; pathlib.Path({!r}).touch()\n"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_library_has_no_way_to_run_what_it_reads(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None)
            names = [module] if module else [alias.name for alias in node.names]
            assert not {name.split(".")[0] for name in names} & FORBIDDEN_MODULES
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in FORBIDDEN_NAMES | FORBIDDEN_CALLS, f"{path}:{node.lineno}"
            shell = [word for word in node.keywords if word.arg in ("shell", "allow_pickle")]
            assert not shell, f"{path}:{node.lineno}"


class Trap:
    """Touches a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (Path.touch, (self.mark,))


def test_a_run_folder_full_of_code_is_only_read(family, tmp_path):
    run = train(family, "ComplEx", {"model.k": 2, "train.epochs": 1}, tmp_path / "run").folder.path
    mark = tmp_path / "it ran"
    code = TOUCH.format(str(mark))
    for name in (
        "__init__",
        "__main__",
        "setup",
        "conftest",
        "sitecustomize",
        "usercustomize",
        "json",
        "torch",
        "safetensors",
    ):
        (run / f"{name}.py").write_text(code)
    (run / "modulekge").mkdir()
    (run / "modulekge" / "__init__.py").write_text(code)
    (run / "evil.pth").write_text(code)
    for name in ("pytorch_model.bin", "weights.pt", "model.pkl", "optimizer.pt"):
        (run / name).write_bytes(pickle.dumps(Trap(mark)))
    torch.save({"trap": Trap(mark)}, run / "last.pt")
    pickle.loads((run / "model.pkl").read_bytes())
    assert mark.exists()  # the trap works
    mark.unlink()
    for command in (
        ("predict", ".", "--head", "ada", "--relation", "parent"),
        ("resume", ".", "--set", "train.epochs=2"),
        ("export", ".", "../vectors.parquet"),
    ):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "modulekge", *command],  # -P: as the console script, not from here
            cwd=run,
            env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert not mark.exists(), command


def test_a_pickle_in_the_place_of_weights_is_refused_unread(family, tmp_path):
    run = train(family, "ComplEx", {"model.k": 2, "train.epochs": 1}, tmp_path / "run").folder.path
    mark = tmp_path / "it ran"
    for name in ("weights.safetensors", "triples.safetensors", "vocabulary.json"):
        before = (run / name).read_bytes()
        torch.save(Trap(mark), run / name)
        with pytest.raises(modulekge.errors.ModulekgeError, match=name):
            modulekge.load(run)
        (run / name).write_bytes(before)
    assert not mark.exists()
