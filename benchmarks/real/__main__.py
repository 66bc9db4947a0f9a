"""Measure regimix on real tables and write the page: ``python -m benchmarks.real --help``."""

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.real import in_r, page
from benchmarks.real.formulas import QUICK
from benchmarks.real.part import Effort, lines_of
from benchmarks.real.parts import PARTS
from benchmarks.real.run import run
from benchmarks.real.tables import formulas, load
from benchmarks.speed import machine
from benchmarks.speed.archive import commit

RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    arguments = _arguments()
    folder = arguments.out or (None if arguments.quick else RESULTS)
    archive = page.Archive(folder)
    print(f"R: {in_r.version()}", flush=True)
    try:
        for part in arguments.parts:
            _measure(part, arguments, archive)
    except KeyboardInterrupt:
        print("\nStopped. Parts that were finished are on file.")
    finally:
        in_r.stop()
    if folder is not None:
        print(f"See {folder / 'real.md'} and real.json.")


def _measure(name: str, arguments: argparse.Namespace, archive: page.Archive) -> None:
    """Run one part, file its figures and sum them up."""
    effort, (tables, missing) = _effort(arguments), load(_names(arguments, name))
    tables = [table for table in tables if PARTS[name].suits(table)]
    print(f"== {name}: {len(tables)} tables", flush=True)
    for line in missing:
        print(f"  left out: {line}")
    began = time.monotonic()
    rows = run(name, tables, effort, arguments.jobs)
    seconds = round(time.monotonic() - began)
    archive.add(name, rows, _measured(effort, len(tables), missing, seconds))
    print(page.told(lines_of(PARTS[name], rows)), flush=True)


def _measured(effort: Effort, tables: int, missing: list[str], seconds: int) -> dict[str, object]:
    """Say when and with what a part was measured, and what could not be had."""
    return {
        "on": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "with": commit(),
        "tables": tables,
        "left out": "; ".join(missing),
        **asdict(effort),
        "in seconds": seconds,
        "peers": in_r.version(),
        **machine.describe(),
    }


def _names(arguments: argparse.Namespace, part: str) -> list[str]:
    """Name the tables of a part: those asked for, those of a quick run, its own, or all."""
    if arguments.tables:
        return list(arguments.tables)
    if arguments.quick:
        return list(QUICK)
    return list(PARTS[part].tables) or list(formulas())[:: arguments.every]


def _effort(arguments: argparse.Namespace) -> Effort:
    if arguments.quick:
        return Effort(seeds=arguments.seeds or 2, searches=4, permutations=1, planted=1, starts=5)
    if arguments.seeds:
        seeds = arguments.seeds
        return Effort(seeds=seeds, searches=5 * seeds, permutations=min(seeds, 5))
    return Effort()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real", description=__doc__)
    parser.add_argument(
        "--parts", type=_list_of(PARTS), default=list(PARTS), help=f"of {','.join(PARTS)}"
    )
    parser.add_argument("--tables", type=_list_of(formulas()), metavar="A,B", help="only these")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th table only")
    parser.add_argument("--seeds", type=int, metavar="N", help="single runs a table (default 10)")
    parser.add_argument("--jobs", type=int, default=1, help="tables side by side (default 1)")
    parser.add_argument(
        "--quick", action="store_true", help="six tables, prints and writes nothing: does it run?"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: benchmarks/results")
    return parser.parse_args()


def _list_of(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Read names with commas between them, all of them known."""

    def read(text: str) -> list[str]:
        names, allowed = text.split(","), set(known)
        unknown = [name for name in names if name not in allowed]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}")
        return names

    return read


if __name__ == "__main__":
    main()
