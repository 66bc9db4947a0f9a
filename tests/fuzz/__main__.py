"""Run random tables, make what fails simpler, and print code that shows it again."""

import argparse
import secrets
import sys
import time
from contextlib import suppress

from tests.fuzz.tables import _kind, draw, failure, simplest


def main() -> int:
    """Return how many different failures there were, at most 99."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=200, help="how many tables")
    parser.add_argument("--seed", type=int, default=None, help="the first of them")
    asked = parser.parse_args()
    first = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    print(f"These tables again: make fuzz TABLES={asked.tables} SEED={first}", flush=True)
    seen: set[str] = set()
    begun = time.monotonic()
    done = 0
    with suppress(KeyboardInterrupt):  # Ctrl-C ends it; what was run counts
        for number in range(first, first + asked.tables):
            case = draw(number)
            found = failure(case)
            done += 1
            if found is None or _kind(found) in seen:
                continue
            seen.add(_kind(found))
            # A call that hangs is not made simpler: every attempt would hang, too.
            small = case if found.startswith("TooSlow") else simplest(case, found)
            print(f"\n{found}\n{small.snippet()}", flush=True)
    took = time.monotonic() - begun
    print(f"{done} tables in {took:.0f} seconds, {len(seen)} kinds of failure.")
    return min(len(seen), 99)


if __name__ == "__main__":
    sys.exit(main())
