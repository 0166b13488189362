"""Fuzz everything that reads a file with Atheris, libFuzzer for Python.

    python scripts/fuzz_atheris.py [-max_total_time=600] [...] [INPUT]       (or: make atheris)

The readers and the inputs it starts from are those of ``fuzz.py``; the first byte of an input says which
reader gets the rest. Options are libFuzzer's. An input that makes a reader raise anything but a
ModulekgeError ends the run and is left as ``crash-...``; given to the program, it is tried again.
"""

import os
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["modulekge"]):
    import fuzz

from modulekge.errors import ModulekgeError


def run(folder: Path) -> None:
    """Fuzz until libFuzzer has enough and ends the process."""
    files, seeds, words = folder / "files", folder / "seeds", folder / "words"
    files.mkdir()
    seeds.mkdir()
    targets = fuzz.targets(files)
    for number, target in enumerate(targets):
        (seeds / str(number)).write_bytes(bytes([number]) + target.kept[0])
    pieces = ("".join(f"\\x{byte:02x}" for byte in piece) for piece in fuzz.PIECES if len(piece) < 64)
    words.write_text("".join(f'"{piece}"\n' for piece in pieces))

    def once(data: bytes) -> None:
        target = targets[data[0] % len(targets)] if data else targets[0]
        target.file.write_bytes(data[1:])
        try:
            target.read()
        except ModulekgeError:
            pass
        finally:
            target.file.write_bytes(target.kept[0])

    asked = sys.argv[1:]
    inputs = [] if any(not argument.startswith("-") for argument in asked) else [str(seeds)]
    atheris.Setup([sys.argv[0], f"-dict={words}", "-max_len=16384", "-timeout=60", *asked, *inputs], once)
    atheris.Fuzz()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        child = os.fork()
        if child == 0:
            run(Path(scratch))
        _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))
