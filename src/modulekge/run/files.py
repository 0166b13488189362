"""Files of a run: written whole or not at all, read with errors that say what to do."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError, safe_open
from torch import Tensor

from modulekge.errors import RunError


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file whole or not at all: beside it first, then in its place."""
    scratch = path.with_name(f".{path.name}.part")
    try:
        write_through(scratch, content.encode() if isinstance(content, str) else content)
        scratch.replace(path)
    except OSError as error:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)
        raise unwritable(path, error) from None


def write_through(path: Path, content: bytes, mode: Literal["wb", "ab"] = "wb") -> None:
    """Write a file, or more of it, to the disk itself, so that it is there even if the machine goes down."""
    with path.open(mode) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def unwritable(path: Path, error: OSError) -> RunError:
    """Say that a file could not be written, and why."""
    finding = f"{path}: cannot be written ({error.strerror})"
    return RunError(f"{finding}; free space or choose another folder; what was there is kept")


def as_text(argument: str) -> str:
    """Return what was given on a command line as text that can be written, whatever bytes it came as."""
    return os.fsencode(argument).decode("utf-8", "replace")


def read_json(path: Path) -> dict[str, Any]:
    """Read a file of a run that holds a JSON object."""
    try:
        fields = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}; the run folder is incomplete") from None
    except ValueError as error:
        raise RunError(f"{path}: not valid JSON ({error}); the run folder is damaged") from None
    if not isinstance(fields, dict):
        raise RunError(f"{path}: expected an object with keys; the run folder is damaged")
    return fields


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
