"""Kill the program at moments of every kind, go on, and compare with what it makes when left alone.

    python scripts/crashes.py --kills 50 --others 3 --out results/crashes.json

A training is killed (SIGKILL) either from outside at a random time or from within, by a thread that waits
until the program is in a certain function: a step, a validation, the write of a checkpoint, the final report.
What it leaves must load or say what is missing, ``modulekge resume`` must end it (a third of these are killed
too and resumed again), and all of its files must then be those of the training that was left alone, bit for
bit but for seconds. Then every other command that writes is killed: what it should make is whole or absent,
the run it reads is as it was, and asked again it makes the same. Prints a line per kill and how many were
survived; exits with 1 if not all were. Needs a system that forks.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import torch

from modulekge import cli

SETTINGS = {"train.epochs": 8, "train.eval_every": 2, "train.ema": 0.9}
MODELS = {
    "ModulE-RC": {"model.k": 4, "train.batch": 2048},
    "Paths": {"paths.layers": 1, "paths.d": 4, "train.batch": 64, "train.parts": 40, "paths.dropout": 0.1},
}
TRAIN = ["train", "world", "--recipe", "none", "--out", "run"]
TIMES = ("seconds", "triples_per_second", "train_seconds")  # all that may differ
ENDED = "has had its"  # epochs, and its reports: a kill came when all was kept
AIMS = {  # functions of the program, and how often a training enters them
    "create": 1,
    "_take": 8,
    "validate": 4,
    "add_record": 8,
    "save_weights": 3,
    "save_checkpoint": 4,
    "_evaluate": 1,
    "save_report": 1,
    "make_calibration": 1,
    "save_calibration": 1,
}
OTHERS = {
    "evaluate": (["evaluate", "run", "--split", "valid"], "run/report-valid.json"),
    "calibrate": (["calibrate", "run"], "run/calibration.json"),
    "add": (["add", "run", "new.tsv", "--out", "added"], "added"),
    "refresh": (["add", "run", "new.tsv", "--out", "added", "--refresh", "2"], "added"),
    "numpy": (["export", "run", "arrays", "--to", "numpy"], "arrays"),
    "parquet": (["export", "run", "vectors.parquet"], "vectors.parquet"),
    "word2vec": (["export", "run", "vectors.vec"], "vectors.vec"),
    "hub": (["export", "run", "shared", "--to", "hub"], "shared"),
    "rdf": (["export", "run", "links.nt"], "links.nt"),
    "index": (["export", "run", "index", "--to", "index"], "index"),
    "reproduce": (
        ["reproduce", "results", "--dataset", "world", "--models", "DistMult",
         "--results", "results", "--runs", "runs", "--out", "tables"],
        "results",
    ),
    "tune": (
        ["tune", "world", "--model", "DistMult", "--trials", "3", "--set", "train.epochs=2",
         "--set", "model.k=4", "--out", "search"],
        "search/best.toml",
    ),
}  # fmt: skip
ON = ("reproduce", "tune")  # go on when asked again; what a search draws depends on the trials that were cut


class Aim(NamedTuple):
    """When to kill: seconds after there is a run, or at a look that finds the program in a function again."""

    seconds: float = 0.0
    function: str = ""
    visit: int = 1
    look: int = 1

    def __str__(self) -> str:
        return f"{self.function} {self.visit}" if self.function else f"after {self.seconds:.2f} s"


class End(NamedTuple):
    """How a process ended: its exit code, negative for a signal, and what it printed."""

    code: int
    output: str


def run(arguments: list[str], place: Path, aim: Aim | None = None) -> End:
    """Run a command of the program in a process of its own, and perhaps kill it."""
    log = place / "log"
    process = os.fork()
    if process == 0:
        _child(arguments, place, log, aim)
    if aim and not aim.function:
        while not (place / "run").exists() and _runs(process):
            time.sleep(1e-3)
        time.sleep(aim.seconds)
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    return End(os.waitstatus_to_exitcode(status), log.read_text("utf-8"))


def _runs(process: int) -> bool:
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _child(arguments: list[str], place: Path, log: Path, aim: Aim | None) -> None:
    code = 1
    try:
        with log.open("w") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
        os.chdir(place)
        sys.argv = ["modulekge", *arguments]
        if aim and aim.function:
            sys.setswitchinterval(1e-4)
            threading.Thread(target=_strike, args=(aim,), daemon=True).start()
        cli.main()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)


def _strike(aim: Aim) -> None:
    """Kill this process at the wanted look at the wanted visit, or where that visit ends before."""
    visits = looks = 0
    inside = False
    while True:
        before, inside = inside, aim.function in _functions(threading.main_thread().ident)
        visits += inside and not before
        looks = looks + 1 if inside and visits == aim.visit else looks
        if looks == aim.look or (looks and not inside):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(1e-4)


def _functions(thread: int | None) -> Iterator[str]:
    frame = sys._current_frames().get(thread or 0)
    while frame:
        yield frame.f_code.co_name
        frame = frame.f_back


def contents(path: Path) -> dict[str, Any]:
    """Return all there is at a path, without times and without the provenance of a run."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    found = {str(file.relative_to(path)): file for file in files if file.is_file()}
    return {name: _timeless(file) for name, file in found.items() if file.name not in ("run.json", ".lock")}


