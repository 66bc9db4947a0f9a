"""Every failure as one sentence and an exit code."""

from __future__ import annotations

import re
from typing import Any

from regimix.cli.console import Code
from regimix.errors import OutOfTimeError, RegimixError

__all__ = ["Aborted", "CommandError", "explain", "sentence"]

# Packages of extras that a command may miss, and the extra that brings them.
EXTRAS = {
    "dask": "dask",
    "distributed": "dask",
    "fsspec": "dask",
    "jinja2": "cli",
    "matplotlib": "plot",
    "polars": "cli",
    "psycopg": "sql",
    "pyarrow": "dask",
    "rich": "cli",
    "typer": "cli",
}


# Parameters as the library calls them, and as the command line does.
OPTIONS = {
    "corruption_kind": "--corruption-kind",
    "fit_intercept": "--no-intercept",
    "n_components": "--components",
    "n_features": "--features",
    "n_jobs": "--jobs",
    "n_samples": "--rows",
    "random_state": "--seed",
    "sample_weight": "--weights",
    "time_limit": "--time-limit",
}


# The same where a parameter is also a common word: only in the phrases that mean the parameter.
PHRASES = {
    r"(?:--|\b)(components|noise|outliers|search)=(['\"]?)([\w.]+)\2": r"--\1 \3",
    r"\b([Ll])eave (noise|outliers) out": r"\1eave --\2 out",
    r"\bwith encoding: '": "with --encoding: '",
    r"^encoding must be": "--encoding must be",
    r'\bquery="': '--query "',
    r"^query is for": "--query is for",
    r", give starts \(init\), or ": " or ",
    r"\bleave query out": "leave --query out",
    r"\bis in features and in drop;": "is in --features and in --drop;",
    r"\bLeave it out of features\.": "Leave it out of --features.",
    r"\bwith checkpoint=PATH": "with --checkpoint FILE",
    r"^memory must be": "--memory must be",
}
# What the parser of options says in the words of programmers.
USAGE = {
    r"Value error, ": "",
    r"Input should be greater than or equal to (\S+)": r"it must be at least \1",
    r"Input should be less than or equal to (\S+)": r"it must be at most \1",
    r"Input should be a valid integer.*": "it must be a whole number",
    r"Input should be a valid number.*": "it must be a number",
    r"Input should be": "it must be",
}


class CommandError(RegimixError):
    """What was asked on the command line cannot be done."""


class Aborted(Exception):  # noqa: N818 - not an error: someone pressed Ctrl-C
    """The user does not want to wait."""


def explain(error: BaseException, command: str = "regimix") -> tuple[str, Code]:
    """Say what went wrong, and how the command ends.

    Parameters
    ----------
    error : exception
    command : str
        As typed, for example "regimix fit": where to look for help.
    """
    if isinstance(error, OutOfTimeError):
        return sentence(str(error)), Code.INCOMPLETE
    if isinstance(error, RegimixError):
        return sentence(str(error)), Code.REFUSED
    # typer calls an interrupt Abort.
    if isinstance(error, Aborted | KeyboardInterrupt) or type(error).__name__ == "Abort":
        return str(error) or "interrupted.", Code.INTERRUPTED
    # typer's own errors about options and arguments; older ones are click's.
    usage = getattr(error, "format_message", None)
    if usage is not None:
        return _usage(usage(), command), Code.REFUSED
    if isinstance(error, ModuleNotFoundError) and _package(error) in EXTRAS:
        package = _package(error)
        return (
            f"this needs {package}, which is not installed: "
            f"pip install 'regimix[{EXTRAS[package]}]'"
        ), Code.REFUSED
    if isinstance(error, OSError):
        return _system(error), Code.REFUSED
    if isinstance(error, MemoryError):
        return "not enough memory for all rows; --rows N fits a sample of them.", Code.REFUSED
    return (
        f"an error that should not happen ({type(error).__name__}: {error}); please report it, "
        f"with what '{command.replace('regimix', 'regimix --debug', 1)} ...' prints."
    ), Code.FAULT


def sentence(message: str) -> str:
    """Say a message of the library in the words of the command line."""
    pattern = rf"\b({'|'.join(OPTIONS)})\b"
    return _replaced(re.sub(pattern, lambda found: OPTIONS[found[1]], message), PHRASES)


def _replaced(message: str, phrases: dict[str, str]) -> str:
    for pattern, words in phrases.items():
        message = re.sub(pattern, words, message)
    return message


def _usage(message: str, command: str) -> str:
    words = _replaced(message.strip(), USAGE)
    if words and words[-1] not in ".?!":
        words += "."
    return f"{words} See '{command} --help'."


def _package(error: ModuleNotFoundError) -> str:
    return (error.name or "").partition(".")[0]


def _system(error: OSError) -> str:
    reason = (error.strerror or str(error) or type(error).__name__).rstrip(".")
    names: list[Any] = [name for name in (error.filename, error.filename2) if name is not None]
    return f"{', '.join(map(str, names))}: {reason}." if names else f"{reason}."
