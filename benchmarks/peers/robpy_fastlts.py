"""robpy's ``FastLTSRegression``, in an environment of its own: it needs an older scikit-learn."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.peers.worker import PeerMissingError, Worker

REQUIREMENT = "robpy==0.0.6"  # the newest when the benchmark was written
HOW_TO_GET = f"missing here: `pip install {REQUIREMENT}` has to work; see benchmarks/README.md"
ENVIRONMENT = Path(__file__).parents[1] / ".cache" / "robpy"


def robpy(say: Callable[[str], None]) -> Worker:
    """Start robpy, after making its environment the first time."""
    python = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ready = ENVIRONMENT / "ready"
    if not ready.exists():
        say("making an environment for robpy (once)")
        try:
            subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], check=True)
            subprocess.run([python, "-m", "pip", "install", "-qq", REQUIREMENT], check=True)
        except subprocess.CalledProcessError as error:
            raise PeerMissingError(HOW_TO_GET) from error
        ready.touch()
    script = Path(__file__).with_name("robpy_worker.py")
    return Worker([str(python), str(script)], HOW_TO_GET)