def _timeless(file: Path) -> Any:
    if file.name == "epochs.jsonl" or file.name.startswith("report") or file.parent.name == "results":
        lines = file.read_text("utf-8").splitlines() if file.suffix == ".jsonl" else [file.read_text("utf-8")]
        return [{key: v for key, v in json.loads(line).items() if key not in TIMES} for line in lines]
    return file.read_bytes()


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    """Name the files that are not as wanted."""
    return ", ".join(sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name)))


def moments(draw: random.Random, seconds: float) -> Iterator[Aim]:
    """Draw moments of a training that takes so long: by time and by function in turn, functions alike."""
    for function in cycle(AIMS):
        yield Aim(seconds=draw.uniform(0, seconds))
        look = int(10 ** draw.uniform(0, 2.5))
        yield Aim(function=function, visit=draw.randint(1, AIMS[function]), look=look)


def killed_training(place: Path, aim: Aim, again: Aim | None, whole: dict[str, Any]) -> dict[str, Any]:
    """Kill a training, go on with it, and say what is wrong with what comes of it, if anything."""
    first = run(TRAIN, place, aim)
    if first.code != -signal.SIGKILL:
        return {"aim": str(aim), "missed": True}
    folder = place / "run"
    told: dict[str, Any] = {"aim": str(aim), **state(folder)}
    asked = run(["predict", "run", "--head", "France", "--relation", "borders"], place)
    unusable = asked.code and "no weights yet" not in asked.output and folder.exists()
    last = End(1, "")
    if again:
        last = run(going_on(folder), place, again)
        told["again"] = "too late" if last.code == 0 else str(again)
    if last.code:
        last = run(going_on(folder), place)
    told["wrong"] = (
        (f"does not load: {asked.output}" if unusable else "")
        or (f"does not go on: {last.output}" if last.code and ENDED not in last.output else "")
        or differences(contents(folder), whole)
    )
    return told


def going_on(folder: Path) -> list[str]:
    """Return the command that goes on with what a kill left: the first one, before there is a folder."""
    return ["resume", "run"] if folder.exists() else TRAIN


def state(folder: Path) -> dict[str, Any]:
    """Say what a kill left: epochs, and files that were being written."""
    epochs = folder / "epochs.jsonl"
    return {
        "epochs": len(epochs.read_bytes().splitlines()) if epochs.exists() else 0,
        "parts": [path.name for path in folder.glob(".*.part")],
    }


