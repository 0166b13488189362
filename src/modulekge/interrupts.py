"""Ctrl-C in the program: it ends the process at once until a command is ready to put things in order.

While PyTorch is imported, Python would show what it was importing, or lose the signal in it.
"""

import signal


class _Handler:
    ours = False  # Ctrl-C was Python's when the program began, and not ignored, as in the background


def end_at_once() -> None:
    """Have Ctrl-C end the process, if it is ours to say."""
    _Handler.ours |= signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if _Handler.ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_again() -> None:
    """Have Ctrl-C raise KeyboardInterrupt again."""
    if _Handler.ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
