"""What in a graph would spoil training or its figures, and what to do about it."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from modulekge.data.compositions import Composition, compositions
from modulekge.data.dataset import Dataset
from modulekge.data.overlaps import Likeness, Overlap, overlaps
from modulekge.data.readers.columns import BETWEEN
from modulekge.data.readers.files import problems
from modulekge.data.readers.headers import Header
from modulekge.data.readers.layouts import files_of
from modulekge.data.statistics import Statistics, statistics_of
from modulekge.data.vocabulary import PLURAL, Vocabulary
from modulekge.frames import Rows
from modulekge.wording import counted

Level = Literal["problem", "warning", "note"]
LEVELS: tuple[Level, ...] = get_args(Level)
_MOST = 100  # lines of a file that are told
_FEW = 5  # findings of one kind that are told one by one
_NUMBER = re.compile(r"[-+]?[\d.,:/ -]*\d[\d.,:/ %-]*")  # or a date
_MANY_NUMBERS, _MANY_CELLS, _KNOWN_PARTS = 0.8, 0.1, 0.5  # shares of what a relation leads to
_TOLD = 40  # characters of a name


@dataclass(frozen=True)
class Finding:
    """Something worth knowing: how bad it is, what was found, and what helps."""

    level: Level
    what: str
    advice: str

    def __str__(self) -> str:
        return f"{self.level}: {self.what}" + (f"; {self.advice}" if self.advice else "")


class Findings(Rows[Finding]):
    """What was found in a graph, the worst first."""

    kind, what = Finding, ("finding", "findings")

    def __repr__(self) -> str:
        return "\n".join([self._title(), *map(str, self)])


def examine_files(path: Path, columns: Sequence[str] | None = None, header: Header = None) -> Findings:
    """Return what is wrong with the lines of a file of triples, or of a folder's files of splits."""
    found = Findings()
    for file in [path] if path.is_file() else files_of(path):
        texts = list(problems(file, columns, _MOST + 1, header))
        found += [Finding("problem", text, "") for text in _gathered(file, texts[:_MOST])]
        if len(texts) > _MOST:
            found.append(Finding("problem", f"{file}: there are more; these are the first {_MOST}", ""))
    return found