def killed_command(place: Path, name: str, aim: Aim, wanted: dict[str, Any]) -> dict[str, Any]:
    """Kill a command that reads a run and writes something, and ask it again."""
    command, target = OTHERS[name]
    run_before = contents(place / "run")
    end = run(command, place, aim)
    if end.code != -signal.SIGKILL:
        return {"aim": f"{name} {aim}", "missed": True}
    path, wrong = place / target, ""
    if path.exists() and name not in ("refresh", *ON):  # whose folder goes on training, as any run does
        wrong = differences(contents(path), wanted)
    changed = differences(contents(place / "run"), run_before)
    if {part for part in changed.split(", ") if part} - {Path(target).name, f".{Path(target).name}.part"}:
        wrong = wrong or f"the run changed: {changed}"
    if name == "refresh" and path.exists():
        command = ["resume", "added", "--set", "train.epochs=2"]
    elif path.exists() and not target.startswith("run/") and name not in ON:
        command = []
    again = run(command, place) if command else End(0, "")
    wrong = wrong or (again.output if again.code else "")
    if not wrong and name not in ("refresh", "tune"):
        wrong = differences(contents(path), wanted)
    if not wrong and name == "tune":
        wrong = "" if path.exists() and "of 3 trials" in path.read_text("utf-8") else "the search did not end"
    if not wrong and name == "refresh":
        wrong = differences(_weights(path), {key: wanted[key] for key in _weights(path)})
    return {"aim": f"{name} {aim}", "wrong": wrong}


def _weights(path: Path) -> dict[str, Any]:
    return {name: value for name, value in contents(path).items() if name.endswith(".safetensors")}


def trainings(count: int, draw: random.Random, place: Path) -> Iterator[dict[str, Any]]:
    """Kill trainings until so many were hit."""
    timed(TRAIN, place)
    whole, hit = contents(place / "run"), 0
    made, ended = ((place / "run" / name).stat().st_mtime for name in ("vocabulary.json", "calibration.json"))
    aims = moments(draw, ended - made)
    while hit < count:
        with tempfile.TemporaryDirectory(dir=place.parent) as here:
            aim, again = next(aims), next(aims) if hit % 3 == 2 else None
            told = killed_training(Path(here), aim, again, whole)
        hit += not told.get("missed")
        yield told


def others(count: int, draw: random.Random, place: Path) -> Iterator[dict[str, Any]]:
    """Kill every other command so often."""
    (place / "new.tsv").write_text("Atlantis\tborders\tPortugal\nAtlantis\tcontinent\tEurope\n", "utf-8")
    for name, (command, target) in OTHERS.items() if count else ():
        with tempfile.TemporaryDirectory(dir=place.parent) as here:
            whole = shutil.copytree(place, Path(here) / "whole")
            seconds = timed(command, whole)
            wanted, hit = contents(whole / target), 0
            while hit < count:
                cut = shutil.copytree(place, Path(here) / "cut")
                told = killed_command(cut, name, Aim(seconds=draw.uniform(0, seconds)), wanted)
                shutil.rmtree(cut)
                hit += not told.get("missed")
                yield told


def timed(command: list[str], place: Path) -> float:
    """Run a command to its end; return its seconds."""
    started = time.perf_counter()
    end = run(command, place)
    if end.code:
        sys.exit(f"{' '.join(command)}: {end.output}")
    return time.perf_counter() - started


def main() -> None:
    """Kill, go on, compare, count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=MODELS, default="ModulE-RC", help="that is trained")
    parser.add_argument("--kills", type=int, default=50, help="of trainings")
    parser.add_argument("--others", type=int, default=3, help="of each other command that writes")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    draw = random.Random(args.seed)
    for key, value in {**SETTINGS, **MODELS[args.model]}.items():
        TRAIN.extend(["--set", f"{key}={value}"])
    TRAIN.extend(["--model", args.model])
    print(json.dumps({"seed": args.seed}), flush=True)
    kinds: dict[str, list[dict[str, Any]]] = {"trainings": [], "others": []}
    with tempfile.TemporaryDirectory() as here:
        place = Path(here) / "whole"
        place.mkdir()
        for kind, told in [("trainings", trainings), ("others", others)]:
            count = args.kills if kind == "trainings" else args.others
            for line in told(count, draw, place):
                print(json.dumps(line), flush=True)
                if not line.get("missed"):
                    kinds[kind].append(line)
    found: dict[str, Any] = {"seed": args.seed, "versions": {"torch": torch.__version__}}
    for kind, lines in kinds.items():
        found[kind] = {"killed": len(lines), "survived": sum(not line["wrong"] for line in lines)}
    found["left"] = Counter(part for line in kinds["trainings"] for part in line["parts"])
    found["lines"] = kinds["trainings"] + kinds["others"]
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(json.dumps({key: value for key, value in found.items() if key != "lines"}))
    sys.exit(any(line["wrong"] for line in found["lines"]))


if __name__ == "__main__":
    main()
