"""Many clients at once against a real server: are answers right, how fast do they come, does memory grow?

python benchmarks/load.py [--clients 64] [--seconds 60] [--minutes 0] [--out results/load.json]

Serves a ModulE-HH of k = 128 with weights as they are drawn, on a random graph of the size of WN18RR: its
answers cost what those of a trained one do. Clients each ask one question after another, in connections of
their own, and compare answers with those of the library; of a hundred requests five are malformed, and of
five more the client closes its connection without waiting. Two servers, one that batches up to 64 questions
and one that answers each alone, are loaded in turn, in six rounds; then, with --minutes, a third that
batches while the server's memory is watched. Clients run on the same cores as the server. Prints lines and
writes JSON.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import torch

import modulekge
from modulekge.answers.predictor import Predictor
from modulekge.answers.questions import Question
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.run.checkpoint import begin
from modulekge.run.folder import RunFolder
from modulekge.run.plan import NO_RECIPE, resolve
from modulekge.run.run import load

ENTITIES, RELATIONS, TRIPLES = 40_943, 11, 93_003  # of WN18RR
BAD = [
    (b"POST", b"/predict", b"{"),
    (b"POST", b"/predict", b"[" * 5000),
    (b"POST", b"/predict", b'{"questions": [{"head": "nobody", "relation": "r0"}]}'),
    (b"POST", b"/predict", b'{"questions": [{"head": "e0"}]}'),
    (b"GET", b"/entities?limit=-1", b""),
    (b"GET", b"/nothing/../../etc/passwd", b""),
    (b"DELETE", b"/predict", b""),
]


@dataclass
class Tally:
    """What the clients of one phase saw."""

    seconds: list[float] = field(default_factory=list)  # of each right answer
    wrong: int = 0
    refused: int = 0  # 503
    failed: int = 0  # neither an answer nor a refusal
    malformed: int = 0
    malformed_not_refused: int = 0
    killed: int = 0


def make_run(path: Path) -> None:
    """Make a run of a random graph with weights as they are drawn."""
    draw = torch.Generator().manual_seed(0)
    sizes = torch.tensor([ENTITIES, RELATIONS, ENTITIES])
    triples = (torch.rand(TRIPLES, 3, generator=draw, dtype=torch.float64) * sizes).long().unique(dim=0)
    triples = triples[torch.randperm(len(triples), generator=draw)]
    names = (
        Vocabulary("entity", tuple(f"e{i}" for i in range(ENTITIES))),
        Vocabulary("relation", tuple(f"r{i}" for i in range(RELATIONS))),
    )
    dataset = Dataset("random", *names, triples[6000:], triples[:3000], triples[3000:6000])
    config = resolve(dataset, "ModulE-HH", [{"model": {"k": 128}}], recipe=NO_RECIPE)
    RunFolder.create(path, config, dataset).save_weights(begin(config, dataset)[0])


def expected(path: Path, count: int) -> list[tuple[bytes, list[str], list[float]]]:
    """Return bodies of requests with the names and scores that the library gives, asked one by one."""
    asked, draw = Predictor(load(path)), random.Random(0)
    found = []
    for _ in range(count):
        ends = (f"e{draw.randrange(ENTITIES)}", f"r{draw.randrange(RELATIONS)}")
        question = Question(*ends) if draw.random() < 0.5 else Question(None, ends[1], ends[0])
        (answers,) = asked.predict_many([question], 10)
        fields = {key: value for key, value in vars(question).items() if value is not None}
        body = json.dumps({"questions": [fields]}).encode()
        found.append((body, [a.name for a in answers], [a.score for a in answers]))
    return found


class Connection:
    """HTTP/1.1 by hand: a client library would take more of the cores than the server does."""

    def __init__(self, port: int, run: str) -> None:
        self.port, self.run = port, f"/api/v1/runs/{quote(run)}".encode()
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: bytes, path: bytes, body: bytes) -> asyncio.StreamReader:
        """Send a request, in a new connection where the last one was closed."""
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        lines = (
            b"%s %s%s HTTP/1.1" % (method, self.run, path),
            b"host: localhost",
            b"content-type: application/json",
            b"content-length: %d" % len(body),
            b"",
            body,
        )
        self.streams[1].write(b"\r\n".join(lines))
        await self.streams[1].drain()
        return self.streams[0]

    async def ask(self, method: bytes, path: bytes, body: bytes) -> tuple[int, bytes]:
        """Return status and body of an answer."""
        reader = await self.send(method, path, body)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        content = await reader.readexactly(int(length[1]) if length else 0)
        if b"connection: close" in head.lower():
            self.kill()
        return int(head.split(b" ", 2)[1]), content

    def kill(self) -> None:
        """Close the connection, whatever is under way."""
        if self.streams is not None:
            self.streams[1].transport.abort()
            self.streams = None


async def client(connection: Connection, questions: list, tally: Tally, until: float, seed: int) -> None:
    """Ask one question after another until the time is over."""
    draw = random.Random(seed)
    while time.perf_counter() < until:
        chance = draw.random()
        try:
            if chance < 0.05:
                status, content = await connection.ask(*draw.choice(BAD))
                tally.malformed += 1
                tally.malformed_not_refused += not (400 <= status < 500 and b'"error"' in content)
            elif chance < 0.1:
                await connection.send(b"POST", b"/predict", draw.choice(questions)[0])
                await asyncio.sleep(draw.random() * 0.02)
                connection.kill()
                tally.killed += 1
            else:
                await ask_rightly(connection, draw.choice(questions), tally)
        except (OSError, asyncio.IncompleteReadError, ValueError):
            tally.failed += 1
            connection.kill()
    connection.kill()


async def ask_rightly(connection: Connection, question: tuple, tally: Tally) -> None:
    """Ask a question whose answer is known."""
    body, names, scores = question
    started = time.perf_counter()
    status, content = await connection.ask(b"POST", b"/predict", body)
    seconds = time.perf_counter() - started
    if status != 200:
        tally.refused += status == 503
        tally.failed += status != 503
        return
    (answers,) = json.loads(content)["answers"]
    close = all(abs(a["score"] - s) <= 1e-3 * max(1, abs(s)) for a, s in zip(answers, scores, strict=True))
    if [a["name"] for a in answers] == names and close:
        tally.seconds.append(seconds)
    else:
        tally.wrong += 1


class Server:
    """A 'modulekge serve' of its own process."""

    def __init__(self, run: Path, batch: int) -> None:
        self.batch = batch
        command = [sys.executable, "-m", "modulekge", "serve", str(run), "--port", "0", "--batch", str(batch)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline() if self.process.stdout else ""
        self.port = int(re.search(r":(\d+)/", line)[1])

    def resident(self) -> int:
        """Return the bytes of memory that the process holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) << 10

    async def batches(self) -> tuple[float, float]:
        """Return how many batches were answered, and of how many questions."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        text = (await reader.read()).decode()
        writer.close()
        count, total = (
            re.search(rf"modulekge_batch_questions_{key} (\S+)", text)[1] for key in ("count", "sum")
        )
        return float(count), float(total)

    def stop(self) -> int:
        """Stop it as Ctrl-C does; return its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)


