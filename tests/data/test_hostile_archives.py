"""Archives that would do harm: each is served from here, and nothing is written outside its folder."""

import hashlib
import io
import tarfile
import zlib

import pytest

from modulekge.data import registry
from modulekge.data.benchmarks import Benchmark
from modulekge.data.registry import download
from modulekge.errors import ModulekgeError

FILES = {"train.txt": b"a\tr\tb\nb\tr\tc\n", "valid.txt": b"a\tr\tc\n", "test.txt": b"c\tr\ta\n"}


def packed(*members, mode="w:gz"):
    """A tar of (name, content) and of entries that are made already."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for name, content in members:
            entry = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def link(name, target, kind=tarfile.SYMTYPE):
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


def fetched(tmp_path, content, **said):
    """Download a benchmark whose archive is this file."""
    archive = tmp_path / "served.tar.gz"
    archive.write_bytes(content)
    file = {"url": archive.as_uri(), "members": {name: name for name in FILES}}
    file |= said or {"sha256": hashlib.sha256(content).hexdigest()}
    sizes = {"train": 2, "valid": 1, "test": 1}
    return download(Benchmark("Tiny", 3, 1, sizes, "none", (file,)), tmp_path / "cache")


def outside(tmp_path):
    """What lies anywhere but in the folder of the benchmark."""
    kept = tmp_path / "cache" / "Tiny"
    return [path for path in tmp_path.rglob("*") if kept not in (path, *path.parents)]


@pytest.mark.parametrize(
    "name", ["../../escape", "/escape", "a/../../../escape", "..", "train.txt/../../escape"]
)
def test_names_that_lead_elsewhere_are_not_followed(tmp_path, name):
    folder = fetched(tmp_path, packed(*FILES.items(), (name, b"no")))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
    assert {path.name for path in outside(tmp_path)} == {"served.tar.gz", "cache"}


def test_a_wanted_name_that_leads_elsewhere_lands_in_the_folder(tmp_path):
    folder = fetched(tmp_path, packed(*((f"../../{name}", content) for name, content in FILES.items())))
    assert {path.name for path in folder.iterdir()} == set(FILES)
    assert {path.name for path in outside(tmp_path)} == {"served.tar.gz", "cache"}


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE]
)
def test_links_and_devices_are_no_files(tmp_path, kind):
    secret = tmp_path / "secret"
    secret.write_text("a\tr\tb\n")
    others = [(name, content) for name, content in FILES.items() if name != "train.txt"]
    with pytest.raises(ModulekgeError, match=r"the archive's train\.txt is missing"):
        fetched(tmp_path, packed(*others, (link("train.txt", str(secret), kind), b"")))
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"noise" * 100,
        b"\x1f\x8b" + bytes(50),
        packed(*FILES.items())[:-30],
        packed(*FILES.items(), mode="w")[:700],
    ],
    ids=["empty", "noise", "gzip of nothing", "cut short", "a tar cut short"],
)
def test_what_is_no_archive_is_said_and_leaves_nothing(tmp_path, content):
    with pytest.raises(ModulekgeError, match=r"served\.tar\.gz"):
        fetched(tmp_path, content)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_wrong_checksum_is_found_before_anything_is_unpacked(tmp_path, monkeypatch):
    content = packed(*FILES.items())
    monkeypatch.setattr(registry.tarfile, "open", None)  # which would be a TypeError
    with pytest.raises(ModulekgeError, match="sha256 is"):
        fetched(tmp_path, content, sha256="0" * 64)
    assert list((tmp_path / "cache").iterdir()) == []


def bomb(size):
    """A packed tar whose train.txt is as many zeros, made without holding them."""
    entry = tarfile.TarInfo("train.txt")
    entry.size = size
    pack, out = zlib.compressobj(9, wbits=31), []
    out.append(pack.compress(entry.tobuf()))
    out += [pack.compress(bytes(1 << 20)) for _ in range(size >> 20)]
    return b"".join([*out, pack.compress(bytes(1024)), pack.flush()])


def test_a_member_larger_than_any_benchmark_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "LARGEST", 4 << 20)
    content = bomb(64 << 20)
    assert len(content) < 1 << 20
    with pytest.raises(ModulekgeError, match=r"train\.txt is larger than 4 MiB"):
        fetched(tmp_path, content)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_download_without_end_is_broken_off(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "LARGEST", 1000)
    with pytest.raises(ModulekgeError, match=r"served\.tar\.gz: is larger than"):
        fetched(tmp_path, packed(("train.txt", bytes(range(256)) * 100), mode="w"))
    assert list((tmp_path / "cache").iterdir()) == []
