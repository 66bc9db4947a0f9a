"""Measure, print the table, and write it: ``python -m benchmarks.speed --help``."""

import argparse
from importlib import import_module
from pathlib import Path

from benchmarks.speed import machine, table

COMPARISONS = ("whole-fit", "late-rounds", "batch", "large-d")  # each a module of this package
REPEATS = 5  # an odd number: the median is then a run that happened
RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    arguments = _arguments()
    results: dict[str, table.Comparison] = {}
    for name in arguments.only or COMPARISONS:
        print(f"== {name}", flush=True)
        comparison = import_module(f"benchmarks.speed.{name.replace('-', '_')}")
        results[name] = comparison.run(arguments.repeats, arguments.quick)
    run = {
        "repeats": arguments.repeats,
        "quick": arguments.quick,
        "machine": machine.describe(),
    }
    text = table.markdown(results, run)
    print(f"\n{text}")
    # A trial or a part never replaces the whole table unless a folder is named.
    partial = arguments.quick or arguments.only
    folder = arguments.out or (None if partial else RESULTS)
    if folder is not None:
        table.write(folder, text, results, run)
        print(f"Written to {folder / 'speed.md'} and speed.json.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: try the benchmark")
    parser.add_argument(
        "--only",
        action="append",
        choices=COMPARISONS,
        metavar="NAME",
        help=f"run one comparison (may be repeated): {', '.join(COMPARISONS)}",
    )
    parser.add_argument(
        "--repeats",
        type=_positive,
        default=REPEATS,
        metavar="N",
        help=f"rounds after the warm-up (default {REPEATS})",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where to write (default: benchmarks/results, for a whole run)",
    )
    return parser.parse_args()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} rounds measure nothing: use 1 or more")
    return number


if __name__ == "__main__":
    main()
