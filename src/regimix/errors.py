"""Every error and warning of regimix, as one small tree.

::

    RegimixError
    ├── CheckpointError      a checkpoint cannot be used or written   (also a ValueError)
    ├── ClusterError         a cluster does not do its work           (also a RuntimeError)
    ├── DataError            the table cannot be used as it is        (also a ValueError)
    │   ├── DataKindError    a cell or column is not a number         (also a TypeError)
    │   └── UnknownColumnError  a column that is named is not there
    ├── ModelFileError       a model file cannot be read or written   (also a ValueError)
    ├── OutOfTimeError       a time limit came before an answer       (also a TimeoutError)
    ├── ParameterError       a setting is outside what is allowed     (also a ValueError)
    ├── StoppedError         a callback came before the end           (also a RuntimeError)
    └── MissingExtraError    an optional dependency is not installed  (also an ImportError)

    RegimixWarning           the answer is the best there is, but read this
    ├── ConvergenceWarning   a limit ended the work before it settled
    ├── LeftOutWarning       columns or rows of a data frame were left out
    ├── RankWarning          the kept rows do not determine every coefficient
    ├── EvidenceWarning      the data do not support what was asked for
    ├── RivalWarning         one relation explains the rows as well as the regimes do
    └── UnrepeatedWarning    fewer searches than are asked for came to the answer

A message says what is wrong, what was received, what is allowed and what to do. Where it names
parameters, it is a `Message`, which knows them: the command line calls them by its options.
`StopReason` lists why a search or a trimmed fit ends, which is no error. At the end are the checks
of parameters: `read_count`, `read_number`, `read_choice`.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from numbers import Integral, Real
from typing import Any

__all__ = [
    "CheckpointError",
    "ClusterError",
    "ConvergenceWarning",
    "DataError",
    "DataKindError",
    "EvidenceWarning",
    "InPython",
    "LeftOutWarning",
    "Message",
    "MissingExtraError",
    "ModelFileError",
    "OutOfTimeError",
    "ParameterError",
    "RankWarning",
    "RegimixError",
    "RegimixWarning",
    "RivalWarning",
    "Setting",
    "StopReason",
    "StoppedError",
    "UnknownColumnError",
    "UnrepeatedWarning",
]


class StopReason(StrEnum):
    """Why a search or a trimmed fit ended; the last four mean that it was ended early."""

    FIXED_POINT = "fixed point"
    TOL = "tol"
    MAX_ITER = "max_iter"
    NOTHING_IMPROVES = "nothing improves"
    ALL_FOUND = "all found"
    NONE_ACCEPTED = "none accepted"
    MAX_STARTS = "max_starts"
    TIME_LIMIT = "time_limit"
    CALLBACK = "callback"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Setting:
    """A parameter that a message names, perhaps with a value."""

    name: str
    value: Any = None

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        shown = f"{self.value:g}" if isinstance(self.value, float) else self.value
        quote = '"' if isinstance(self.value, str) else ""
        return f"{self.name}={quote}{shown}{quote}"


class InPython(str):
    """Part of a message that only helps those who call the library from Python."""

    __slots__ = ()


class Message(str):
    """A text that knows which parameters it names.

    Parameters
    ----------
    *parts : str or Setting
        The text is all of them, one after the other; parameters are written as in Python.
    """

    parts: tuple[str | Setting, ...]

    def __new__(cls, *parts: str | Setting) -> Message:
        """Join the parts, and keep them."""
        message = super().__new__(cls, "".join(map(str, parts)))
        message.parts = parts
        return message

    def said(self, say: Callable[[Setting], str]) -> str:
        """Return the text with the parameters called otherwise, without what is for Python only."""
        said = (say(part) if isinstance(part, Setting) else part for part in self.parts)
        return "".join(part for part in said if not isinstance(part, InPython))


# Passwords: "scheme://user:password@host" (to the last @, since a password may hold one), and
# "password=..." in options of an address or in a connection string.
SECRETS = (
    (re.compile(r"(:/+[^\s:/@]*):\S*@"), r"\1:***@"),
    (re.compile(r"(?i)((?:password|passwd|pwd|secret|token)=)('[^']*'|[^\s&;'\"]+)"), r"\1***"),
)


def without_secrets(text: str) -> str:
    """Return a text with the passwords of addresses and connection strings hidden."""
    for pattern, hidden in SECRETS:
        text = pattern.sub(hidden, text)
    return text


class RegimixError(Exception):
    """Base of every error that regimix raises on purpose; its message holds no password."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*map(_hidden, args))


