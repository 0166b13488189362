"""Names that are imported when they are first used, so that what needs no PyTorch starts without it."""

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package, from the stub beside its file.

    The stub says where each public name is defined, for type checkers and for this: the names stand once.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text("utf-8"))
    homes = {
        alias.asname: (node.module, alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = homes[name]
        return getattr(importlib.import_module(str(module)), attribute)

    return get, lambda: sorted(homes), sorted(homes)
