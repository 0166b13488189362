"""What in a graph would spoil training or its figures, and what to do about it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from modulekge.data.dataset import Dataset
from modulekge.data.overlaps import Likeness, Overlap, overlaps
from modulekge.data.readers.files import problems
from modulekge.data.readers.headers import Header
from modulekge.data.readers.layouts import splits_present
from modulekge.data.statistics import Statistics, survey

Level = Literal["problem", "warning", "note"]
LEVELS: tuple[Level, ...] = get_args(Level)
_MOST = 100  # lines of a file that are told
_FEW = 5  # findings of one kind that are told one by one


@dataclass(frozen=True)
class Finding:
    """Something worth knowing: how bad it is, what was found, and what helps."""

    level: Level
    what: str
    advice: str


def examine_files(
    path: Path, columns: Sequence[str] | None = None, header: Header = None
) -> tuple[Finding, ...]:
    """Return what is wrong with the lines of a file of triples, or of a folder's files of splits."""
    found = []
    for file in [path] if path.is_file() else splits_present(path):
        texts = list(problems(file, columns, _MOST + 1, header))
        found += [Finding("problem", text, "") for text in texts[:_MOST]]
        if len(texts) > _MOST:
            found.append(Finding("problem", f"{file}: there are more; these are the first {_MOST}", ""))
    return tuple(found)


def examine(dataset: Dataset) -> tuple[Finding, ...]:
    """Return everything found, the worst first."""
    counted, alike = survey(dataset), overlaps(dataset)
    said = [Finding("note", note, "") for note in dataset.notes]
    found = [*said, *_splits(counted), *_relations(counted, alike), *_shape(counted)]
    return tuple(sorted(found, key=lambda finding: LEVELS.index(finding.level)))


# By what a survey counts in each split
_IN_SPLITS: dict[str, tuple[Level, str, str]] = {
    "shared_with_train": (
        "problem",
        "triples of {} stand in train too",
        "they are answered from memory; take them out of one of the two",
    ),
    "duplicates": (
        "warning",
        "triples of {} are repeated",
        "they weigh twice in training or in the figures; keep each once",
    ),
    "unseen_triples": (
        "warning",
        "triples of {} have an entity that train has not",
        "they can only be guessed; give one file of all triples to have it split without this",
    ),
}


def _splits(survey: Statistics) -> Iterator[Finding]:
    for counted, (level, words, advice) in _IN_SPLITS.items():
        for split, count in getattr(survey, counted).items():
            if count:
                yield Finding(level, f"{count:,} {words.format(split)}", advice)
    for split, count in survey.triples.items():
        if count == 0:
            advice = "the best epoch is chosen on valid and figures are of test: put some triples there"
            yield Finding("warning", f"{split} is empty", advice)
    test = survey.triples["test"]
    leaks = survey.leaks["any of these"]
    if leaks > 0.05 * max(1, test):
        yield Finding(
            "warning",
            f"{leaks:,} of {test:,} test triples join a pair of entities that train joins in another way",
            "figures are flattered; split by pairs, or drop relations that repeat others (below)",
        )


_ADVICE: dict[Likeness, tuple[Level, str, str]] = {
    "same": ("warning", "{0} and {1} join the same pairs", "keep one, or figures measure copying"),
    "inverse": ("warning", "{0} is the inverse of {1}", "keep one, or figures measure turning round"),
    "symmetric": ("note", "{0} is symmetric", "a test triple whose other direction is in train is easy"),
}


def _relations(survey: Statistics, alike: tuple[Overlap, ...]) -> Iterator[Finding]:
    for likeness, (level, words, advice) in _ADVICE.items():
        found = [overlap for overlap in alike if overlap.likeness == likeness]
        for overlap in found[:_FEW]:
            what = words.format(overlap.relation, overlap.other)
            yield Finding(level, f"{what} ({overlap.share:.0%}, {overlap.pairs:,} pairs)", advice)
        if len(found) > _FEW:
            yield Finding(level, f"{len(found) - _FEW:,} more like the last", advice)
    rare = [row.relation for row in survey.per_relation if row.triples["train"] < 5]
    if rare:
        named = ", ".join(rare[:3]) + (", ..." if len(rare) > 3 else "")
        yield Finding(
            "note",
            f"{len(rare):,} relations have fewer than 5 triples in train ({named})",
            "little can be learned of them",
        )


def _shape(survey: Statistics) -> Iterator[Finding]:
    loops = sum(survey.self_loops.values())
    if loops:
        yield Finding(
            "note", f"{loops:,} triples join an entity with itself", "harmless where they are meant"
        )
    density = survey.triples["train"] / survey.entities
    if density < 2:
        yield Finding(
            "note",
            f"{density:.1f} triples for each entity in train",
            "sparse: expect modest figures; more facts per entity help more than any setting",
        )
    kinds = [row.category for row in survey.per_relation if row.triples["train"]]
    counts = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
    yield Finding(
        "note",
        "relations by cardinality: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()),
        "'modulekge data info' lists each",
    )
