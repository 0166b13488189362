"""A graph that all processes have read together, written as the files of a run beside its place."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from safetensors import safe_open
from torch import Tensor

from modulekge.data.dataset import SPLITS, Dataset, Fingerprint
from modulekge.data.layouts import folder_texts, plain_splits
from modulekge.data.lines import LONGEST
from modulekge.data.reading import name_of, spaces_note
from modulekge.data.registry import is_known
from modulekge.data.spread import Files, Names, Share, read_share
from modulekge.data.text import Form
from modulekge.data.texts import bounded, read_texts
from modulekge.errors import RunError
from modulekge.run.files import Part, explained, write_tensors
from modulekge.run.folder import RunFolder
from modulekge.run.graph import TRIPLES, VOCABULARY, as_json, of_known, read_graph
from modulekge.workers import Workers

_SOME = 1 << 18  # names or triples that are held at a time
Given = tuple[Path | None, Path | None]  # files of labels and of descriptions
Texts = Sequence[Mapping[str, str]]  # labels of entities, labels of relations, descriptions


@dataclass(frozen=True)
class Spread:
    """A graph in a folder of its own, from which a run takes its files."""

    folder: Path
    entities: int
    triples: int
    fingerprint: str
    notes: tuple[str, ...]

    def dataset(self) -> Dataset:
        """Read the graph without the names of entities."""
        about = {"entities": self.entities, "fingerprint": self.fingerprint}
        return replace(read_graph(self.folder, about, names=False), notes=self.notes)


def shared_files(data: str, columns: Sequence[str] | None, workers: Workers) -> Files:
    """Return the files of a graph that all processes can read together, if there are several."""
    path, files = Path(data), list[tuple[Path, Form]]()
    if workers.size > 1 and not any(map(is_known, (data, path.resolve().name))):
        workers.together(lambda: files.extend(plain_splits(path, columns)))
    return files if workers.least(len(files)) else []


@contextmanager
def read_by_all(
    source: Path, files: Files, given: Given, out: Path, workers: Workers, block: int = LONGEST
) -> Iterator[Spread]:
    """Read a folder of splits with all processes; what they write of it beside ``out`` goes at the end."""
    folder = Path(workers.led(lambda: _scratch(out)))
    try:
        found: list[dict[str, str]] = []
        workers.led(lambda: found.extend(_texts(source, *given)))
        yield _written(folder, source, read_share(files, workers, block), found or [{}, {}, {}])
    finally:
        if workers.leads:
            shutil.rmtree(folder, ignore_errors=True)


def _scratch(out: Path) -> str:
    """Make a folder beside the place of a run, if that is free."""
    try:
        RunFolder.check_free(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        return tempfile.mkdtemp(dir=out.parent, prefix=".run-")
    except OSError as error:
        raise RunError(f"{out}: cannot be made ({error.strerror}); choose another --out") from None


def _texts(source: Path, labels: Path | None, descriptions: Path | None) -> list[dict[str, str]]:
    """Return the labels of entities and of relations, and the descriptions."""
    called = read_texts(labels, "label") if labels else {}
    told = read_texts(descriptions, "description") if descriptions else {}
    entities, relations, beside = folder_texts(source)
    return [{**entities, **called}, {**relations, **called}, bounded({**beside, **told})[0]]


def _written(folder: Path, source: Path, share: Share, texts: Texts) -> Spread:
    """Write names in the first process, which has the others send them, and triples in all."""
    workers, counts, made = share.workers, share.counts, Fingerprint()
    for text in _vocabulary(name_of(source), share, texts, made):
        workers.led(partial(_append, folder / VOCABULARY, text))
    places = zip(SPLITS, share.splits, counts[: workers.rank].sum(0), counts.sum(0), strict=True)
    parts: dict[str, Tensor | Part] = {
        split: Part(rows, int(first), int(count)) for split, rows, first, count in places
    }
    write_tensors(folder / TRIPLES, parts, workers=workers)
    fingerprint = workers.led(lambda: _with_triples(made, folder / TRIPLES))
    notes = [
        spaces_note(source, kind, names.spaced, names.twice)
        for kind, names in (("entity", share.entities), ("relation", share.relations))
        if names.spaced
    ]
    return Spread(folder, share.entities.count, int(counts.sum()), fingerprint, tuple(notes))


def _vocabulary(name: str, share: Share, texts: Texts, made: Fingerprint) -> Iterator[str]:
    """Yield vocabulary.json piece by piece in the first process; the others send what they hold."""
    of_entities, of_relations, descriptions = texts
    relations = [name for some in _in_order(share.relations) for name in some]
    top = {"name": name, "relations": relations, "relation_labels": of_known(of_relations, relations)}
    yield f'{as_json(top)[:-1]},\n"entities": ['
    called, told, comma = dict[str, str](), dict[str, str](), ""
    for some in _in_order(share.entities):
        made.add_names(some)
        called |= of_known(of_entities, some)
        told |= of_known(descriptions, some)
        yield comma + as_json(some)[1:-1]
        comma = ", "
    yield f'], "entity_labels": {as_json(called)}, "entity_descriptions": {as_json(told)}}}'
    made.end()
    made.add_names(relations)
    made.end()


def _in_order(names: Names) -> Iterator[list[str]]:
    for start in range(0, names.count, _SOME):
        yield names.between(start, start + _SOME)


def _append(path: Path, text: str) -> None:
    with explained(path, path), path.open("a", encoding="utf-8") as file:
        file.write(text)


def _with_triples(made: Fingerprint, path: Path) -> str:
    """End a fingerprint with the triples of a file, some at a time."""
    with safe_open(path, framework="pt") as file:
        for split in SPLITS:
            triples = file.get_slice(split)
            for start in range(0, triples.get_shape()[0], _SOME):
                made.add_triples(triples[start : start + _SOME])
            made.end()
    return str(made)
