"""Imports point down only, and heavy third parties stay where they are needed."""

import ast
import itertools
from pathlib import Path

import pytest

import modulekge

SOURCE = Path(modulekge.__file__).parent
LAYERS = (
    "shapes errors suggest version installation machine config json_io workers lazy choices interrupts"
    " wording frames",
    "algebra kernels data",
    "models",
    "evaluation",
    "training",
    "run",
    "answers explanations",
    "studies",
    "exports",
    "server",
    "__init__",
    "render",
    "cli commands",
    "__main__",
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names.split()}
BESIDE = {
    *itertools.permutations(("algebra", "data"), 2),
    *itertools.permutations(("kernels", "data"), 2),
    *itertools.permutations(("answers", "explanations"), 2),
}  # of one level, and strangers to each other
CORE = {"torch", "numpy", "safetensors", "pyarrow", "rich", "typer", "jaxtyping"}
WEB = {
    "fastapi",
    "pydantic",
    "starlette",
    "uvicorn",
    "mcp",
}  # the extras "serve" and "agents"; these files import them, and the program only these
WEB_FILES = {
    "http.py",
    "mcp.py",
    "pages.py",
    "requests.py",
    "routes.py",
    "server.py",
    "tables.py",
    "tools.py",
}
KERNELS = {
    "distance_triton.py",
    "entities_triton.py",
    "messages_triton.py",
    "path_layer_triton.py",
    "path_update_triton.py",
    "step_triton.py",
}
WITH_TORCH = {"triton"}  # which brings it where there are GPUs; only files of kernels import it


def imports():
    """Yield (file, part that imports, module imported)."""
    for path in SOURCE.rglob("*.py"):
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules = [
                    f"{node.module}.{a.name}" if node.module == "modulekge" else node.module
                    for a in node.names
                ]
            yield from ((path, part, module) for module in modules)


def test_every_part_has_its_level():
    parts = {
        p.name.removesuffix(".py")
        for p in SOURCE.iterdir()
        if p.suffix == ".py" or (p / "__init__.py").exists()
    }
    assert parts == set(LEVEL)


def test_imports_point_down():
    for path, part, module in imports():
        if module.startswith("modulekge."):
            target = module.split(".")[1]
            assert LEVEL[target] <= LEVEL[part], f"{path}: {part} imports {target}"
            assert (part, target) not in BESIDE, f"{path}: {part} imports {target}"


@pytest.mark.integration
def test_the_core_needs_no_more_than_it_says():
    import sys

    ours = {"modulekge", "modulekge_program", *sys.stdlib_module_names}
    special = {*KERNELS, *WEB_FILES}
    found = {module.split(".")[0] for path, _, module in imports() if path.name not in special}
    assert found - ours == CORE
    web = {module.split(".")[0] for path, _, module in imports() if path.name in WEB_FILES}
    assert web - ours - CORE == WEB
    eager = {module for path, _, module in imports() if path.name not in WEB_FILES}
    assert not eager & {f"modulekge.server.{name[:-3]}" for name in WEB_FILES}
    kernels = {module.split(".")[0] for path, _, module in imports() if path.name in KERNELS}
    assert kernels - ours - CORE == WITH_TORCH
