"""What the commands do: each function is called by the command of its name, and prints.

Importing this takes PyTorch, and most of a second or two; Ctrl-C ends the process at once until then.
"""

import gc
import sys

from modulekge.interrupts import raise_again

if "torch" not in sys.modules:
    gc.disable()
    import torch  # noqa: F401

    gc.freeze()  # nothing of it is garbage: to look for some, here and at the end, takes half a second
    gc.enable()
raise_again()
