"""Files of a run: written whole or not at all, read with errors that say what to do."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TextIO

from modulekge.errors import RunError

_DAMAGED = "the run folder is damaged"


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file whole or not at all: beside it first, then in its place."""
    scratch = path.with_name(f".{path.name}.part")
    with explained(path, scratch):
        write_through(scratch, content.encode() if isinstance(content, str) else content)
        scratch.replace(path)


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """Give a path beside the target; what is written there takes the target's place at the end."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=target.parent, prefix=".export-", ignore_cleanup_errors=True) as beside:
            path = Path(beside) / target.name
            yield path
            path.replace(target)
    except OSError as error:
        finding = f"cannot be written ({error.strerror or error})"
        raise RunError(f"{target}: {finding}; choose another target or free space") from None


@contextmanager
def explained(path: Path, scratch: Path) -> Iterator[None]:
    """Say what a user can do if a file cannot be written, and leave no part of it."""
    try:
        yield
    except OSError as error:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)
        raise unwritable(path, error) from None


def write_through(path: Path, content: bytes, mode: Literal["wb", "ab"] = "wb") -> None:
    """Write a file, or more of it, to the disk itself, so that it is there even if the machine goes down."""
    with path.open(mode) as file:
        file.write(content)
        settle(file)


def unwritable(path: Path, error: OSError) -> RunError:
    """Say that a file could not be written, and why."""
    finding = f"{path}: cannot be written ({error.strerror})"
    return RunError(f"{finding}; free space or choose another folder; what was there is kept")


def as_text(argument: str) -> str:
    """Return what was given on a command line as text that can be written, whatever bytes it came as."""
    return os.fsencode(argument).decode("utf-8", "replace")


def is_text(path: str) -> bool:
    """Say whether the bytes of a path are text, as some readers of files want them."""
    try:
        return bool(os.fsencode(path).decode())
    except UnicodeDecodeError:
        return False


def settle(file: Any) -> None:
    """Have what was written go to the disk itself."""
    file.flush()
    os.fsync(file.fileno())


def read_json(path: Path, remedy: str = _DAMAGED) -> dict[str, Any]:
    """Read a file of a run that holds a JSON object."""
    return _object(path, lambda file: file.read(), remedy)


def read_top(path: Path) -> dict[str, Any]:
    """Read the fields in the first line of such a file, which ends with the comma before the next one."""
    return _object(path, lambda file: file.readline().rstrip().removesuffix(",") + "}")


def _object(path: Path, text: Callable[[TextIO], str], remedy: str = _DAMAGED) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8") as file:
            fields = parse_json(text(file))
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}; the run folder is incomplete") from None
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path}: not valid JSON ({error}); {remedy}") from None
    if not isinstance(fields, dict):
        raise RunError(f"{path}: expected an object with keys; {remedy}")
    return fields


def parse_json(text: str | bytes) -> Any:
    """Read JSON; a ValueError where it is not valid, also by NaN and Infinity, which JSON does not have."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def check_tensors(path: Path) -> None:
    """Make sure that a safetensors file is as long as its header says, without reading what it holds."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        try:
            fields = parse_json(file.read(min(length, size)))
            ends = [field["data_offsets"][1] for key, field in fields.items() if key != "__metadata__"]
            whole = size == 8 + length + max(ends, default=0)
        except (ValueError, RecursionError, AttributeError, TypeError, LookupError):
            whole = False
    if not whole:
        raise RunError(f"{path}: not a readable safetensors file; restore it from a copy")
