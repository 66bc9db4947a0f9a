"""The commands under one roof, and what happens when one of them fails."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated

import typer

from regimix.cli.console import Code, Voice
from regimix.cli.demo import demo
from regimix.cli.failures import explain
from regimix.cli.fit import fit
from regimix.cli.options import PlainCommand, PlainGroup
from regimix.cli.predict import predict
from regimix.cli.report import report
from regimix.cli.synth import synth

__all__ = ["app", "run"]

app = typer.Typer(
    cls=PlainGroup,
    help="Find the hidden linear regimes in dirty data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
COMMANDS: tuple[Callable[..., None], ...] = (fit, predict, report, synth, demo)
EXAMPLES = {fit: "Example: regimix fit sales.csv --target price --report sales.html"}
for command in COMMANDS:
    app.command(cls=PlainCommand, epilog=EXAMPLES.get(command))(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        import regimix

        sys.stdout.write(f"regimix {regimix.__version__}\n")
        raise typer.Exit


@app.callback()
def regimix(
    # Its callback does the work.
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            callback=_print_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
    # ``run`` looks for it, also where parsing itself fails.
    debug: Annotated[
        bool,
        typer.Option("--debug", metavar="", help="Show where in the code an error comes from."),
    ] = False,
) -> None:
    """Find the hidden linear regimes in dirty data."""


def run(arguments: list[str] | None = None) -> int:
    """Run a command; say in one sentence what went wrong, if something did."""
    given = sys.argv[1:] if arguments is None else arguments
    _never_fail_to_print()
    try:
        # The words as they were typed are for the report, which shows how to get it again.
        code = int(app(given, prog_name="regimix", standalone_mode=False, obj=given) or Code.DONE)
        sys.stdout.flush()
    except BrokenPipeError:
        return _unread()
    except SystemExit as ended:
        # typer ends so where nobody reads, and after shell completion.
        return _unread() if isinstance(ended.__context__, BrokenPipeError) else _status(ended)
    except (Exception, KeyboardInterrupt) as error:
        return _failed(error, given)
    return code


def _unread() -> int:
    """Let a reader go that has seen enough: what it did not read must not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return Code.DONE


def _status(ended: SystemExit) -> int:
    return ended.code if isinstance(ended.code, int) else Code.DONE


def _never_fail_to_print() -> None:
    """Let a terminal that does not know a sign show a question mark instead."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _failed(error: BaseException, given: list[str]) -> int:
    if "--debug" in given:
        traceback.print_exception(error)
    names = {command.__name__ for command in COMMANDS}
    typed = next((word for word in given if word in names), "")
    sentence, code = explain(error, f"regimix {typed}".strip())
    # Help that was shown for want of a command has said everything.
    if type(error).__name__ != "NoArgsIsHelpError":
        Voice().refuse(sentence)
    return code
