"""What a reader of figures may want to know of how they came about."""

import platform
import shlex
import sys
from datetime import UTC, datetime
from typing import Any

import torch

from modulekge.run.files import as_text
from modulekge.version import __version__


def circumstances() -> dict[str, Any]:
    """Return the time, the command and the versions."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": as_text(shlex.join(sys.argv)),
        "versions": {
            "modulekge": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
    }


def training_circumstances(device: torch.device) -> dict[str, Any]:
    """Return these, and what training runs on: other instructions or threads round in another order."""
    name = (
        torch.cuda.get_device_name(device)
        if device.type == "cuda"
        else torch.backends.cpu.get_cpu_capability()
    )
    return {
        **circumstances(),
        "device": f"{device} ({name})",
        "threads": torch.get_num_threads(),
        "platform": platform.platform(),
    }
