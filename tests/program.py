"""The program as its console script runs it, in this process."""

import contextlib
import io
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
