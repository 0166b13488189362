"""What the commands do: each function is called by the command of its name, and prints.

Importing this takes PyTorch, and most of a second or two; Ctrl-C ends the process at once until then.
"""

import pyarrow
import torch  # noqa: F401

from modulekge.interrupts import raise_again

pyarrow.enable_signal_handlers(False)  # Arrow's own, while it reads a table, now and then loses a Ctrl-C
raise_again()
