"""Measure, print the table, and write it: ``python -m benchmarks.speed --help``."""

import argparse
import sys
import traceback
from importlib import import_module
from pathlib import Path

from benchmarks.speed.archive import Archive, now

# Each comparison by its name, and the module of this package that runs it. Order of the table.
COMPARISONS = {
    "million": "million",
    "linear": "linear",
    "dask": "cluster",
    "whole-fit": "whole_fit",
    "peers": "mixtures",
    "start": "start",
    "late-rounds": "late_rounds",
    "batch": "batch",
    "large-d": "large_d",
    "profile": "profiled",
}
REPEATS = 5  # an odd number: the median is then a run that happened
RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    arguments = _arguments()
    # A trial never replaces what was measured, unless a folder is named.
    folder = arguments.out or (None if arguments.quick else RESULTS)
    archive = Archive(folder, list(COMPARISONS))
    failed: list[str] = []
    try:
        failed = measure(archive, arguments)
    except KeyboardInterrupt:
        print("\nStopped. What has finished is kept.")
    archive.write()
    print(f"\n{archive.text()}")
    if folder is not None:
        print(f"Written to {folder / 'speed.md'} and speed.json.")
    if failed:
        sys.exit(f"Failed, for reasons given above: {', '.join(failed)}.")


def measure(archive: Archive, arguments: argparse.Namespace) -> list[str]:
    """Run comparisons, each on file as soon as it is done; return the names of those that fail."""
    failed = []
    for name in () if arguments.table_only else arguments.only or COMPARISONS:
        print(f"== {name}", flush=True)
        try:
            comparison = import_module(f"benchmarks.speed.{COMPARISONS[name]}")
            result = comparison.run(arguments.repeats, arguments.quick)
        except Exception:  # the others are still worth their time
            traceback.print_exc()
            failed.append(name)
            continue
        archive.add(name, result, now(arguments.repeats, arguments.quick))
        archive.write()
    return failed


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: try the benchmark")
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        choices=COMPARISONS,
        metavar="NAME",
        help=f"run some comparisons, the others stay as they are: {', '.join(COMPARISONS)}",
    )
    parser.add_argument(
        "--repeats",
        type=_positive,
        default=None,
        metavar="N",
        help=f"rounds after the warm-up (default {REPEATS}; one with --quick)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where to write (default: benchmarks/results; nowhere with --quick)",
    )
    parser.add_argument(
        "--table-only", action="store_true", help="run nothing, write page and plots again"
    )
    arguments = parser.parse_args()
    if arguments.repeats is None:
        arguments.repeats = 1 if arguments.quick else REPEATS
    return arguments


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} rounds measure nothing: use 1 or more")
    return number


if __name__ == "__main__":
    main()
