"""Commands in the documents, run and compared with what is printed there.

python scripts/transcripts.py [--write]

A transcript is a block of code with lines that begin with "$ ". Each document is run from its top in a
folder of its own that holds runs/demo, trained as "make demo" does it. `cat FILE` makes a file that is not
there. What the program prints must be what stands below the command: words to the letter; numbers nearly, for
another machine rounds otherwise; not at all where they measure the machine (seconds, minutes, GiB). A line
"..." stands for any lines. --write puts in what was printed.
"""

import argparse
import asyncio
import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

_NAMES = (
    "tutorial",
    "answers",
    "compound",
    "explanations",
    "changing-graphs",
    "exports",
    "explorer",
    "http",
    "agents",
)
DOCUMENTS = ("README.md", *(f"docs/{name}.md" for name in _NAMES))
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
_MEASURED = re.compile(
    r"(?:-?\d[\d,]*(?:\.\d+)? ?(?:s|ms|min|h|days?|GiB|MiB|seconds?|minutes?|hours?)\b ?)+"
)
_NEAR, _NEARLY = 0.05, 0.02  # shares of a number, or this much: a probability, a score
# With which every x86 processor that has AVX2 rounds alike: a training goes another way after any difference
ROUNDING = {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "AVX2"}


@dataclass(frozen=True)
class Command:
    """A command of a document, and the lines that stand below it."""

    line: int  # of the document, from which its output stands
    words: str
    output: tuple[str, ...]
    indent: str


def commands(text: str) -> Iterator[Command]:
    """The commands of a document, in their order."""
    lines = text.splitlines()
    fenced, i = False, 0
    while i < len(lines):
        fenced ^= lines[i].startswith("```")
        found = re.match(r"( *)\$ (.*)", lines[i])
        i += 1
        if not found or (found[1] != "    " and not fenced):
            continue
        indent, words = found[1], found[2]
        while words.endswith("\\"):
            words = words[:-1] + lines[i].strip()
            i += 1
        start = i
        ends = (f"{indent}$ ", "```")
        while (
            i < len(lines) and (not lines[i] or lines[i].startswith(indent)) and not lines[i].startswith(ends)
        ):
            i += 1
        while i > start and not lines[i - 1].strip():  # the blank line before the next one
            i -= 1
        yield Command(start, words, tuple(line[len(indent) :] for line in lines[start:i]), indent)


def run(words: str, expected: tuple[str, ...], folder: Path) -> str:
    """Run a command there; return what it prints."""
    name, *rest = shlex.split(words)
    if name == "modulekge":
        if rest[0] == "train":
            return _trained(rest)
        return "\n".join(expected) if rest[0] == "serve" else _program(rest)
    if name == "curl":
        return _asked(rest, folder)
    if name == "cat" and not (folder / rest[0]).exists():
        (folder / rest[0]).write_text("\n".join(expected) + "\n", "utf-8")
    return subprocess.run(
        words, shell=True, capture_output=True, text=True, check=True, env=_environment()
    ).stdout


def _environment() -> dict[str, str]:
    """Return one in which python and modulekge are the ones that run this."""
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PATH": programs}


def _program(words: list[str]) -> str:
    from modulekge import cli

    out, before = io.StringIO(), sys.argv
    sys.argv = ["modulekge", *words]
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
            contextlib.suppress(SystemExit),
        ):
            cli.main()
    finally:
        sys.argv = before
    return out.getvalue()


def _asked(words: list[str], folder: Path) -> str:
    """What the HTTP server answers to curl's arguments."""
    import httpx
    import torch

    from modulekge.server.http import make_app
    from modulekge.server.service import Service

    url = next(word for word in words if word.startswith("localhost"))
    body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
    headers = dict(words[i + 1].split(": ", 1) for i, word in enumerate(words) if word == "-H")
    service = Service.open([folder / "runs" / "demo"], torch.device("cpu"))

    async def ask() -> str:
        transport = httpx.ASGITransport(make_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8000") as client:
            method = "POST" if body else "GET"
            return (await client.request(method, f"http://{url}", json=body, headers=headers)).text

    try:
        return asyncio.run(ask())
    finally:
        service.close()


def differs(expected: list[str], printed: list[str]) -> str:
    """The first place where lines differ by more than rounding; nothing where they agree."""
    if not expected:
        return f"also printed: {printed[0]}" if printed else ""
    if expected[0].strip() == "...":
        return (
            ""
            if any(not differs(expected[1:], printed[i:]) for i in range(len(printed) + 1))
            else "nothing after ..."
        )
    if not printed:
        return f"not printed: {expected[0]}"
    if not _alike(expected[0], printed[0]):
        return f"stands there: {expected[0]}\n   printed: {printed[0]}"
    return differs(expected[1:], printed[1:])


def _alike(expected: str, printed: str) -> bool:
    a, b = (_MEASURED.sub("T", line).rstrip() for line in (expected, printed))
    if _NUMBER.sub("#", " ".join(a.split())) != _NUMBER.sub("#", " ".join(b.split())):
        return False
    pairs = zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True)
    return all(_near(*(float(x.replace(",", "")) for x in pair), "%" in a) for pair in pairs)


def _near(a: float, b: float, percent: bool) -> bool:
    return abs(a - b) <= max(_NEAR * abs(a), 2.0 if percent else _NEARLY)


def _trained(words: list[str]) -> str:
    """Train with two threads, whatever is around: another number of them rounds otherwise."""
    environment = {**_environment(), **ROUNDING, "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-m", "modulekge", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return str(subprocess.run(command, check=True, env=environment, **pipes).stdout)


def train_demo(folder: Path) -> None:
    """Train runs/demo as the Makefile does."""
    _trained(["train", "world", "--model", "ModulE-HH", "--out", str(folder)])


def check(name: str, demo: Path, write: bool = False) -> list[str]:
    """Run the commands of a document; return what differs, or write it there."""
    path, findings = ROOT / name, []
    text = path.read_text("utf-8")
    lines = text.splitlines()
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        shutil.copytree(demo, Path("runs/demo"))
        for code in (
            re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:1] if name == "docs/tutorial.md" else ()
        ):
            exec(compile(code, name, "exec"), {})
        for command in reversed(_ran(list(commands(text)), Path(place))):
            asked, printed = command
            expected = list(asked.output)
            if finding := differs(expected, printed):
                findings.append(f"{name}:{asked.line}: $ {asked.words}\n   {finding}")
                if write and "..." not in (line.strip() for line in expected):
                    new = [(asked.indent + line).rstrip() for line in printed]
                    lines[asked.line : asked.line + len(expected)] = new
    if write and findings:
        path.write_text("\n".join(lines) + "\n", "utf-8")
    return findings[::-1]


def _ran(every: list[Command], folder: Path) -> list[tuple[Command, list[str]]]:
    return [(c, run(c.words, c.output, folder).rstrip("\n").splitlines()) for c in every]


def main() -> int:
    """Check every document, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents", nargs="*", default=DOCUMENTS)
    parser.add_argument("--write", action="store_true", help="put in what was printed")
    parser.add_argument("--demo", type=Path, help="a folder that holds runs/demo already")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        demo = given.demo.resolve() if given.demo else Path(place) / "demo"
        if not given.demo:
            train_demo(demo)
        findings = [found for name in given.documents for found in check(name, demo, given.write)]
    print("\n".join(findings) or "every transcript is as it was printed")
    return int(bool(findings) and not given.write)


if __name__ == "__main__":
    sys.exit(main())
