"""Malformed run folders, made from a small good one."""

import json
import pickle
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from malformed_data import DEEP, MANY_DIGITS
from safetensors.torch import load, save

from modulekge.data.vocabulary import Vocabulary
from modulekge.run.folder import RunFolder

WHOLE = (
    "weights.safetensors",
    "last.safetensors",
    "triples.safetensors",
    "vocabulary.json",
    "run.json",
    "config.toml",
)

Case = tuple[
    str, dict[str, bytes | None], list[str]
]  # what is wrong, files of the run (None: removed), command


def reads(name: str) -> list[str]:
    """A command that needs this file of a run."""
    ask = ["predict", "run", "--head", "e0", "--relation", "r0"]
    return {
        "last.safetensors": ["resume", "run", "--set", "train.epochs=3"],
        "epochs.jsonl": ["compare", "run", "run"],
        "report.json": ["compare", "run", "run"],
        "calibration.json": ask,
        "weights.safetensors": ["evaluate", "run"],
    }.get(name, ask)


def anything() -> Iterator[tuple[str, bytes]]:
    """What is no file of a run."""
    yield "empty", b""
    yield "noise", random.Random(4).randbytes(500)
    yield "a pickle", pickle.dumps({"entity_scalar": [1.0]})
    yield "deep", b"[" * DEEP
    yield "a list", b"[1, 2]"
    yield "null", b"null"
    yield "not UTF-8", b'{"a": "\xff"}'
    yield "many digits", b'{"a": ' + MANY_DIGITS.encode() + b"}"


