"""Malformed files of triples, made from small good ones of every format that is read."""

import bz2
import gzip
import io
import json
import random
import zipfile
from collections.abc import Iterator

import pyarrow as pa
from pyarrow import parquet

TRIPLES = [(f"e{i % 12}", f"r{i % 2}", f"e{(5 * i + 1) % 12}") for i in range(48)]
LINES = ["\t".join(triple) for triple in TRIPLES]
MANY_DIGITS = "9" * 5000  # more than Python turns into a number
DEEP = 100_000

Files = dict[str, bytes]


def lines(*rows: str) -> bytes:
    return "".join(row + "\n" for row in rows).encode()


def table(**columns) -> bytes:
    out = io.BytesIO()
    parquet.write_table(pa.table(columns), out)
    return out.getvalue()


GOOD = {
    "tsv": lines(*LINES),
    "csv": lines("head,relation,tail", *(",".join(t) for t in TRIPLES)),
    "jsonl": lines(*(json.dumps(t) for t in TRIPLES)),
    "json": lines(*(json.dumps(dict(zip(("head", "relation", "tail"), t, strict=True))) for t in TRIPLES)),
    "parquet": table(
        **dict(zip(("head", "relation", "tail"), map(list, zip(*TRIPLES, strict=True)), strict=True))
    ),
    "nt": lines(*("<x:{}> <x:{}> <x:{}> .".format(*t) for t in TRIPLES)),
    "ttl": lines("@prefix x: <http://x/> .", *("x:{} x:{} x:{} .".format(*t) for t in TRIPLES)),
}
TEXT = {
    "tsv": ("a\tr", "a\tr\tb\tc", "\tr\tb", "a\t\tb", "a\tr\t", "a r b", "a\tr\tb\0", "a\rr\tb\tc", " \t "),
    "csv": ("a,r", "a,r,b,c", ",r,b", "a,,b", '"a,r,b', 'a"b"c,r', "a;r;b", 'a,r,"b\n' + "c\n" * 9),
    "jsonl": (
        '["a", "r"]',
        '["a", "r", "b", "c"]',
        '["a", "r", null]',
        '["a", 1.5, "b"]',
        '["a", true, "b"]',
        '["", "r", "b"]',
        '["a", "r", "\\ud800"]',
        '["a", "r", "\\u0000"]',
        '{"head": "a"}',
        "7",
        "nonsense",
        '["a", "r", "b"',
        "[" * DEEP,
        f'["a", "r", {MANY_DIGITS}]',
        '["a", "r", {"x": 1}]',
        '["a", "r", NaN]',
        '{"a":' * DEEP,
    ),
    "nt": (
        "<x:a> <x:r>",
        "<x:a> <x:r> <x:b>",
        "<x:a> 'r' <x:b> .",
        "<x:a <x:r> <x:b> .",
        "_:a _:r _:b .",
        '<x:a> <x:r> "open .',
        "<x:a> <x:r> <x:\\uD800> .",
        "<a> <r> <b> .",
        '<x:a> <x:r> "v"^^<x:n> . extra',
    ),
    "ttl": (
        "y:a x:r x:b .",
        "@prefix x .",
        "x:a x:r x:b",
        "x:a x:r [ x:r x:b .",
        "x:a x:r ( x:b .",
        '@base "x" .',
        "x:a x:r '''open",
        "x:a x:r " + "[ x:r " * DEEP,
        "x:a x:r " + "( " * DEEP,
    ),
}


def damaged(good: bytes) -> Iterator[tuple[str, bytes]]:
    """Ways to spoil any file."""
    half = len(good) // 2
    yield "empty", b""
    yield "blank", b"\n" * 50
    yield "a NUL in the middle", good[:half] + b"\0" + good[half:]
    yield "not UTF-8", good[:half] + b"\xff\xfe\xc3" + good[half:]
    yield "UTF-16", good.decode("latin-1").encode("utf-16")
    yield "a picture", b"\x89PNG\r\n\x1a\n" + bytes(random.Random(0).randrange(256) for _ in range(400))
    yield "noise", random.Random(1).randbytes(2000)
    yield "packed with bzip2", bz2.compress(good)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("graph", good)
    yield "packed with zip", archive.getvalue()
    yield "gzip cut short", gzip.compress(good)[:-12]
    yield "gzip with a wrong checksum", gzip.compress(good)[:-8] + b"\0" * 8
    yield "gzip of noise", b"\x1f\x8b" + random.Random(2).randbytes(300)


def files() -> Iterator[tuple[str, Files, str]]:
    """Yield what is wrong, the files, and which of them to read."""
    for kind, good in GOOD.items():
        for what, content in damaged(good):
            yield f"{kind}: {what}", {f"bad.{kind}": content}, f"bad.{kind}"
        yield (
            f"{kind}: another kind's ending",
            {f"bad.{kind}": GOOD["parquet" if kind != "parquet" else "tsv"]},
            f"bad.{kind}",
        )
        if kind != "parquet":  # which is never packed, and so read as it is
            yield f"{kind}: ends in .gz and is not packed", {f"bad.{kind}.gz": good}, f"bad.{kind}.gz"
    for kind, rows in TEXT.items():
        start = b"@prefix x: <http://x/> .\n" if kind == "ttl" else b""
        for row in rows:
            yield (
                f"{kind}: the line {row[:30]!r}",
                {f"bad.{kind}": start + GOOD[kind] + row.encode() + b"\n"},
                f"bad.{kind}",
            )
    bomb = gzip.compress(b"a" * (200 << 20), 1)
    yield "nt: a line without end", {"bad.nt": GOOD["nt"] + b"a" * (20 << 20)}, "bad.nt"
    for kind in ("tsv", "csv", "jsonl"):
        yield f"{kind}: a line without end", {f"bad.{kind}": GOOD[kind] + b"a" * (40 << 20)}, f"bad.{kind}"
        yield f"{kind}: a packed line without end", {f"bad.{kind}.gz": bomb}, f"bad.{kind}.gz"
    yield from ((f"parquet: {what}", {"bad.parquet": made}, "bad.parquet") for what, made in parquets())
    yield from (
        (f"folder: {what}", {f"bad/{name}": made for name, made in inside.items()}, "bad")
        for what, inside in folders()
    )


