"""Which tests are slow: ``make slow`` times them all and writes their names to ``slow.txt``.

A test is marked ``slow`` if it stands there, so that ``make tests ARGS="-m 'not slow'"`` is a look
that takes less than a minute. The list is a convenience: nothing depends on its being complete.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

LIST = Path(__file__).with_name("slow.txt")
# Seconds for all cases of a test together.
SLOW = 0.3
# All tests of these start workers, a server or a browser; whichever comes first pays for it.
STARTING = (
    "tests/engines/test_dask.py",
    "tests/engines/test_faults.py",
    "tests/engines/test_traffic.py",
    "tests/report/test_browser.py",
    "tests/tables/test_databases.py",
)
TIMED = re.compile(r"^([\d.]+)s (?:call|setup|teardown) +([^\s:]+::[^\s\[]+)", re.MULTILINE)


def slow_tests(report: str) -> list[str]:
    """Return the names of the slow tests in what pytest prints with ``--durations=0``."""
    seconds: Counter[str] = Counter()
    for spent, name in TIMED.findall(report):
        seconds[name] += float(spent)
    slow = (name for name, spent in seconds.items() if spent >= SLOW)
    return sorted(name for name in slow if not name.startswith(STARTING))


def is_slow(name: str, listed: frozenset[str]) -> bool:
    """Say whether a test, a case of which may be named, is slow."""
    return name.partition("[")[0] in listed or name.startswith(STARTING)


def main() -> int:
    command = ["-m", "pytest", "-q", "--durations=0", "--durations-min=0.02", *sys.argv[1:]]
    done = subprocess.run([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    sys.stdout.write(done.stdout[-2000:])
    if done.returncode == 0:
        LIST.write_text("\n".join(slow_tests(done.stdout)) + "\n", encoding="utf-8")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
