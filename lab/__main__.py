"""``python -m lab``: list the experiments, or run some of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import lab
from regimix.errors import RegimixError

RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or 1 where a claim was refuted."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.command == "list":
        for experiment in lab.EXPERIMENTS.values():
            print(f"{experiment.name:<20}{experiment.title}\n{'':<20}{experiment.claim}")
        return 0
    try:
        outcomes = lab.run(
            given.name,
            "quick" if given.quick else "full",
            out=given.out,
            seed=given.seed,
            progress=_show_progress if sys.stderr.isatty() else None,
        )
    except RegimixError as error:
        parser.error(str(error))
    for outcome in outcomes:
        print(f"{outcome.name:<20}{outcome.verdict.verdict:<9}{outcome.verdict.words}")
    print(f"Tables, figures and verdicts are in {given.out}.", file=sys.stderr)
    return 0 if all(outcome.verdict.holds for outcome in outcomes) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab", description="Measure the paper's claims."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the experiments")
    run = commands.add_parser(
        "run", help="run experiments: each leaves a table, a figure, a verdict"
    )
    run.add_argument("name", nargs="+", metavar="NAME", help="names as listed, or all")
    run.add_argument("--quick", action="store_true", help="seconds instead of minutes for each")
    run.add_argument("--out", type=Path, default=RESULTS, help="folder of the results: %(default)s")
    run.add_argument("--seed", type=int, default=0, help="equal seeds give equal tables")
    return parser


def _show_progress(name: str, done: int, total: int) -> None:
    """Overwrite one line of the terminal with the number of finished cells."""
    end = "\n" if done == total else ""
    print(f"\r{name}: {done} of {total} cells", end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