def parquets() -> Iterator[tuple[str, bytes]]:
    good, names = GOOD["parquet"], pa.array(["a", "b", "c"])
    yield "cut short", good[:-9]
    yield "the footer is too long", good[:-8] + b"\xff\xff\xff\x7f" + b"PAR1"
    yield "no footer", b"PAR1PAR1"
    yield "no columns", table()
    yield "two columns", table(head=names, tail=names)
    yield "unknown columns", table(x=names, y=names, z=names)
    for kind in (
        pa.array([1.5, 2, 3]),
        pa.array([[1], [2], [3]]),
        pa.array([None] * 3),
        pa.array(["a", None, "c"]),
        pa.array(["a", "", "c"]),
        pa.array([b"\xff"] * 3),
        pa.array([True] * 3),
    ):
        yield f"tails of {kind.type} {kind[1]}", table(head=names, relation=names, tail=kind)
    yield "no rows", table(head=names[:0], relation=names[:0], tail=names[:0])


def folders() -> Iterator[tuple[str, Files]]:
    good, some = GOOD["tsv"], lines(*LINES[:2])
    yield "empty", {"readme": b""}
    yield "no valid", {"train.txt": good, "test.txt": some}
    yield "two trains", {"train.txt": good, "train.tsv": good, "valid.txt": some, "test.txt": some}
    yield "an empty test", {"train.txt": good, "valid.txt": some, "test.txt": b""}
    yield (
        "labels of three fields",
        {"train.txt": good, "valid.txt": some, "test.txt": some, "labels.tsv": b"a\tb\tc\n"},
    )
    ids, relations = lines(*(f"{i}\te{i}" for i in range(12))), lines("0\tr0", "1\tr1")
    numbered = {"train.del": b"0\t0\t1\n1\t1\t2\n", "valid.del": b"0\t0\t2\n", "test.del": b"0\t0\t3\n"}
    libkge = {"entity_ids.del": ids, "relation_ids.del": relations, **numbered}
    for what, change in {
        "an id that is none": {"train.del": b"0\t0\t99\n"},
        "an id that is no number": {"train.del": b"0\tx\t1\n"},
        "an id of many digits": {"train.del": b"0\t0\t" + MANY_DIGITS.encode() + b"\n"},
        "ids with a gap": {"entity_ids.del": b"0\te0\n2\te2\n"},
        "ids twice": {"entity_ids.del": b"0\te0\n0\te1\n"},
        "ids of many digits": {"entity_ids.del": MANY_DIGITS.encode() + b"\te0\n"},
        "ids without names": {"entity_ids.del": b"0\n1\n"},
        "no ids": {"entity_ids.del": b""},
        "ids that are noise": {"entity_ids.del": random.Random(3).randbytes(200)},
        "no relations": {"relation_ids.del": b""},
        "no train": {"train.del": b""},
    }.items():
        yield f"LibKGE: {what}", {**libkge, **change}
    yield "LibKGE: no file of relations", {k: v for k, v in libkge.items() if k != "relation_ids.del"}
    yield "LibKGE: no file of valid", {k: v for k, v in libkge.items() if k != "valid.del"}
    names = lines("12", *(f"e{i}\t{i}" for i in range(12)))
    openke = {
        "entity2id.txt": names,
        "relation2id.txt": lines("2", "r0\t0", "r1\t1"),
        "train2id.txt": lines("2", "0 1 0", "1 2 1"),
        "valid2id.txt": lines("1", "0 2 0"),
        "test2id.txt": lines("1", "0 3 0"),
    }
    for what, change in {
        "a count that is wrong": {"train2id.txt": lines("3", "0 1 0")},
        "a count of many digits": {"train2id.txt": lines(MANY_DIGITS, "0 1 0")},
        "a count that is none": {"entity2id.txt": lines("many", "e0\t0")},
        "an id that is none": {"test2id.txt": lines("1", "0 77 0")},
        "a negative id": {"test2id.txt": lines("1", "0 -1 0")},
        "digits of another script": {"test2id.txt": lines("1", "0 ٣ 0")},
    }.items():
        yield f"OpenKE: {what}", {**openke, **change}
    packed = {
        "entity_to_id.tsv.gz": gzip.compress(lines("id\tlabel", "0\ta", "1\tb")),
        "relation_to_id.tsv.gz": gzip.compress(lines("id\tlabel", "0\tr")),
        "numeric_triples.tsv.gz": gzip.compress(lines("head\trelation\ttail", "0\t0\t1")),
    }
    for name in packed:
        yield f"PyKEEN: {name} cut short", {**packed, name: packed[name][:-10]}
        yield f"PyKEEN: {name} empty", {**packed, name: gzip.compress(b"")}
    dicts = {"entities.dict": ids, "relations.dict": relations, "valid.txt": some, "test.txt": some}
    yield "RotatE: a name that is not numbered", {**dicts, "train.txt": b"e0\tr0\tzzz\n"}
