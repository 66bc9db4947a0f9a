"""Fit once in this process and print, as JSON, the memory that it took beside the data.

Linux keeps the high-water mark of resident memory (VmHWM) and puts it back to the memory in use
(VmRSS) when 5 is written to clear_refs, so that only the fit can raise it. Elsewhere the mark of
the whole process stands: drawing the data in blocks keeps it low, and the result is a bound.
"""

import json
import resource
import sys
from pathlib import Path

from benchmarks.data import mixed_models
from regimix import MixedLinearRegression, metrics

WARM_UP_ROWS = 20_000  # loads what is loaded on first use: libraries are not the fit's memory
NEAR = 0.2
PROCESS = Path("/proc/self")


def main() -> None:
    rows, columns = map(int, sys.argv[1:])
    sample = mixed_models(rows, columns, seed=0)
    MixedLinearRegression(random_state=0).fit(sample.X[:WARM_UP_ROWS], sample.y[:WARM_UP_ROWS])
    reset = put_back_mark()
    before = in_use()
    model = MixedLinearRegression(random_state=0).fit(sample.X, sample.y)
    extra = high_water_mark() - before
    estimate = metrics.with_intercept(model.coef_, model.intercept_)
    errors = metrics.match_components(estimate, sample.theta).distance
    found = int((errors < NEAR).sum()) if len(estimate) == len(sample.theta) else 0
    content = {"extra": extra, "data": sample.X.nbytes, "found": found, "reset": reset}
    print(json.dumps(content))


def put_back_mark() -> bool:
    """Forget the memory of the past, where the system can; return whether it did."""
    try:
        (PROCESS / "clear_refs").write_text("5")
    except OSError:
        return False
    return True


def in_use() -> int:
    """Return the resident bytes of this process; the mark where the system does not say."""
    return _status("VmRSS") or high_water_mark()


def high_water_mark() -> int:
    """Return the most resident bytes since the mark was put back."""
    return _status("VmHWM") or _largest()


def _status(name: str) -> int | None:
    status = PROCESS / "status"
    if not status.exists():
        return None
    for line in status.read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    return None


def _largest() -> int:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


if __name__ == "__main__":
    main()
