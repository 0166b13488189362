"""Prove that two processes train over NCCL what one trains alone: every row, every loss, every option.

    python scripts/nccl_check.py       (or: make nccl-check)

Two launchers stand for two machines. Where there is one GPU, both processes use it: NCCL allows that to
processes that say they are on different hosts, and sends through the loopback. Without CUDA the same is
checked over gloo. Then a process of a training is killed, and torchrun has to go on with what was kept.
Prints a line per check and exits with 1 if one fails.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parent.parent
JOB = ROOT / "tests" / "distributed" / "job.py"
TRAIN = ["-m", "modulekge", "train", "world", "--model", "ModulE-HH", "--recipe", "none"]
TRAIN += ["--set", "train.epochs=6", "--set", "train.eval_every=1"]
NEAR = 1e-5  # of a loss, relative


def machines(place: Path, *job: object, restarts: int = 0) -> list[subprocess.Popen[str]]:
    """Start a job on two machines that are this one."""
    port = 29500 + os.getpid() % 1000 + restarts
    told = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "PYTHONPATH": str(ROOT / "src")}
    started = []
    for host in (0, 1):
        shape = ["--nnodes", 2, "--node-rank", host, "--nproc-per-node", 1, "--max-restarts", restarts]
        command = [sys.executable, "-m", "torch.distributed.run", *shape]
        command += ["--master-addr", "127.0.0.1", "--master-port", port, *job]
        with (place / f"log{host}").open("w") as log:
            environment = {**os.environ, **told, "NCCL_HOSTID": f"host{host}"}
            started.append(
                subprocess.Popen(
                    list(map(str, command)), cwd=place, env=environment, stdout=log, stderr=log, text=True
                )
            )
    return started


def ended(jobs: list[subprocess.Popen[str]], place: Path) -> str:
    """Wait for a job; return what it said last if it failed."""
    codes = [job.wait() for job in jobs]
    if any(codes):
        return "\n".join((place / f"log{host}").read_text("utf-8")[-2000:] for host in (0, 1))
    return ""


def equal(alone: dict[str, Any], shards: int, place: Path) -> str:
    """Train every case with two processes; say how far they are from one, and what is wrong, if anything."""
    out = place / f"{shards}.json"
    failed = ended(machines(place, JOB, out, shards), place)
    if failed:
        return failed
    found = json.loads(out.read_text("utf-8"))
    apart = {
        name: max(abs(a - b) / abs(b) for a, b in zip(found[name]["losses"], one["losses"], strict=True))
        for name, one in alone.items()
        if isinstance(one, dict)
    }
    worst = max(apart, key=lambda name: apart[name])
    print(f"{shards} shards of 2: {len(apart)} cases, losses within {apart[worst]:.1e} ({worst})", flush=True)
    return "" if apart[worst] < NEAR else f"{worst}: {apart[worst]}"


def survives(place: Path) -> str:
    """Kill the second process of a training; torchrun begins anew, and the run ends as it would have."""
    run = place / "run"
    jobs = machines(place, *TRAIN, "--out", run, restarts=2)
    while not (run / "last.safetensors").exists() and jobs[0].poll() is None:
        time.sleep(0.1)
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words, variables = ((path / name).read_bytes() for name in ("cmdline", "environ"))
        except OSError:  # it has ended, or is not ours
            continue
        if str(run).encode() in words and b"GROUP_RANK=1" in variables.split(b"\0"):
            os.kill(int(path.name), signal.SIGKILL)
            break
    else:
        return "no process was found to kill"
    failed = ended(jobs, place)
    epochs = (run / "epochs.jsonl").read_text("utf-8").splitlines()
    sessions = json.loads((run / "run.json").read_text("utf-8"))["sessions"]
    print(f"killed and begun anew: {len(epochs)} epochs in {len(sessions)} sessions", flush=True)
    return failed or ("" if len(epochs) == 6 and len(sessions) == 2 else "not gone on")


def main() -> None:
    """Check equality with the entities in two halves and with two copies of them, then a fault."""
    backend = f"NCCL {torch.cuda.nccl.version()}" if torch.cuda.is_available() else "gloo, for want of CUDA"
    print(f"{backend}, {torch.cuda.device_count()} GPUs, PyTorch {torch.__version__}", flush=True)
    with tempfile.TemporaryDirectory() as here:
        place = Path(here)
        one = place / "one.json"
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        subprocess.run([sys.executable, JOB, one, "0"], check=True, env=environment)
        alone = json.loads(one.read_text("utf-8"))
        wrong = [equal(alone, shards, place) for shards in (2, 1)]
        wrong.append(survives(place))
    for finding in filter(None, wrong):
        print(f"FAIL {finding}")
    sys.exit(any(wrong))


if __name__ == "__main__":
    main()
