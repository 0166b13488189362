"""What the commands do: each function is called by the command of its name, and prints.

Importing this takes PyTorch, and most of a second or two; Ctrl-C ends the process at once until then.
"""

import gc

from modulekge.interrupts import raise_again

gc.disable()
import torch  # noqa: E402, F401

gc.freeze()  # PyTorch is no garbage: to look for some in it, here and at the end, takes half a second
gc.enable()
raise_again()
