"""The command line: ``regimix fit | predict | report | synth | demo``.

Commands read options, call the library and print; every failure is one sentence and an exit code.
Reading and writing tables is in ``regimix.tables``, and what is said of a fit is in
``regimix.result.answer``: nothing is computed here.
"""

from __future__ import annotations

import sys

from regimix.errors import MissingExtraError

__all__ = ["main"]

# What the command line itself needs; without it no command can run.
EXTRA = ("typer", "rich")


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments : list of str, optional
        What follows ``regimix``; default: what the shell passed.

    Returns
    -------
    int
        0: done. 2: bad usage or bad data. 3: nothing found, or a limit ended the search before it
        settled. 130: interrupted. 1: a fault of regimix itself.
    """
    try:
        from regimix.cli.app import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        missing = MissingExtraError.of(str(error.name), "cli", "the command line needs")
        sys.stderr.write(f"regimix: {missing}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return run(arguments)
