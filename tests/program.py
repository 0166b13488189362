"""The program as its console script runs it, in this process."""

import contextlib
import io
import subprocess
import sys
from typing import NamedTuple

from modulekge import cli


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def call(*args, cwd) -> Done:
    """Run the program's own main function; return its exit code, its output and its messages."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["modulekge", *map(str, args)]
    try:
        with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
    except SystemExit as end:
        return Done(int(end.code or 0), out.getvalue(), err.getvalue())
    finally:
        sys.argv = before


def launched(processes, *args, restarts=0, **options) -> subprocess.Popen:
    """Start a script, or the program with ``-m modulekge``, under torchrun in so many processes."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", processes]
    command = [sys.executable, *torchrun, "--max-restarts", restarts, *args]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([str(word) for word in command], **pipes, **options)


def launch(processes, *args, **options) -> Done:
    """Run a script or the program under torchrun to its end."""
    with launched(processes, *args, **options) as job:
        out, err = job.communicate(timeout=600)
    return Done(job.returncode, out, err)
