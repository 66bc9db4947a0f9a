"""Model files: a Mixture in a file that holds no code.

The format is told in ``docs/files.rst``: a ZIP archive of one JSON document and plain arrays,
nothing compressed, nothing pickled. Reading a file from strangers is safe: what is not exactly as
it should be is refused with a `ModelFileError` that says why.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regimix.atomic import write_bytes
from regimix.errors import ModelFileError
from regimix.result.mixture import Mixture
from regimix.store.document import ModelFile, decode, encode

__all__ = ["ModelFile", "load", "open_model", "save"]

# Larger files are refused unless asked for: labels take eight times as much memory as they take in
# a file, and a file from strangers should not fill it.
MAX_BYTES = 1 << 28


def save(
    model: Any, path: str | Path, *, labels: bool = True, recipe: Mapping[str, Any] | None = None
) -> None:
    """Write a mixture to a model file, whole or not at all.

    Parameters
    ----------
    model : Mixture or fitted MixedLinearRegression
    path : str or Path
        An existing file is replaced in one step: a crash leaves it as it was.
    labels : bool
        Whether to keep the component of each row of the fit; without, ``labels`` of the loaded
        mixture is empty.
    recipe : dict, optional
        How columns became features, ``tables.Recipe.to_json()``: what ``regimix predict`` needs to
        read new tables.

    Raises
    ------
    ModelFileError
        The model holds what a model file cannot: the message says what.
    OSError
        The file cannot be written.
    """
    mixture = _mixture_of(model)
    try:
        data = encode(mixture, labels=labels, recipe=recipe)
        # Whatever was written can be read: nobody wants to find out later.
        decode(data)
    except ModelFileError as error:
        raise ModelFileError(f"this model cannot be saved: {error}") from None
    write_bytes(path, data)


def load(path: str | Path, *, max_bytes: int = MAX_BYTES) -> Mixture:
    """Read the mixture of a model file.

    Parameters
    ----------
    path : str or Path
    max_bytes : int
        Larger files are refused.

    Raises
    ------
    ModelFileError
        The file is missing, is no model file, or is damaged, altered or newer; nothing of it was
        run.
    """
    return open_model(path, max_bytes=max_bytes).mixture


def open_model(path: str | Path, *, max_bytes: int = MAX_BYTES) -> ModelFile:
    """Read everything a model file holds: the mixture, and how to read tables for it."""
    try:
        return decode(_bytes_of(Path(path), max_bytes))
    except ModelFileError as error:
        raise ModelFileError(f"{str(path)!r} cannot be read as a model: {error}") from None


def _mixture_of(model: Any) -> Mixture:
    """Return the mixture that is to be saved."""
    if isinstance(model, Mixture):
        return model
    mixture = getattr(model, "mixture_", None)
    if isinstance(mixture, Mixture):
        return mixture
    name = type(model).__name__
    if name == "MixedLinearRegression":
        raise ModelFileError("this MixedLinearRegression is not fitted; call fit first.")
    raise ModelFileError(
        f"a {name} cannot be saved as a model file; pass a Mixture or a fitted "
        "MixedLinearRegression."
    )


def _bytes_of(path: Path, max_bytes: int) -> bytes:
    """Read a regular file of bounded size."""
    # Without waiting for the other end, should it be a pipe.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise ModelFileError("it is not a regular file.")
            if state.st_size > max_bytes:
                raise ModelFileError(
                    f"it has {state.st_size} bytes, more than the {max_bytes} allowed; if you "
                    "trust it, pass a larger max_bytes."
                )
            return file.read(max_bytes)
    except OSError as error:
        raise ModelFileError(f"{error.strerror or error}.") from None
