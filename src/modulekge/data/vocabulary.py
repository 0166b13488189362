"""Names of entities or relations, their ids, and their labels and descriptions for people."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NoReturn

from modulekge.errors import RunError, UnknownNameError
from modulekge.frames import Shown
from modulekge.suggest import nearest


class Unread:
    """Names that were left in their file: all that is known of them is how many they are."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, i: int | slice) -> NoReturn:
        raise RunError("names of entities are not held where several processes train; ask in one process")

    def __iter__(self) -> Iterator[str]:
        return self[:]


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary(Shown):
    """Id ``i`` belongs to ``names[i]``, shown as its label where it has one."""

    kind: Literal["entity", "relation"]
    names: tuple[str, ...] | Unread
    labels: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def _about(self) -> Mapping[str, object]:
        return {PLURAL[self.kind]: len(self), "labels": len(self.labels)}

    def label(self, i: int) -> str:
        """Return what to call id ``i`` before people."""
        return self.labels.get(self.names[i], self.names[i])

    def called(self, i: int) -> str:
        """Return the label of id ``i``, with its name where others have that label too."""
        label, name = self.label(i), self.names[i]
        return label if self.meant(label) == [i] else f"{label} ({name})"

    def description(self, i: int) -> str | None:
        """Return what is said about id ``i``, if anything is."""
        return self.descriptions.get(self.names[i])

    @cached_property
    def _by_name(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def _by_text(self) -> dict[str, list[int]]:
        """Ids by name and by label, whatever the case."""
        ids: dict[str, list[int]] = {}
        for i, name in enumerate(self.names):
            for text in {name.casefold(), self.label(i).casefold()}:
                ids.setdefault(text, []).append(i)
        return ids

    def meant(self, text: str) -> list[int]:
        """Return the ids that a text may mean: of its name, else of all that have it as their label."""
        if (exact := self._by_name.get(text)) is not None:
            return [exact]
        found = self._by_text.get(text.casefold(), [])
        return [i for i in found if self.label(i) == text] or found

    def exact(self, text: str) -> int | None:
        """Return the id of a name, or of a label that only one name has, as it is written; else None."""
        found = [i for i in self.meant(text) if text in (self.names[i], self.label(i))]
        return self._only(text, found) if found else None

    def find(self, text: str) -> int:
        """Return the id of a name, or of a label that only one name has, whatever its case."""
        if found := self.meant(text):
            return self._only(text, found)
        raise UnknownNameError(f"unknown {self.kind} {text!r}; {self._advice(text)}")

    def _only(self, text: str, found: list[int]) -> int:
        if len(found) == 1:
            return found[0]
        raise UnknownNameError(
            f"{text!r} is the label of {len(found)} {PLURAL[self.kind]}; give one of the names "
            f"{', '.join(repr(self.names[i]) for i in found[:5])}"
        )

    def _advice(self, text: str) -> str:
        if near := nearest(text, [*self.names, *self.labels.values()]):
            return f"did you mean {' or '.join(map(repr, near))}?"
        some = ", ".join(repr(self.label(i)) for i in range(min(3, len(self))))
        return f"the graph has {len(self)} {PLURAL[self.kind]}, such as {some}"


PLURAL = {"entity": "entities", "relation": "relations"}
