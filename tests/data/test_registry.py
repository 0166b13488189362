"""Names, local folders, and downloads from a server that runs here."""

import hashlib
import http.server
import io
import tarfile
import threading
from dataclasses import replace

import pytest

from modulekge.data import registry
from modulekge.data.benchmarks import Benchmark, benchmarks, cache_dir
from modulekge.data.registry import download, open_dataset
from modulekge.errors import ModulekgeError

FILES = {"train.txt": b"a\tr\tb\r\nb\tr\tc\r\n", "valid.txt": b"a\tr\tc\r\n", "test.txt": b"c\tr\ta\r\n"}


def make_archive() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, data in {**FILES, "../../escape.txt": b"no"}.items():
            info = tarfile.TarInfo(f"./Tiny/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


ARCHIVE = make_archive()


@pytest.fixture
def server():
    content = {"/tiny.tar.gz": ARCHIVE, **{f"/{name}": data for name, data in FILES.items()}}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            data = content.get(self.path)
            self.send_response(200 if data else 404)
            self.send_header("Content-Length", str(len(data or b"")))
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


def tiny(files) -> Benchmark:
    return Benchmark("Tiny", 3, 1, {"train": 2, "valid": 1, "test": 1}, "none", tuple(files))


def test_an_archive_is_checked_unpacked_by_name_and_kept(server, tmp_path, monkeypatch):
    file = {"url": f"{server}/tiny.tar.gz", "sha256": hashlib.sha256(ARCHIVE).hexdigest()}
    file["members"] = {name: name for name in FILES}
    monkeypatch.setattr("modulekge.data.benchmarks.benchmarks", lambda: {"Tiny": tiny([file])})
    dataset = open_dataset("tiny")
    assert dataset.name == "Tiny"
    assert dataset.entities.names == ("a", "b", "c")
    assert sorted(p.name for p in (cache_dir() / "Tiny").iterdir()) == sorted(FILES)
    assert not list(tmp_path.rglob("escape.txt"))
    monkeypatch.setattr(registry, "download", None)  # the second time it is there
    assert open_dataset("Tiny").fingerprint == dataset.fingerprint


def test_single_files_by_git_blob_and_without_checksum(server, tmp_path):
    files = []
    for name, data in FILES.items():
        blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        files.append({"url": f"{server}/{name}", "save": name, "git_blob_sha1": blob})
    del files[0]["git_blob_sha1"]
    assert download(tiny(files), tmp_path).is_dir()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sha256": "0" * 64}, "sha256 is"),
        ({"url": "{server}/absent"}, "cannot be downloaded"),
        ({"url": "http://127.0.0.1:9/nobody"}, "MODULEKGE_DATA"),
    ],
)
def test_a_bad_download_says_so_and_leaves_nothing(server, tmp_path, change, message):
    change = {key: value.format(server=server) for key, value in change.items()}
    file = {"url": f"{server}/train.txt", "save": "train.txt", **change}
    with pytest.raises(ModulekgeError, match=message):
        download(tiny([file]), tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_truncated_copy_does_not_pass_for_the_benchmark(server, tmp_path):
    files = [{"url": f"{server}/{name}", "save": name} for name in FILES]
    with pytest.raises(ModulekgeError, match="is not Tiny"):
        download(replace(tiny(files), entities=4), tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_local_folders_come_first_by_option_and_by_variable(tmp_path, monkeypatch):
    folder = tmp_path / "graphs" / "tiny"
    folder.mkdir(parents=True)
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    monkeypatch.setattr("modulekge.data.benchmarks.benchmarks", lambda: {"Tiny": tiny([])})
    assert open_dataset("TINY", data_dir=tmp_path / "graphs").name == "Tiny"
    monkeypatch.setenv("MODULEKGE_DATA", f"{tmp_path / 'absent'}:{tmp_path / 'graphs'}")
    assert open_dataset("tiny").name == "Tiny"


def test_an_unknown_name_offers_the_nearest():
    with pytest.raises(ModulekgeError, match="did you mean WN18RR"):
        open_dataset("WN18R")
    with pytest.raises(ModulekgeError, match="data list"):
        open_dataset("zzzzzz")
    with pytest.raises(ModulekgeError, match="no such file"):
        open_dataset("some/where.tsv")


def test_the_registry_names_the_benchmarks_and_how_to_check_them():
    known = benchmarks()
    assert {
        "FB15k-237",
        "WN18RR",
        "YAGO3-10",
        "CoDEx-S",
        "CoDEx-M",
        "CoDEx-L",
        "Nations",
        "UMLS",
        "Kinships",
    } <= set(known)
    for benchmark in known.values():
        kept = {n for f in benchmark.files for n in f.get("members", {f.get("save"): 0})}
        assert {"train.txt", "valid.txt", "test.txt"} <= kept
        assert all(f["url"].startswith("https://") for f in benchmark.files)
    unchecked = {
        b.name for b in known.values() if not all({"sha256", "git_blob_sha1"} & set(f) for f in b.files)
    }
    assert unchecked == {"CoDEx-L"}  # its size is checked all the same
