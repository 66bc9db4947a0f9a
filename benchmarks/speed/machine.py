"""Where a table was measured, without naming the machine or its owner."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

import scipy.linalg  # noqa: F401  # NumPy and SciPy each bring a BLAS, known once it is loaded
from threadpoolctl import threadpool_info


def describe() -> dict[str, str]:
    """Name the processor, the threads, and the versions that decide the speed."""
    # Keyed by name, because NumPy and SciPy each bring a copy of the same library.
    blas = {
        f"{pool['internal_api']} {pool['version']}": pool["num_threads"]
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "threads": ", ".join(f"{threads} ({name})" for name, threads in blas.items()),
        "Python": platform.python_version(),
        **{name: version(name) for name in ("regimix", "numpy", "scipy", "scikit-learn")},
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