def _gathered(file: Path, texts: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with the lines of a file; what many have in common once, with where they are."""
    places: dict[str, list[str]] = {}
    for text in texts:
        line, _, what = text.removeprefix(f"{file}:").partition(": ")
        if line.isdecimal():
            places.setdefault(what, []).append(line)
        else:
            yield text
    for what, lines in places.items():
        if len(lines) > _FEW:
            more = f"likewise {len(lines) - 1} lines more: {', '.join(lines[1:_FEW])}, ..."
            yield f"{file}:{lines[0]}: {what}; {more}"
        else:
            yield from (f"{file}:{line}: {what}" for line in lines)


STAGES = ("counting", "comparing names", "comparing relations", "looking for compositions")


def doctor(dataset: Dataset, begin: Callable[[str], None] = lambda stage: None) -> Findings:
    """Return what in a graph would spoil training or its figures, the worst first; tell ``begin`` each stage.

    >>> modulekge.doctor(modulekge.open_dataset("my-graph.csv"))  # doctest: +SKIP
    """
    found = [Finding("note", note, "") for note in dataset.notes]
    begin(STAGES[0])
    statistics = statistics_of(dataset)
    found += _splits(statistics)
    begin(STAGES[1])
    found += [*_names(dataset.entities), *_names(dataset.relations), *_cells(dataset)]
    begin(STAGES[2])
    found += _relations(statistics, overlaps(dataset))
    begin(STAGES[3])
    found += [*_compositions(compositions(dataset)), *_shape(statistics)]
    return Findings(sorted(found, key=lambda finding: LEVELS.index(finding.level)))


# By what statistics count in each split
_IN_SPLITS: dict[str, tuple[Level, str, str, str]] = {
    "shared_with_train": (
        "problem",
        "triple of {} stands in train too",
        "triples of {} stand in train too",
        "they are answered from memory; take them out of one of the two",
    ),
    "duplicates": (
        "warning",
        "triple of {} is repeated",
        "triples of {} are repeated",
        "they weigh twice in training or in the figures; keep each once",
    ),
    "unseen_triples": (
        "warning",
        "triple of {} has an entity that train has not",
        "triples of {} have an entity that train has not",
        "they can only be guessed; give one file of all triples to have it split without this",
    ),
}


def _splits(statistics: Statistics) -> Iterator[Finding]:
    for field, (level, one, many, advice) in _IN_SPLITS.items():
        for split, count in getattr(statistics, field).items():
            if count:
                yield Finding(level, counted(count, one.format(split), many.format(split)), advice)
    for split, count in statistics.triples.items():
        if count == 0:
            advice = "the best epoch is chosen on valid and figures are of test: put some triples there"
            yield Finding("warning", f"{split} is empty", advice)
    test = statistics.triples["test"]
    leaks = statistics.leaks["any of these"]
    if leaks > 0.05 * max(1, test):
        yield Finding(
            "warning",
            f"{leaks:,} of {counted(test, 'test triple')} "
            f"{'joins' if leaks == 1 else 'join'} a pair of entities that train joins in another way",
            "figures are flattered; keep a pair in one split, in a folder of train, valid and test, or drop "
            "relations that repeat others (below)",
        )


def _names(vocabulary: Vocabulary) -> Iterator[Finding]:
    groups = spelt_alike(vocabulary.names)
    if not groups:
        return
    named = ", ".join(" and ".join(map(repr, group)) for group in groups[:3]) + ", ..." * (len(groups) > 3)
    kind, count = PLURAL[vocabulary.kind], sum(map(len, groups))
    yield Finding(
        "warning",
        f"{count:,} names of {kind} differ from others in case, spaces or Unicode form only ({named})",
        "each is learned by itself; write them alike where they mean the same",
    )


def _cells(dataset: Dataset) -> Iterator[Finding]:
    """Find relations that lead to numbers, or to names that are several values in one cell."""
    names, relations = dataset.entities.names, dataset.relations.names
    known = set(names)
    pairs = dataset.train[:, 1:].unique(dim=0)
    for relation, tails in enumerate(
        pairs[:, 1].split(pairs[:, 0].bincount(minlength=len(relations)).tolist())
    ):
        texts = [names[tail] for tail in tails.tolist()]
        numbers = [text for text in texts if _NUMBER.fullmatch(text)]
        if len(texts) >= _FEW and len(numbers) >= _MANY_NUMBERS * len(texts):
            share = f"{len(numbers) / len(texts):.0%} of what it leads to is numbers or dates"
            what = f"{relations[relation]}: {share} ({_told(numbers)}), which are names here, equal or not"
            yield Finding("note", what, "leave it out, or write ranges, unless equal ones mean one thing")
        for mark in BETWEEN:
            several = [text for text in texts if mark in text]
            parts = [part.strip() for text in several for part in text.split(mark)]
            if len(several) >= max(_FEW, _MANY_CELLS * len(texts)) and (
                sum(part in known for part in parts) >= _KNOWN_PARTS * len(parts)
            ):
                count = counted(len(several), "name holds", "names hold")
                what = f"{count} several others ({_told(several)})"
                advice = f"give each a row; of a wide table: --columns 'ID,*{relations[relation]}[{mark}]'"
                yield Finding("warning", f"{relations[relation]}: {what}", advice)
                break


def _told(texts: Sequence[str]) -> str:
    return ", ".join(repr(text if len(text) <= _TOLD else f"{text[:_TOLD]}...") for text in texts[:2])


_ADVICE: dict[Likeness, tuple[Level, str, str]] = {
    "same": ("warning", "{0} and {1} join the same pairs", "keep one, or figures measure copying"),
    "inverse": ("warning", "{0} is the inverse of {1}", "keep one, or figures measure turning round"),
    "symmetric": ("note", "{0} is symmetric", "a test triple whose other direction is in train is easy"),
}


def _relations(statistics: Statistics, alike: tuple[Overlap, ...]) -> Iterator[Finding]:
    for likeness, (level, words, advice) in _ADVICE.items():
        found = [overlap for overlap in alike if overlap.likeness == likeness]
        for overlap in found[:_FEW]:
            what = words.format(overlap.relation, overlap.other)
            yield Finding(level, f"{what} ({overlap.share:.0%}, {counted(overlap.pairs, 'pair')})", advice)
        if len(found) > _FEW:
            yield Finding(level, f"{len(found) - _FEW:,} more like the last", advice)
    rare = [row.relation for row in statistics.per_relation if row.triples["train"] < 5]
    if rare:
        named = ", ".join(rare[:3]) + (", ..." if len(rare) > 3 else "")
        yield Finding(
            "note",
            f"{counted(len(rare), 'relation has', 'relations have')} fewer than 5 triples in train ({named})",
            "little can be learned of them",
        )


def _compositions(composed: tuple[Composition, ...]) -> Iterator[Finding]:
    advice = "figures of it measure joining two facts; leave it out, or take its test triples apart"
    for found in composed[:_FEW]:
        shares = f"{found.share:.0%} of the pairs that these join, {found.covered:.0%} of its own"
        path = f"{found.path[0]}, then {found.path[1]}"
        what = f"{found.relation} follows from {path} ({shares}, in samples of {found.pairs:,} or more)"
        yield Finding("warning", what, advice)
    if len(composed) > _FEW:
        yield Finding("warning", f"{len(composed) - _FEW:,} more like the last", advice)


def _shape(statistics: Statistics) -> Iterator[Finding]:
    loops = sum(statistics.self_loops.values())
    if loops:
        what = counted(loops, "triple joins", "triples join") + " an entity with itself"
        yield Finding("note", what, "harmless where they are meant")
    density = statistics.triples["train"] / statistics.entities
    if density < 2:
        yield Finding(
            "note",
            f"{density:.1f} triples for each entity in train",
            "sparse: expect modest figures; more facts per entity help more than any setting",
        )
    kinds = [row.category for row in statistics.per_relation if row.triples["train"]]
    counts = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
    yield Finding(
        "note",
        "relations by cardinality: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()),
        "'modulekge data info' lists each",
    )


def spelt_alike(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Return groups of names that differ in case, Unicode normal form or spaces only: often one thing."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(_folded(name), []).append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _folded(name: str) -> str:
    text = "".join(name.split()).casefold()
    return text if text.isascii() else unicodedata.normalize("NFC", text)
