"""Files of a run: written whole or not at all, read with errors that say what to do."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from modulekge.errors import RunError


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file whole or not at all: beside it first, then in its place."""
    scratch = path.with_name(f".{path.name}.part")
    try:
        with scratch.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except OSError as error:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)
        finding = f"{path}: cannot be written ({error.strerror})"
        raise RunError(f"{finding}; free space or choose another folder; what was there is kept") from None


def read_json(path: Path) -> dict[str, Any]:
    """Read a file of a run that holds a JSON object."""
    try:
        fields = parse_json(path.read_text("utf-8"))
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}; the run folder is incomplete") from None
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path}: not valid JSON ({error}); the run folder is damaged") from None
    if not isinstance(fields, dict):
        raise RunError(f"{path}: expected an object with keys; the run folder is damaged")
    return fields


def parse_json(text: str | bytes) -> Any:
    """Read JSON; NaN and Infinity, which it does not have, are a ValueError as all else that is none."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a safetensors file, and what stands in its header."""
    try:
        with safe_open(path, framework="pt") as file:
            return {key: file.get_tensor(key) for key in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except FileNotFoundError:
        raise RunError(f"{path}: no such file; the run folder is incomplete") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise RunError(f"{path}: not a readable safetensors file ({error}); restore it from a copy") from None


def on_cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors as a file can hold them."""
    return {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
