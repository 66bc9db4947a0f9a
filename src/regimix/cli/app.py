"""All commands, and what is said when one of them fails: one sentence and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated

import typer

from regimix.cli.commands import demo, fit, predict, report, synth
from regimix.cli.console import Aborted, Code, Voice
from regimix.cli.options import PlainCommand, PlainGroup, in_options
from regimix.errors import MissingExtraError, OutOfTimeError, RegimixError

# The optional dependencies by extra: packages that may not be installed.
EXTRAS = {
    "cli": ("jinja2", "polars", "rich", "typer"),
    "dask": ("dask", "distributed", "fsspec", "pyarrow"),
    "plot": ("matplotlib",),
    "sql": ("psycopg",),
}

app = typer.Typer(
    cls=PlainGroup,
    help="Find several linear regimes in one table, label every row, and flag the outliers.",
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
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    # ``run`` looks for it, also where parsing itself fails.
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where in the code an error comes from.")
    ] = False,
) -> None:
    """Find several linear regimes in one table, label every row, and flag the outliers."""


def run(arguments: list[str] | None = None) -> int:
    """Run a command; say in one sentence what went wrong, if something did."""
    given = sys.argv[1:] if arguments is None else arguments
    _never_fail_to_print()
    try:
        # The report shows the command as it was typed.
        code = int(app(given, prog_name="regimix", standalone_mode=False, obj=given) or Code.DONE)
        sys.stdout.flush()
    except BrokenPipeError:
        return _unread()
    except SystemExit as ended:
        # typer exits this way if standard output is closed, and after shell completion.
        if isinstance(ended.__context__, BrokenPipeError):
            return _unread()
        return ended.code if isinstance(ended.code, int) else Code.DONE
    except (Exception, KeyboardInterrupt) as error:
        return _failed(error, given)
    return code


def _unread() -> int:
    """End quietly where the reader of a pipe has closed it: the flush at exit must not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return Code.DONE


def _never_fail_to_print() -> None:
    """Print characters that a terminal lacks as question marks, and to a closed stream nothing."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Stays open until the process ends, in place of the stream.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, os.fdopen(nowhere, "w", encoding="utf-8"))
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
    # Where no command was given, help was shown, and nothing is left to say.
    if type(error).__name__ != "NoArgsIsHelpError":
        Voice().refuse(sentence)
    return code


def explain(error: BaseException, command: str = "regimix") -> tuple[str, Code]:
    """Return the error message and the exit code; ``command`` is, for example, "regimix fit"."""
    if isinstance(error, RegimixError):
        code = Code.INCOMPLETE if isinstance(error, OutOfTimeError) else Code.REFUSED
        return in_options(error), code
    # typer calls an interrupt Abort.
    if isinstance(error, Aborted | KeyboardInterrupt) or type(error).__name__ == "Abort":
        return str(error) or "interrupted.", Code.INTERRUPTED
    # typer's own errors about options and arguments; older ones are click's.
    usage = getattr(error, "format_message", None)
    if usage is not None:
        words = usage().strip()
        end = "" if words.endswith((".", "?", "!")) else "."
        return f"{words}{end} See '{command} --help'.", Code.REFUSED
    package = (getattr(error, "name", None) or "").partition(".")[0]
    extra = next((name for name, brings in EXTRAS.items() if package in brings), None)
    if isinstance(error, ModuleNotFoundError) and extra is not None:
        return str(MissingExtraError.of(package, extra, "this needs")), Code.REFUSED
    if isinstance(error, OSError):
        reason = (error.strerror or str(error) or type(error).__name__).rstrip(".")
        names = [str(name) for name in (error.filename, error.filename2) if name is not None]
        return f"{', '.join(names)}{': ' * bool(names)}{reason}.", Code.REFUSED
    if isinstance(error, MemoryError):
        return "not enough memory for all rows; --rows N fits a sample of them.", Code.REFUSED
    return (
        f"an error that should not happen ({type(error).__name__}: {error}); please report it, "
        f"with what '{command.replace('regimix', 'regimix --debug', 1)} ...' prints."
    ), Code.FAULT
