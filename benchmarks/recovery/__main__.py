"""Run what is not yet on file, then write the tables: ``python -m benchmarks.recovery --help``."""

import argparse
import tempfile
from pathlib import Path

from benchmarks.recovery import plots, table, targets
from benchmarks.recovery.cells import SUITES, Suite
from benchmarks.recovery.contestants import CONTESTANTS
from benchmarks.recovery.run import Archive, Task, fingerprint, run
from benchmarks.recovery.summary import summarise
from benchmarks.speed import machine

HOME = Path(__file__).parents[1]
RESULTS, FILE = HOME / "results", HOME / ".cache" / "recovery.jsonl"


def main() -> None:
    arguments = _arguments()
    if arguments.quick:
        with tempfile.TemporaryDirectory() as folder:
            _measure_and_tell(arguments, Path(folder) / FILE.name, arguments.out)
    else:
        _measure_and_tell(arguments, arguments.file, arguments.out or RESULTS)


def _measure_and_tell(arguments: argparse.Namespace, file: Path, folder: Path | None) -> None:
    archive = Archive(file, fingerprint(), any_code=arguments.any_code)
    if not arguments.table_only:
        try:
            _measure(archive, arguments)
        except KeyboardInterrupt:
            print("\nStopped. What has finished is on file; the next call goes on from there.")
    summary = summarise(archive, arguments.seeds)
    lines = [] if arguments.quick else targets.judged(summary)
    pictures = [] if folder is None else plots.draw(summary, folder)
    about = {
        "machine": machine.describe(),
        "jobs": arguments.jobs,
        "quick": arguments.quick,
        "code": archive.codes(),
    }
    text = table.markdown(summary, lines, pictures, about)
    if folder is None:
        print(f"\n{text}")
    else:
        table.write(folder, text, summary, lines, about)
        print(f"Written to {folder / 'recovery.md'} and recovery.json.")


def _measure(archive: Archive, arguments: argparse.Namespace) -> None:
    for name in arguments.suite or SUITES:
        tasks = _tasks(archive, SUITES[name], arguments)
        print(f"== {name}: {len(tasks)} data sets to go", flush=True)
        run(tasks, archive, arguments.jobs)


def _tasks(archive: Archive, suite: Suite, arguments: argparse.Namespace) -> list[Task]:
    """List what is left of a suite, seed by seed: a run that is cut short covers every cell."""
    names = [c for c in suite.contestants if c in (arguments.contestants or CONTESTANTS)]
    seeds = arguments.seeds or range(suite.runs)
    cells = [cell for cell in suite.cells if not arguments.cell or arguments.cell in cell.name]
    if arguments.quick:
        cells, seeds = [min(cells, key=lambda cell: cell.n * cell.d)], seeds[:1]
    tasks = (archive.task(cell, seed, names) for seed in seeds for cell in cells)
    return [task for task in tasks if task is not None]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery", description=__doc__)
    parser.add_argument(
        "--suite", nargs="+", choices=SUITES, metavar="NAME", help=f"of {', '.join(SUITES)}"
    )
    parser.add_argument(
        "--seeds", type=_seeds, metavar="A:B", help="from A to below B (default: the suite's own)"
    )
    parser.add_argument(
        "--contestants",
        nargs="+",
        choices=CONTESTANTS,
        metavar="NAME",
        help=f"of {', '.join(repr(name) for name in CONTESTANTS)}",
    )
    parser.add_argument("--cell", metavar="TEXT", help="only cells whose name contains this")
    parser.add_argument("--jobs", type=int, default=1, help="data sets side by side (default 1)")
    parser.add_argument("--quick", action="store_true", help="one run a suite: does it run here?")
    parser.add_argument("--table-only", action="store_true", help="run nothing, write the tables")
    parser.add_argument(
        "--any-code", action="store_true", help="count runs of earlier versions of the library too"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: benchmarks/results")
    parser.add_argument(
        "--file", type=Path, default=FILE, help="finished runs (default: benchmarks/.cache)"
    )
    return parser.parse_args()


def _seeds(text: str) -> range:
    low, _, high = text.partition(":")
    seeds = range(int(low), int(high or int(low) + 1))
    if not seeds:
        raise argparse.ArgumentTypeError(f"{text} names no seed: use A:B with A below B")
    return seeds


if __name__ == "__main__":
    main()
