"""Triples by name, from a file or from anywhere, as ids."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import torch

from modulekge.data.dataset import Dataset
from modulekge.errors import QuestionError, UnknownNameError
from modulekge.shapes import Triples

if TYPE_CHECKING:
    from modulekge.data.readers.tabular import ArrowStream

Named = tuple[str, str, str]
Unknown = Literal["refuse", "skip"]


@dataclass(frozen=True)
class NamedTriples:
    """Triples (head, relation, tail) by name, and how to say where the i-th stands."""

    rows: Sequence[Named]
    place: Callable[[int], str] = lambda i: f"triple {i + 1}"

    @classmethod
    def read(cls, path: Path, columns: str | Sequence[str] | None = None) -> "NamedTriples":
        """Read a file of triples in any format that a graph may have; it is not split."""
        from modulekge.data.readers.columns import named_columns  # Arrow comes with it; few questions take it
        from modulekge.data.readers.files import read_file
        from modulekge.data.readers.places import place
        from modulekge.data.readers.tables import rows_of

        chosen = named_columns(columns)
        return cls(rows_of(read_file(path, chosen).splits[0]), partial(place, path, chosen))

    @classmethod
    def of(cls, triples: "NamedTriples | ArrowStream | Iterable[Named]") -> "NamedTriples":
        """Return triples that may have come without their places, as rows or as a table."""
        if isinstance(triples, NamedTriples):
            return triples
        if not hasattr(triples, "__arrow_c_stream__"):
            return cls(list(triples))
        from modulekge.data.readers.tables import rows_of
        from modulekge.data.readers.tabular import read_tabular

        return cls(rows_of(read_tabular(triples).splits[0]), lambda i: f"row {i + 1}")

    def ids(self, dataset: Dataset, unknown: Unknown) -> Triples:
        """Return the ids of a graph; an unknown name, or a label of several, is refused or left out."""
        if unknown not in get_args(Unknown):
            raise QuestionError(f"unknown = {unknown!r}: expected {' or '.join(get_args(Unknown))}")
        vocabularies = (dataset.entities, dataset.relations, dataset.entities)
        found: list[tuple[int, ...]] = []
        for i, names in enumerate(self.rows):
            meant = [v.meant(name) for v, name in zip(vocabularies, names, strict=True)]
            if all(len(ids) == 1 for ids in meant):
                found.append(tuple(ids[0] for ids in meant))
            elif unknown == "refuse":
                bad = next(place for place, ids in enumerate(meant) if len(ids) != 1)
                try:
                    vocabularies[bad].find(names[bad])
                except UnknownNameError as error:
                    raise UnknownNameError(f"{self.place(i)}: {error}") from None
        return torch.tensor(found, dtype=torch.long).view(-1, 3)
