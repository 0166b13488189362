"""Files of tensors: written whole or not at all, by one process or by several, and read with clear errors."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from modulekge.errors import RunError
from modulekge.run.files import explained, settle
from modulekge.workers import ALONE, Workers

_KINDS = {torch.float32: "F32", torch.float64: "F64", torch.int32: "I32", torch.int64: "I64"}
_PIECE = 1 << 26  # bytes brought to the CPU at a time


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of a tensor that are held here: from which on, of how many in all."""

    rows: Tensor
    first: int
    count: int

    @property
    def shape(self) -> list[int]:
        """Of the tensor of all rows."""
        return [self.count, *self.rows.shape[1:]] if self.rows.dim() else []

    @property
    def row_size(self) -> int:
        """Bytes of a row."""
        return self.rows.element_size() * prod(self.rows.shape[1:])


def write_tensors(
    path: Path,
    tensors: Mapping[str, Tensor | Part],
    metadata: Mapping[str, str] | None = None,
    workers: Workers = ALONE,
) -> None:
    """Write a safetensors file, whole or not at all; of a part, each process writes its rows in their place.

    So it is the same file, however many processes there are.
    """
    parts = {
        key: x if isinstance(x, Part) else Part(x, 0, len(x) if x.dim() else 1) for key, x in tensors.items()
    }
    header, starts, end = _header(parts, metadata or {})
    scratch = path.with_name(f".{path.name}.part")

    def make_room() -> None:
        with explained(path, scratch), scratch.open("wb") as file:
            file.write(header)
            file.truncate(end)

    def fill() -> None:
        with explained(path, scratch), scratch.open("r+b") as file:
            for key, part in parts.items():
                if isinstance(tensors[key], Part) or workers.is_main:
                    _write_rows(file, starts[key] + part.first * part.row_size, part.rows)
            settle(file)

    def take_its_place() -> None:
        with explained(path, scratch):
            scratch.replace(path)

    workers.on_main(make_room)
    workers.all_or_none(fill)
    workers.on_main(take_its_place)


def _header(parts: Mapping[str, Part], metadata: Mapping[str, str]) -> tuple[bytes, dict[str, int], int]:
    """Return the header of a safetensors file, where each tensor starts in it, and where it ends."""
    fields: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    places, end = {}, 0
    for key, part in parts.items():
        start, end = end, end + part.count * part.row_size
        places[key] = start
        fields[key] = {"dtype": _KINDS[part.rows.dtype], "shape": part.shape, "data_offsets": [start, end]}
    text = json.dumps(fields, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    size = 8 + len(text)
    return (
        len(text).to_bytes(8, "little") + text,
        {key: size + start for key, start in places.items()},
        size + end,
    )


def _write_rows(file: Any, start: int, rows: Tensor) -> None:
    """Write a tensor at a place of a file, a piece at a time."""
    file.seek(start)
    flat = rows.detach().reshape(-1)
    for piece in flat.split(_PIECE // flat.element_size()) if flat.numel() else ():
        file.write(piece.cpu().contiguous().view(torch.uint8).numpy())


def read_tensors(
    path: Path, held: Callable[[str, list[int]], slice | None] = lambda key, shape: None
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a safetensors file, and what stands in its header; of a tensor, perhaps some rows only."""
    with open_tensors(path) as file:
        tensors = {}
        for key in file.keys():  # noqa: SIM118
            part = file.get_slice(key)
            rows = held(key, part.get_shape())
            tensors[key] = file.get_tensor(key) if rows is None else part[rows.start : rows.stop]
        return tensors, file.metadata() or {}


@contextmanager
def open_tensors(path: Path) -> Iterator[Any]:
    """Open a safetensors file; whatever is wrong with it, then or as it is read, is one line."""
    try:
        path.open("rb").close()  # what may not be read is missing, if safetensors is asked
        with safe_open(path, framework="pt") as file:
            yield file
    except FileNotFoundError:
        raise RunError(f"{path}: no such file; the run folder is incomplete") from None
    except PermissionError:
        raise RunError(f"{path}: may not be read; change its permissions") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise RunError(f"{path}: not a readable safetensors file ({error}); restore it from a copy") from None
