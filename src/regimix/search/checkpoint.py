"""A file from which a search goes on after a crash: what was accepted so far, to the last bit.

One line with a checksum, then JSON; arrays are written as their bytes. The file is replaced as a
whole or not at all, and only a fit of the same rows with the same settings may go on from it.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from regimix.atomic import write_bytes
from regimix.errors import CheckpointError

if TYPE_CHECKING:
    from regimix.search.settings import Settings

MAGIC = b"regimix checkpoint 2, sha256 "
# Settings of the run, not of the answer.
RUN_ONLY = ("n_jobs", "max_starts", "time_limit", "callback", "checkpoint", "keep_rows")
# What arrays may hold: truth values, whole numbers, numbers.
ARRAY_KINDS = "biufc"
ARRAY = "array of NumPy"  # the only key of a dict that stands for one
WAY_OUT = "Delete the file to begin anew, or give another path."


def fingerprint(settings: Settings, *parts: NDArray[Any] | str | float, **more: Any) -> str:
    """Describe a fit: two of the same description end in the same answer.

    Parameters
    ----------
    settings : Settings
        Those that say how to run, but do not change the answer, are left out.
    *parts : ndarray, str or number
        Whatever tells the data from others: units, numbers of rows, a sample.
    **more : str or number
        Further settings by name.

    Returns
    -------
    str
        Settings by name and the SHA-256 of all parts, as JSON: ``Checkpoint.open`` can then say
        what differs.
    """
    names = [field.name for field in fields(settings) if field.name not in RUN_ONLY]
    if settings.search == "net":
        names.append("max_starts")  # Algorithm 2 goes on to the next share after so many
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(part.tobytes())
        else:
            digest.update(repr(part).encode())
    told = {name: getattr(settings, name) for name in sorted(names)} | more
    return json.dumps({**told, "data": digest.hexdigest()})


@dataclass
class Checkpoint:
    """Named sections of values in a file; ``open`` makes one.

    Attributes
    ----------
    path : Path
    fingerprint : str
        Of the fit that the file belongs to.
    sections : dict of str to str
        What was put, as JSON.
    """

    path: Path
    fingerprint: str
    sections: dict[str, str]

    @classmethod
    def open(cls, path: str | os.PathLike[str], fingerprint: str) -> Checkpoint:
        """Read a checkpoint, or begin one, and make sure that it can be written.

        Raises
        ------
        CheckpointError
            The file belongs to another fit, is damaged, is no checkpoint, or cannot be written.
        """
        place = Path(path).absolute()  # the working directory may change during a long fit
        checkpoint = cls(place, fingerprint, {})
        text = _read(place)
        if text is not None:
            checkpoint.sections = _sections(place, text, fingerprint)
        # What cannot be written is to be known now, not after hours of search.
        checkpoint._write(checkpoint.sections)
        return checkpoint

    def get(self, section: str) -> dict[str, Any] | None:
        """Return what was last put into a section; None if nothing was."""
        if section not in self.sections:
            return None
        values: dict[str, Any] = json.loads(self.sections[section], object_hook=_from_plain)
        return values

    def put(self, section: str, values: Mapping[str, Any]) -> None:
        """Replace a section, and write the file.

        ``values`` are dicts with text as keys, lists, texts, numbers, truth values, None and
        arrays, in each other. Tuples come back as lists, NumPy's numbers as Python's.
        """
        if not all(isinstance(key, str) for key in values):  # JSON would make text of them
            raise TypeError(f"keys in a checkpoint are text; got {list(values)!r}")
        sections = {**self.sections, section: json.dumps(values, default=_to_plain)}
        self._write(sections)
        self.sections = sections

    def done(self) -> None:
        """Remove the file: the fit is finished."""
        # A file that stays does no harm: the same fit ends where it ended. The answer is worth
        # more than the room.
        with contextlib.suppress(OSError):
            self.path.unlink()

    def _write(self, sections: dict[str, str]) -> None:
        content = {
            "library": version("regimix"),
            "fingerprint": self.fingerprint,
            "sections": sections,
        }
        body = json.dumps(content).encode("ascii")
        try:
            write_bytes(self.path, _first_line(body) + body)
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint {self.path} cannot be written: {error.strerror or error}. Make "
                "room or grant access and fit again, which goes on from the last one that was "
                "written, or give another path."
            ) from error


# --- the file -------------------------------------------------------------------------------------


def _first_line(body: bytes) -> bytes:
    return MAGIC + hashlib.sha256(body).hexdigest().encode("ascii") + b"\n"


def seed_in(path: str | os.PathLike[str]) -> int | None:
    """Return the seed of the fit that a checkpoint belongs to; None if there is none to go on."""
    try:
        text = _read(Path(path))
        seed = None if text is None else json.loads(json.loads(text)["fingerprint"])["seed"]
    except (CheckpointError, KeyError, TypeError, ValueError):
        return None  # whoever opens it will say what is wrong
    return seed if isinstance(seed, int) else None


def _read(path: Path) -> bytes | None:
    """Return the JSON of a checkpoint whose checksum is right; None if there is no file."""
    try:
        with path.open("rb") as file:
            # A wrong path may lead to a large file: look at its beginning first.
            begin = file.read(len(MAGIC))
            data = begin + (file.read() if begin == MAGIC else b"")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(
            f"the checkpoint {path} cannot be read: {error.strerror or error}. {WAY_OUT}"
        ) from error
    if begin != MAGIC:
        raise CheckpointError(f"{path} is damaged, or no checkpoint of regimix. {WAY_OUT}")
    line, newline, body = data.partition(b"\n")
    if line + newline != _first_line(body):
        raise CheckpointError(f"the checkpoint {path} is damaged: its checksum is wrong. {WAY_OUT}")
    return body


def _sections(path: Path, text: bytes, ours: str) -> dict[str, str]:
    """Return the sections, if they are of this version and this fit."""
    content = json.loads(text)
    library = content["library"]
    if library != version("regimix"):
        raise CheckpointError(
            f"the checkpoint {path} was written by regimix {library}, and this is regimix "
            f"{version('regimix')}, which may search differently. {WAY_OUT}"
        )
    if content["fingerprint"] != ours:
        raise CheckpointError(
            f"the checkpoint {path} belongs to another fit: "
            f"{_difference(content['fingerprint'], ours)}. {WAY_OUT}"
        )
    sections: dict[str, str] = content["sections"]
    return sections


def _difference(theirs: str, ours: str) -> str:
    """Say in which settings two fits differ, or that it is the data."""
    unknown = "its fingerprint is another one"
    try:
        there, here = json.loads(theirs), json.loads(ours)
    except ValueError:
        return unknown
    if not (isinstance(there, dict) and isinstance(here, dict)):
        return unknown
    names = [name for name in here if there.get(name) != here[name]]
    told = [f"{name} is {there.get(name)!r} there and {here[name]!r} here" for name in names]
    if "data" in names:
        # Another seed draws other rows: that alone says nothing of the data.
        told[names.index("data")] = "its data are others" if "seed" not in names else ""
    told = [word for word in told if word]
    return "; ".join(told) or unknown


# --- values ---------------------------------------------------------------------------------------


def _to_plain(value: Any) -> Any:
    """Turn a number or an array of NumPy's into what JSON knows."""
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item()
    if not isinstance(value, np.ndarray) or value.dtype.kind not in ARRAY_KINDS:
        raise TypeError(f"a checkpoint cannot hold a {type(value).__name__}: {value!r}")
    # Products of matrices may differ in the last bit with the order of the numbers in memory.
    order: Literal["C", "F"] = "F" if value.flags.fnc else "C"
    text = base64.b64encode(value.tobytes(order)).decode("ascii")
    return {ARRAY: [value.dtype.str, value.shape, order, text]}


def _from_plain(plain: dict[str, Any]) -> Any:
    """Turn what stands for an array into that array, in its own memory, which may be written to."""
    if ARRAY not in plain:
        return plain
    dtype, shape, order, text = plain[ARRAY]
    return np.ndarray(shape, dtype, base64.b64decode(text), order=order).copy(order="K")
