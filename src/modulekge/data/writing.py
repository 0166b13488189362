"""A synthetic graph as a folder of splits that 'train' reads, whole or not there at all."""

import gzip
import json
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from modulekge.data.benchmarks import SPLITS
from modulekge.data.synthetic.generate import SyntheticGraph
from modulekge.errors import DataError
from modulekge.shapes import Triples
from modulekge.version import __version__

STRUCTURE = "structure.json"
COUNTED = ("relations", "triples", "implied", "held_out")
Watch = Callable[[Iterator[Triples]], Iterator[Triples]]


def write_graph(graph: SyntheticGraph, path: Path, packed: bool = False, watch: Watch = iter) -> None:
    """Write train.tsv, valid.tsv and test.tsv, packed with gzip or not, and what was planted.

    ``watch`` may show the triples as they pass. Where nothing is held out there is train alone.
    """
    if path.exists():
        raise DataError(f"{path}: exists already; remove it or choose another --out")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=path.parent, prefix=".synth-", ignore_cleanup_errors=True
        ) as scratch:
            for split in SPLITS:
                if graph.sizes[split]:
                    _write_split(graph, watch(graph.chunks(split)), Path(scratch) / f"{split}.tsv", packed)
            (Path(scratch) / STRUCTURE).write_text(json.dumps(structure(graph), indent=1) + "\n", "utf-8")
            Path(scratch).chmod(0o755)
            Path(scratch).replace(path)
    except OSError as error:
        finding = f"{path}: cannot be written ({error.strerror}); nothing was kept"
        raise DataError(f"{finding}; free space or choose another --out") from None


def _write_split(graph: SyntheticGraph, chunks: Iterator[Triples], path: Path, packed: bool) -> None:
    names = pa.array([f"\t{name}\te" for name in graph.relations])
    with _opened(path, packed) as file:
        for triples in chunks:
            heads, relations, tails = (pa.array(column.numpy()) for column in triples.T)
            written = (heads.cast(pa.string()), names.take(relations), tails.cast(pa.string()))
            lines = pc.binary_join_element_wise("e", *written, "\n", "")
            file.write(lines.buffers()[2])  # the text of all lines, end to end


def _opened(path: Path, packed: bool) -> BufferedIOBase:
    if packed:  # without the time, so that equal graphs are equal files
        return gzip.GzipFile(path.with_name(f"{path.name}.gz"), "wb", compresslevel=1, mtime=0)
    return path.open("wb")


def structure(graph: SyntheticGraph) -> dict[str, Any]:
    """Return what was planted, for programs: sizes, and of each family its law and its relations."""
    return {
        "command": shlex.join(sys.argv),
        "version": __version__,
        "seed": graph.seed,
        "entities": graph.entities,
        "relations": len(graph.relations),
        "triples": graph.sizes,
        "families": [
            {
                "pattern": family.pattern,
                "law": family.law,
                "relations": family.names,
                "triples": family.facts,
                "implied": family.implied,
                "held_out": held,
            }
            for family, held in zip(graph.families, graph.held_out(), strict=True)
        ],
    }


def totals(graph: SyntheticGraph) -> dict[str, dict[str, int]]:
    """Return how many relations, triples, implied and held-out ones there are of each pattern."""
    found: dict[str, dict[str, int]] = {}
    for family, held in zip(graph.families, graph.held_out(), strict=True):
        counts = found.setdefault(family.pattern, dict.fromkeys(COUNTED, 0))
        more = (len(family.names), family.facts, family.implied, held)
        found[family.pattern] = {key: counts[key] + n for key, n in zip(COUNTED, more, strict=True)}
    return found
