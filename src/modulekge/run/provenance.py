"""What a reader of figures may want to know of how they came about."""

import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from modulekge.run.files import as_text
from modulekge.version import __version__


def provenance() -> dict[str, Any]:
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


def training_provenance(device: torch.device) -> dict[str, Any]:
    """Return these, and what training runs on: other instructions or threads round in another order."""
    name = (
        torch.cuda.get_device_name(device)
        if device.type == "cuda"
        else torch.backends.cpu.get_cpu_capability()
    )
    return {
        **provenance(),
        "device": f"{device} ({name})",
        "threads": torch.get_num_threads(),
        "platform": platform.platform(),
    }


COMMIT_VARIABLE = "MODULEKGE_COMMIT"  # says the commit where the code was copied without its history


def source_commit() -> str:
    """Return the commit of the running code, marked ``+`` where files differ from it, or "unknown".

    A repository counts only if it tracks this file: the package may be installed inside another project.
    """
    here = Path(__file__).resolve()

    def git(*words: str) -> str:
        command = ["git", "-C", str(here.parent), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    if told := os.environ.get(COMMIT_VARIABLE):
        return told
    try:
        git("ls-files", "--error-unmatch", str(here))
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(here.parents[1]))
        return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
