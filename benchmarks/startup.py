"""How soon the program answers: python benchmarks/startup.py [RUN].

CPU seconds (of user and system together, the least of five starts) of commands that need no PyTorch, of a
bare `import torch`, and of `predict` on a run, by default the one that `make demo` leaves.
"""

import os
import resource
import subprocess
import sys
from pathlib import Path

STARTS = 5
LIGHT = (
    ["--help"],
    ["--version"],
    ["train", "--help"],
    ["predict", "--help"],
    ["runs"],
    ["data", "list"],
    ["predict", "--nope"],
)


def cpu_seconds(command: list[str]) -> float:
    """The least CPU time of several starts of a command."""

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    times = []
    for _ in range(STARTS):
        before = spent()
        subprocess.run(command, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        times.append(spent() - before)
    return min(times)


def main() -> None:
    """Print one line a command."""
    program = [sys.executable, "-m", "modulekge"]
    run = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/demo")
    asked = [*program, "predict", str(run), "--head", "France", "--relation", "borders"]
    commands = {"modulekge " + " ".join(words): [*program, *words] for words in LIGHT}
    commands |= {"python -c 'import torch'": [sys.executable, "-c", "import torch"]}
    commands |= {"modulekge predict": asked} if run.exists() else {}
    for name, command in commands.items():
        print(f"{cpu_seconds(command):6.2f} s  {name}", flush=True)


if __name__ == "__main__":
    main()
