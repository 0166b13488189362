"""The command that serves, as a process of its own."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from program import call

from modulekge import __version__
from modulekge.installation import to_install
from modulekge.server.server import Bind

pytestmark = pytest.mark.integration


@pytest.fixture
def run(drawn_run, family):
    return drawn_run(family, "ComplEx").folder.path


def ask(url, token=None):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_it_says_where_it_is_answers_and_ends_quietly(run, tmp_path):
    secret = tmp_path / "token"
    secret.write_text("correct horse\n")
    command = [
        sys.executable,
        "-m",
        "modulekge",
        "serve",
        str(run),
        str(run),
        "--port",
        "0",
        "--token-file",
        str(secret),
    ]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:
        try:
            line = process.stdout.readline()
            address = re.fullmatch(r"explore at (http://127\.0\.0\.1:\d+/)  \(Ctrl-C ends it\)\n", line)[1]
            status, found = ask(f"{address}api/v1/runs", "correct horse")
            assert (status, [one["name"] for one in found]) == (200, [run.name, f"{run.name}-2"])
            assert ask(f"{address}api/v1/runs")[0] == 401
            assert ask(f"{address}health") == (200, {"status": "ok", "version": __version__, "runs": 2})
        finally:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--host", "0.0.0.0"), "others could ask without a token; give --token-file, or --public"),
        (("--host", "no.such.host.invalid", "--public"), "choose another --port or --host"),
        (("--token-file", "missing"), "missing: cannot be read"),
        (("--port", "99999"), "65535"),
    ],
)  # fmt: skip
def test_what_cannot_be_served_is_said_in_one_line(run, tmp_path, options, message):
    done = call("serve", run, *options, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_that_is_taken(run, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = call("serve", run, "--port", port, cwd=tmp_path)
    assert done == (
        2,
        "",
        f"error: 127.0.0.1, port {port}: Address already in use; choose another --port or --host\n",
    )


def test_a_damaged_run_is_refused_before_the_server_starts(run, tmp_path):
    (run / "weights.safetensors").write_bytes(b"nothing")
    done = call("serve", run, "--port", "0", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "not a readable safetensors file" in done.stderr
    assert call("serve", tmp_path / "nowhere", "--port", "0", cwd=tmp_path).returncode == 2


def test_a_token_of_the_environment_is_checked_too(run, tmp_path, monkeypatch):
    monkeypatch.setenv("MODULEKGE_TOKEN", "short")
    done = call("serve", run, cwd=tmp_path)
    assert done.stderr == "error: MODULEKGE_TOKEN: a token takes at least 8 printable ASCII characters\n"


def test_what_is_not_installed_is_named(run, tmp_path, monkeypatch):
    for name in ("modulekge.server.server", "modulekge.server.http"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.chdir(tmp_path)  # the command is said from there
    done = call("serve", run, cwd=tmp_path)
    assert done.stderr == f"error: serve: needs uvicorn; install it: {to_install('serve')}\n"


def test_who_may_ask():
    assert Bind().known_as == {"localhost", "127.0.0.1", "::1"}
    assert Bind("127.0.0.9").local
    assert not Bind("0.0.0.0", public=True).local
    assert {"box", socket.gethostname().lower()} <= Bind(
        "0.0.0.0", token="long enough", names=("BOX",)
    ).known_as