def _hidden(said: Any) -> Any:
    """Hide passwords in what an error says; a `Message` stays one."""
    if not isinstance(said, str) or (safe := without_secrets(said)) == said:
        return said
    parts = getattr(said, "parts", ())
    alone = [without_secrets(p) if type(p) is str else p for p in parts]
    kept = Message(*alone)
    return kept if parts and kept == safe else safe


class CheckpointError(RegimixError, ValueError):
    """A checkpoint cannot be read or written, or belongs to another fit."""


class ClusterError(RegimixError, RuntimeError):
    """A cluster did not do what was asked of it."""


class DataError(RegimixError, ValueError):
    """The table cannot be used as it is."""


class DataKindError(DataError, TypeError):
    """A cell or a column is not a number."""


class UnknownColumnError(DataError):
    """A column that is named is not in the table.

    Parameters
    ----------
    message : str
    role : str
        What the column was meant for: "target", "feature", "drop", ...
    close : sequence of str
        Columns of the table whose names are similar.
    """

    def __init__(self, message: str, role: str = "", close: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.role, self.close = role, tuple(close)


class ModelFileError(RegimixError, ValueError):
    """A model file cannot be read, or a model cannot be written to one."""


class ParameterError(RegimixError, ValueError):
    """A setting is outside what is allowed."""


class OutOfTimeError(RegimixError, TimeoutError):
    """A time limit was reached before there was an answer."""


class StoppedError(RegimixError, RuntimeError):
    """A callback asked for the end before there was an answer, or before all was written."""


class MissingExtraError(RegimixError, ImportError):
    """An optional dependency is not installed."""

    @classmethod
    def of(cls, package: str, extra: str, what: str) -> MissingExtraError:
        """Say how to install a package of an extra; ``what`` is who needs it: "a report needs"."""
        return cls(f"{what} {package}, which is not installed: pip install 'regimix[{extra}]'")


class RegimixWarning(UserWarning):
    """Base of every warning that regimix gives."""


class ConvergenceWarning(RegimixWarning):
    """A limit ended the work before it settled; the best so far is returned."""


class LeftOutWarning(RegimixWarning):
    """Columns, rows or cells of a data frame could not be used; the others were."""


class RankWarning(RegimixWarning):
    """The kept rows do not determine every coefficient; the smallest solution is returned."""


class EvidenceWarning(RegimixWarning):
    """The data do not support what was asked for; the nearest supported answer is returned."""


class RivalWarning(RegimixWarning):
    """One relation explains the rows as well as the regimes do, or better."""


class UnrepeatedWarning(RegimixWarning):
    """Independent searches did not come to one answer; the likeliest that was seen is returned."""


def reason_of(error: BaseException) -> str:
    """Return the first line of what an error says, to be part of a sentence."""
    return (str(error).strip().partition("\n")[0] or type(error).__name__).rstrip(".")


def need(package: str, extra: str, what: str) -> None:
    """Refuse to go on without a package of an extra."""
    if importlib.util.find_spec(package) is None:
        raise MissingExtraError.of(package, extra, what)


def read_count(
    name: str, value: Any, lowest: int = 1, highest: int | None = None, otherwise: str = ""
) -> int:
    """Read a whole number within bounds; ``otherwise`` is what else is allowed, in words."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < lowest or (highest is not None and value > highest):
        upto = "" if highest is None else f" to {highest}"
        wanted = f" must be {otherwise}a whole number from {lowest}{upto}; got {value!r}."
        raise ParameterError(Message(Setting(name), wanted))
    return int(value)


def read_number(name: str, value: Any, fits: Callable[[float], bool], allowed: str) -> float:
    """Read a number that fits; ``allowed`` says in words which do."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not fits(float(value)):
        raise ParameterError(Message(Setting(name), f" must be {allowed}; got {value!r}."))
    return float(value)


def read_choice(name: str, value: Any, allowed: Sequence[str | None]) -> Any:
    """Read one of several words, or None where that is among them."""
    # A comparison of types first: an array would compare element by element.
    if not (value is None or isinstance(value, str)) or value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise ParameterError(Message(Setting(name), f" must be one of {choices}; got {value!r}."))
    return value