@dataclass
class Phase:
    """A server under load, in one or several rounds."""

    server: Server
    clients: int
    tally: Tally = field(default_factory=Tally)
    spent: float = 0.0
    batches: float = 0.0
    questions: float = 0.0
    memory: list[tuple[int, int]] = field(default_factory=list)  # second, MiB

    async def round(self, run: str, questions: list, seconds: float) -> None:
        """Let clients ask for so long."""
        before, started = await self.server.batches(), time.perf_counter()
        work = [
            asyncio.create_task(
                client(Connection(self.server.port, run), questions, self.tally, started + seconds, seed)
            )
            for seed in range(self.clients)
        ]
        while not all(task.done() for task in work):
            now = round(self.spent + time.perf_counter() - started)
            self.memory.append((now, self.server.resident() >> 20))
            await asyncio.wait(work, timeout=max(1.0, seconds / 60))
        self.spent += time.perf_counter() - started
        count, total = (
            after - first for after, first in zip(await self.server.batches(), before, strict=True)
        )
        self.batches, self.questions = self.batches + count, self.questions + total

    def line(self) -> dict[str, object]:
        """Return what came of it."""
        times, tally = sorted(self.tally.seconds), self.tally
        return {
            "batch": self.server.batch,
            "clients": self.clients,
            "seconds": round(self.spent, 1),
            "answers": len(times),
            "per second": round(len(times) / self.spent, 1),
            "p50 ms": round(1e3 * times[len(times) // 2], 1),
            "p99 ms": round(1e3 * times[int(len(times) * 0.99)], 1),
            "worst ms": round(1e3 * times[-1], 1),
            "mean batch": round(self.questions / self.batches, 1),
            "wrong": tally.wrong,
            "refused": tally.refused,
            "failed": tally.failed,
            "malformed": tally.malformed,
            "malformed not refused": tally.malformed_not_refused,
            "killed": tally.killed,
            "resident MiB": self.memory,
        }


def measure(phases: list[Phase], run: str, questions: list, seconds: float, rounds: int) -> list[dict]:
    """Load servers in turn, so that other work on the machine meets them alike; stop them."""
    for number in range(1 + rounds):
        for phase in phases:
            if number == 0:
                asyncio.run(Phase(phase.server, 4).round(run, questions, 3))  # warm
            else:
                asyncio.run(phase.round(run, questions, seconds / rounds))
    lines = [{**phase.line(), "exit code": phase.server.stop()} for phase in phases]
    for line in lines:
        print({key: value for key, value in line.items() if key != "resident MiB"}, flush=True)
    return lines


def main() -> None:
    """Measure with batches, without, and for as long as asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        make_run(run)
        questions = expected(run, 300)
        servers = [Server(run, batch) for batch in (64, 1)]
        try:
            lines = measure([Phase(s, args.clients) for s in servers], run.name, questions, args.seconds, 6)
            if args.minutes:
                servers.append(Server(run, 64))
                long = [Phase(servers[-1], args.clients)]
                lines += measure(long, run.name, questions, 60 * args.minutes, 1)
        finally:
            for server in servers:
                server.process.kill()
    about = {
        "model": "ModulE-HH, k = 128, weights as drawn",
        "entities": ENTITIES,
        "relations": RELATIONS,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "version": modulekge.__version__,
        "torch": torch.__version__,
    }
    text = json.dumps({**about, "phases": lines})
    print(text)
    if args.out:
        args.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
