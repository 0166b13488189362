"""The door of the program ``modulekge``.

Until PyTorch is loaded, and once a command is done, there is nothing to put in order: Ctrl-C ends the process
at once, where Python would show what it was importing, or lose the signal in it.
"""

import signal

_OURS = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # and not ignored, as in the background
if _OURS:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from modulekge import cli  # noqa: E402


def main() -> None:
    """Run a command."""
    if _OURS:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        cli.main()
    finally:
        if _OURS:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
