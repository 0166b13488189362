"""What people say of predicted links: kept beside a run, one line each, and compared with probabilities."""

import fcntl
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from modulekge.errors import RunError
from modulekge.evaluation.reliability import BINS, Bin
from modulekge.json_io import typed
from modulekge.run.files import parse_json, settle, unwritable
from modulekge.run.run_files import RunFiles

Verdict = Literal["accept", "reject", "withdraw"]


@dataclass(frozen=True)
class Judgement:
    """A verdict on a triple by name: by whom, why, when, and how probable the run said it was."""

    head: str
    relation: str
    tail: str
    verdict: Verdict
    reason: str
    by: str
    probability: float | None  # of the link, when it was judged
    time: str  # ISO 8601, UTC


@dataclass(frozen=True)
class Agreement:
    """How people's judgements agree with probabilities: of the links given 30 %, are 30 % accepted?

    ``error`` is the mean of |probability - share accepted| over the bins, weighted by their judgements; it is
    None where no judged link had a probability. People judge what they are shown, which is no fair sample.
    """

    accepted: int
    rejected: int
    error: float | None
    bins: tuple[Bin, ...]


def keep_judgements(folder: RunFiles, judgements: Iterable[Judgement]) -> None:
    """Append judgements to those of a run; processes that do so at once wait for each other."""
    lines = "".join(json.dumps(asdict(each), ensure_ascii=False) + "\n" for each in judgements).encode()
    path = folder.judgements_file
    try:
        with path.open("ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - 1))
            cut = file.read(1) not in (b"", b"\n")  # a line that a crash left; it stays alone
            file.write(b"\n" * cut + lines)
            settle(file)
    except OSError as error:
        raise unwritable(path, error) from None


def read_judgements(folder: RunFiles) -> list[Judgement]:
    """Read every judgement in its order; a line cut short by a crash is left out."""
    try:
        lines = folder.judgements_file.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"{folder.judgements_file}: cannot be read ({error.strerror})") from None
    found = []
    for line in lines:
        try:
            found.append(typed(Judgement, parse_json(line)))
        except (ValueError, KeyError, RecursionError):
            continue
    return found


def standing_judgements(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Return what everyone said last of each triple; what was withdrawn is gone."""
    last = {(each.head, each.relation, each.tail, each.by): each for each in judgements}
    return [each for each in last.values() if each.verdict != "withdraw"]


def accepted_triples(judgements: Iterable[Judgement]) -> list[tuple[str, str, str]]:
    """Return the triples that somebody accepts and nobody rejects, as ``modulekge add`` takes them."""
    verdicts: dict[tuple[str, str, str], set[Verdict]] = {}
    for each in standing_judgements(judgements):
        verdicts.setdefault((each.head, each.relation, each.tail), set()).add(each.verdict)
    return [triple for triple, said in verdicts.items() if said == {"accept"}]


def agreement(judgements: Iterable[Judgement]) -> Agreement:
    """Compare judgements with the probabilities that the links had."""
    standing = standing_judgements(judgements)
    accepted = [each.verdict == "accept" for each in standing]
    pairs = ((each.probability, yes) for each, yes in zip(standing, accepted, strict=True))
    sure = [(probability, yes) for probability, yes in pairs if probability is not None]
    groups: dict[int, list[tuple[float, bool]]] = {}
    for probability, yes in sure:
        groups.setdefault(min(BINS - 1, int(probability * BINS)), []).append((probability, yes))
    bins = tuple(_bin(groups[place]) for place in sorted(groups))
    off = sum(each.answers * abs(each.probability - each.true) for each in bins)
    return Agreement(sum(accepted), len(accepted) - sum(accepted), off / len(sure) if sure else None, bins)


def _bin(judged: Sequence[tuple[float, bool]]) -> Bin:
    count = len(judged)
    return Bin(count, sum(p for p, _ in judged) / count, sum(yes for _, yes in judged) / count)