def runs(good: Path) -> Iterator[Case]:
    """Yield damaged runs, each with a command that reads what is damaged."""
    for name in (*WHOLE, "epochs.jsonl", "report.json", "calibration.json"):
        content = (good / name).read_bytes()
        for what, other in anything():
            if name != "epochs.jsonl" or other:  # without epochs a run has not begun
                yield f"{name}: {what}", {name: other + b"\n"}, reads(name)
        cut = content.find(b"=", len(content) // 2) if name == "config.toml" else len(content) // 2
        yield f"{name}: cut short", {name: content[: cut + 1] + b"\n"}, reads(name)
    for name in WHOLE:
        without = {name: None, "last.safetensors": None} if name == "weights.safetensors" else {name: None}
        yield f"{name}: missing", without, reads(name)
    yield from (
        (f"weights.safetensors: {what}", {"weights.safetensors": made}, ["evaluate", "run"])
        for what, made in weights(good)
    )
    yield from (
        (f"last.safetensors: {what}", {"last.safetensors": made}, reads("last.safetensors"))
        for what, made in checkpoints(good)
    )
    yield from (
        (f"triples: {what}", {"triples.safetensors": made}, reads("triples.safetensors"))
        for what, made in triples(good)
    )
    yield from (
        (f"vocabulary.json: {what}", made, reads("vocabulary.json")) for what, made in vocabularies(good)
    )
    for name in ("epochs.jsonl", "report.json", "calibration.json"):
        yield from changed_fields(good, name)


def weights(good: Path) -> Iterator[tuple[str, bytes]]:
    content = (good / "weights.safetensors").read_bytes()
    tensors = load(content)
    table = tensors["entity_scalar"]
    for what, other in {
        "NaN": table * torch.nan,
        "infinite": table / 0,
        "whole numbers": table.long(),
        "truth values": table > 0,
        "one row less": table[1:],
        "flat": table.flatten(),
        "a scalar": torch.tensor(1.0),
        "no numbers": table[:0],
    }.items():
        yield what, save({**tensors, "entity_scalar": other.contiguous()})
    yield "one table less", save({name: value for name, value in tensors.items() if name != "entity_scalar"})
    yield "one table more", save({**tensors, "more": table.clone()})
    yield "nothing in it", save({})
    yield "a header of 2^60 bytes", (1 << 60).to_bytes(8, "little") + content[8:]
    yield "a header beyond the file", (len(content)).to_bytes(8, "little") + content[8:]
    for offsets in ("[0, 1e30]", "[-8, 0]", "[0, 18446744073709551615]", "[8, 0]", "null"):
        header = b'{"entity_scalar":{"dtype":"F32","shape":[2],"data_offsets":%s}}' % offsets.encode()
        yield f"the offsets {offsets}", len(header).to_bytes(8, "little") + header + bytes(8)
    header = b'{"entity_scalar":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}}'
    yield "a shape beyond all numbers", len(header).to_bytes(8, "little") + header + bytes(8)


def checkpoints(good: Path) -> Iterator[tuple[str, bytes]]:
    tensors, epoch = load((good / "last.safetensors").read_bytes()), {"epoch": "2"}
    yield "no epoch", save(tensors)
    yield "an epoch that is no number", save(tensors, {"epoch": "two"})
    yield "an epoch of many digits", save(tensors, {"epoch": MANY_DIGITS})
    yield "an epoch that never was", save(tensors, {"epoch": "99"})
    sums = "optimizer:entity_scalar.sum"
    yield "NaN in the optimiser's memory", save({**tensors, sums: tensors[sums] * torch.nan}, epoch)
    yield "memory of another shape", save({**tensors, sums: tensors[sums][1:].contiguous()}, epoch)
    yield "memory of whole numbers", save({**tensors, sums: tensors[sums].long()}, epoch)
    yield "memory of nothing", save({**tensors, "optimizer:nothing.sum": tensors[sums].clone()}, epoch)
    yield (
        "memory of another kind",
        save({**tensors, "optimizer:entity_scalar.momentum": tensors[sums].clone()}, epoch),
    )
    yield (
        "steps that are many",
        save({**tensors, "optimizer:entity_scalar.step": tensors[sums].clone()}, epoch),
    )
    yield "no memory", save({name: value for name, value in tensors.items() if ":" not in name}, epoch)


def triples(good: Path) -> Iterator[tuple[str, bytes]]:
    splits = load((good / "triples.safetensors").read_bytes())
    for what, other in {
        "ids beyond the names": splits["train"] + 1000,
        "negative ids": splits["train"] - 1000,
        "two columns": splits["train"][:, :2],
        "flat": splits["train"].flatten(),
        "none": splits["train"][:0],
        "numbers with a fraction": splits["train"] + 0.5,
        "no numbers": splits["train"] * torch.nan,
        "in another order": splits["train"].flip(0),
    }.items():
        yield what, save({**splits, "train": other.contiguous()})
    yield "no test", save({name: value for name, value in splits.items() if name != "test"})


def vocabularies(good: Path) -> Iterator[tuple[str, dict[str, bytes | None]]]:
    """Spoilt names; with a fingerprint that says they are right, so that nothing but themselves tells."""
    fields = json.loads((good / "vocabulary.json").read_text())
    began = json.loads((good / "run.json").read_text())
    names = fields["entities"]
    for what, change in {
        "names twice": {"entities": [names[0], *names[:-1]]},
        "a name that is no text": {"entities": [7, *names[1:]]},
        "a name that is null": {"entities": [None, *names[1:]]},
        "half a character": {"entities": ["\ud800", *names[1:]]},
        "an empty name": {"entities": ["", *names[1:]]},
        "a name that is a list": {"entities": [[], *names[1:]]},
        "fewer names": {"entities": names[1:]},
        "more names": {"entities": [*names, "more"]},
        "names as text": {"entities": "e" * len(names)},
        "names as an object": {"entities": dict.fromkeys(names, 1)},
        "no relations": {"relations": []},
        "labels as a list": {"entity_labels": ["a"]},
        "labels that are numbers": {"entity_labels": {names[0]: 7}},
        "labels that are null": {"entity_labels": {names[0]: None}},
        "labels of lists": {"relation_labels": {"r0": ["a"]}},
        "half a character in a label": {"entity_labels": {names[0]: "\udfff"}},
        "a data set that is a number": {"name": 7},
        "a data set that is null": {"name": None},
        "a data set of half a character": {"name": "\ud800"},
    }.items():
        changed = {**fields, **change}
        print_of = _fingerprint(good, changed) or began["fingerprint"]
        yield (
            what,
            {
                "vocabulary.json": json.dumps(changed).encode(),
                "run.json": json.dumps({**began, "fingerprint": print_of}).encode(),
            },
        )
    for key in sorted(fields.keys() - {"entity_descriptions"}):  # which older runs have not
        yield (
            f"no {key}",
            {"vocabulary.json": json.dumps({k: v for k, v in fields.items() if k != key}).encode()},
        )


def _fingerprint(good: Path, fields: dict[str, Any]) -> str | None:
    dataset = RunFolder(good).dataset()
    entities, relations = fields["entities"], fields["relations"]
    try:
        return replace(
            dataset,
            entities=Vocabulary("entity", tuple(entities)),
            relations=Vocabulary("relation", tuple(relations)),
        ).fingerprint
    except Exception:
        return None


OTHERS = ("text", None, [], {}, True, float("nan"), 1e999, 10**400, [["a"]])


def changed_fields(good: Path, name: str) -> Iterator[Case]:
    """Put something else in the place of each part of a JSON object, one at a time."""
    first, *rest = (
        (good / name).read_text().splitlines(keepends=True)
        if name == "epochs.jsonl"
        else [(good / name).read_text()]
    )
    fields, drawn = json.loads(first), random.Random(name)
    for place in places(fields):
        for other in drawn.sample(OTHERS, 2):
            old = at(fields, place)
            unknown = isinstance(old, float) and other is None and name == "report.json"  # which it may be
            unknown |= other is None and (name, place) == ("calibration.json", ("links",))  # as of older runs
            if type(other) is not type(old) and not unknown:
                changed = json.dumps(put(fields, place, other)) + ("\n" if rest else "")
                words = ".".join(map(str, place))
                yield (
                    f"{name}: {words} is {str(other)[:20]!r}",
                    {name: (changed + "".join(rest)).encode()},
                    reads(name),
                )
    for key in (key for key in fields if (name, key) != ("calibration.json", "links")):
        changed = json.dumps({k: v for k, v in fields.items() if k != key}) + ("\n" if rest else "")
        yield f"{name}: no {key}", {name: (changed + "".join(rest)).encode()}, reads(name)


def places(value: Any, deep: int = 3) -> Iterator[tuple[Any, ...]]:
    """Yield the ways to the parts of a JSON value, the first two of each list and object."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for number, (key, part) in enumerate(inside):
        if deep == 3 or number < 2:
            yield (key,)
            if deep > 1:
                yield from ((key, *rest) for rest in places(part, deep - 1))


def at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


def put(value: Any, place: tuple[Any, ...], other: Any) -> Any:
    if not place:
        return other
    copy = value.copy()
    copy[place[0]] = put(value[place[0]], place[1:], other)
    return copy
