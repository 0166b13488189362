"""Tools for agents as a process of its own, asked by the official client as agents ask them."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from program import call

from modulekge import calibrate
from modulekge.installation import to_install

pytestmark = pytest.mark.integration

QUESTION = {"head": "ada", "relation": "parent", "k": 3}
MODES = ("auto", "legacy")  # by the latest version of the protocol, and with a handshake as before
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


@pytest.fixture
def run(drawn_run, family):
    run = drawn_run(family, "ComplEx")
    calibrate(run)
    return run.folder.path


def command(run, *options):
    return [sys.executable, "-m", "modulekge", "mcp", str(run), *options]


async def talked(server, mode="auto"):
    """Return the tools of a server, its answer to a question, and what it says of a bad one."""
    async with Client(server, mode=mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("predict", QUESTION)
        bad = await client.call_tool("predict", {**QUESTION, "head": "adda"})
    assert (found.is_error, bad.is_error) == (False, True)
    return tools, found.structured_content["answers"], bad.content[0].text


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_starts_it_and_talks_over_stdio(run, mode):
    first, *rest = command(run, *(["--writable"] if mode == "auto" else []))
    server = StdioServerParameters(command=first, args=rest, env={**os.environ, "OMP_NUM_THREADS": "1"})
    tools, answers, said = asyncio.run(talked(server, mode))
    assert ("add_fact" in tools) == (mode == "auto")
    assert [answer["rank"] for answer in answers] == [1, 2, 3]
    assert said == "unknown entity 'adda'; did you mean 'Ada Lovelace'?"


def test_what_is_no_message_is_no_traceback(run):
    messages = 'nonsense\n[1]\n{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 5}}\n'
    with subprocess.Popen(command(run), stdin=subprocess.PIPE, **PIPES) as process:
        process.stdin.write(messages)
        process.stdin.flush()
        assert "Invalid request parameters" in process.stdout.readline()
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")


def test_it_is_served_over_http_to_who_has_the_token(run, tmp_path):
    (tmp_path / "token").write_text("correct horse")
    options = ("--http", "0", "--token-file", str(tmp_path / "token"))
    with subprocess.Popen(command(run, *options), **PIPES) as process:
        try:
            line = process.stdout.readline()
            url = re.fullmatch(r"tools at (http://127\.0\.0\.1:\d+/mcp)  \(Ctrl-C ends it\)\n", line)[1]
            refused = httpx2.post(url, json={})
            assert (refused.status_code, "a token is needed" in refused.text) == (401, True)
            headers = {"Authorization": "Bearer correct horse"}
            foreign = httpx2.post(url, json={}, headers={**headers, "Host": "elsewhere.example"})
            assert (foreign.status_code, "is not called" in foreign.text) == (400, True)

            async def both():
                async with httpx2.AsyncClient(headers=headers) as http:
                    return [
                        await talked(streamable_http_client(url, http_client=http), mode) for mode in MODES
                    ]

            first, second = asyncio.run(both())
            assert first == second
            assert "add_fact" not in first[0]
        finally:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--http", "0", "--host", "0.0.0.0"),
            "others could ask without a token; give --token-file, or --public",
        ),
        (("--public",), "are for --http; give it a port"),
        (("--http", "99999"), "65535"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(run, tmp_path, options, message):
    done = call("mcp", run, *options, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_damaged_run_is_refused(run, tmp_path):
    broken = shutil.copytree(run, tmp_path / "broken")
    (broken / "weights.safetensors").write_bytes(b"nothing")
    for path, finding in (
        (broken, "not a readable safetensors file"),
        (tmp_path / "nowhere", "not a run folder"),
    ):
        done = call("mcp", path, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert finding in done.stderr


def test_what_is_not_installed_is_named(run, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "modulekge.server.mcp", raising=False)
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    monkeypatch.chdir(tmp_path)  # the command is said from there
    done = call("mcp", run, cwd=tmp_path)
    assert done.stderr == f"error: mcp: needs mcp.server; install it: {to_install('agents')}\n"


def test_help_has_an_example(tmp_path):
    done = call("mcp", "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "Example: modulekge mcp runs/demo" in " ".join(done.stdout.split())
