"""SIGINT (Ctrl-C) in the program: it ends the process at once until a command can put things in order.

While PyTorch is imported, Python would show what it was importing, or lose the signal in it. A shell without
job control has what it starts with ``&`` ignore SIGINT. That holds until a command begins: commands say that
SIGINT ends them and keeps what is done, so it does, however they were started.
"""

import signal


class _Handler:
    ours = False  # SIGINT was Python's, or ignored, when the program began


def end_at_once() -> None:
    """Have SIGINT end the process, if it is ours to say and was not ignored."""
    before = signal.getsignal(signal.SIGINT)
    _Handler.ours |= before in (signal.default_int_handler, signal.SIG_IGN)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_again() -> None:
    """Have SIGINT raise KeyboardInterrupt, also where it was ignored."""
    if _Handler.ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
