"""Model files: a Mixture in a ZIP archive of one JSON document and plain arrays, without code.

``docs/files.rst`` describes the format. Reading an untrusted file is safe: `zipfile` lists its
members, sizes are checked before memory is allocated, headers of arrays are compared with what
NumPy writes, nothing is unpickled or decompressed, and every field of the document must have the
type that its dataclass gives it, within the limits at the end of this module. Anything else is
refused with a `ModelFileError` that gives the reason.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import os
import re
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from numbers import Integral, Real
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from regimix.atomic import write_bytes
from regimix.data.recipe import Recipe
from regimix.errors import DataError, ModelFileError
from regimix.result.gate import Gate, TreeGate
from regimix.result.inference import Inference
from regimix.result.mixture import Mixture
from regimix.result.rivals import Rival
from regimix.result.rowlaw import RowLaw
from regimix.result.stability import Stability
from regimix.search.selection import Attempt, Selection
from regimix.search.settings import Settings
from regimix.search.subspace import Subspace

__all__ = ["ModelFile", "load", "open_model", "save"]

Arrays = dict[str, NDArray[Any]]

FORMAT = "regimix model"
VERSION = 2
MANIFEST = "manifest.json"
FIELDS = {"format", "version", "library", "arrays", "model", "recipe"}
# Larger files are refused unless asked for: a file from strangers should not fill the memory.
MAX_BYTES = 1 << 28
# Bytes of an array that are read at a time; more memory is taken as they arrive, not before.
READ_BYTES = 1 << 20
# Names of features are the largest part of a manifest: 100,000 long ones fit.
MOST_MANIFEST_BYTES = 1 << 24
MOST_MEMBERS = 64
LONGEST_NAME = 100
ARRAY_NAME = re.compile(r"[a-z_]{1,40}(\.[a-z_]{1,40})?")
# Little-endian types of arrays; Python objects are not among them.
DType = Literal["<f8", "|i1", "<i2", "<i4", "<i8"]
MOST_DIMENSIONS = 3
MOST_NUMBERS = 2**32
# NumPy writes 128 bytes for the arrays of a model.
LONGEST_HEADER = 512
LARGEST = float(np.finfo(np.float64).max)
# JSON has no numbers but finite ones.
NOT_FINITE = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
# Digits of a whole number: seeds may have 128 bits.
MOST_DIGITS = 39
# Halves of characters, which no terminal or file can show.
SURROGATE = re.compile(r"[\ud800-\udfff]")
# Fields that do not belong into a file: rows of the user's table, and what belongs to the run.
LEFT_OUT = {Mixture: ("excerpt", "encoding"), Settings: ("callback", "checkpoint", "keep_rows")}


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What a model file holds.

    Attributes
    ----------
    mixture : Mixture
    recipe : dict or None
        How the columns of a table became its features, as ``tables.Recipe.to_json`` wrote it.
    version : int
        Version of the format of the file.
    library : str
        Version of regimix that wrote it.
    """

    mixture: Mixture
    recipe: dict[str, Any] | None
    version: int
    library: str


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
        The model holds something that a model file cannot hold: the message says what.
    OSError
        The file cannot be written.
    """
    mixture = getattr(model, "mixture_", model)
    if not isinstance(mixture, Mixture):
        name = type(model).__name__
        if name == "MixedLinearRegression":
            raise ModelFileError("this MixedLinearRegression is not fitted; call fit first.")
        raise ModelFileError(
            f"a {name} cannot be saved as a model file; pass a Mixture or a fitted "
            "MixedLinearRegression."
        )
    try:
        data = encode(mixture, labels=labels, recipe=recipe)
        # The reader holds the checks; a file that it would refuse must not be written.
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
        state = Path(path).stat()
        # To open a pipe would be to wait for its other end.
        if not stat.S_ISREG(state.st_mode):
            raise ModelFileError("it is not a regular file, but a directory, a pipe or a device.")
        if state.st_size > max_bytes:
            raise ModelFileError(
                f"it has {state.st_size} bytes, more than the {max_bytes} allowed; if you trust "
                "it, pass a larger max_bytes."
            )
        with Path(path).open("rb") as file:
            return decode(file)
    except OSError as error:
        reason = f"{error.strerror or error}."
    except ModelFileError as error:
        reason = str(error)
    raise ModelFileError(f"{str(path)!r} cannot be read as a model: {reason}")


# --- writing --------------------------------------------------------------------------------------


def encode(mixture: Mixture, *, labels: bool, recipe: Mapping[str, Any] | None) -> bytes:
    """Turn a mixture into the bytes of a model file; the same one always gives the same bytes."""
    if not labels:
        mixture = replace(mixture, labels=np.empty(0, dtype=np.int64))
    if recipe is None and mixture.encoding is not None:
        recipe = mixture.encoding.to_json()
    if not isinstance(mixture.gate, Gate | TreeGate | None):
        raise ModelFileError(
            f"its gate is a {type(mixture.gate).__name__}, a classifier of your own, and model "
            'files hold no code. Fit with gating="logistic" or "trees" to save the gate, or save '
            "dataclasses.replace(mixture, gate=None) and keep the classifier by other means."
        )
    place = _Place("model")
    plain = _plain(mixture, place)
    entries, members = {}, {}
    for name, array in place.arrays.items():
        stream = io.BytesIO()
        npy.write_array(stream, array, version=(1, 0), allow_pickle=False)
        members[_member(name)] = stream.getvalue()
        entries[name] = {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "sha256": hashlib.sha256(stream.getvalue()).hexdigest(),
        }
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "library": version("regimix"),
        "arrays": entries,
        "model": plain,
        "recipe": None if recipe is None else _plain(dict(recipe), _Place("recipe")),
    }
    text = json.dumps(manifest, indent=1, allow_nan=False).encode("ascii")
    return _pack({MANIFEST: text, **members})


def _plain(value: Any, place: _Place) -> Any:
    """Turn a value into what JSON can hold; arrays are collected in ``place.arrays``."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        right = len(str(abs(int(value)))) <= MOST_DIGITS
        place.expect(right, f"a number of at most {MOST_DIGITS} digits")
        return int(value)
    if isinstance(value, Real):
        words = {repr(number): word for word, number in NOT_FINITE.items()}
        return words.get(repr(float(value)), float(value))
    if isinstance(value, np.ndarray):
        place.arrays[place.name] = _plain_array(value, place)
        return {"array": place.name}
    if isinstance(value, tuple | list):
        return [_plain(item, place.at(str(i))) for i, item in enumerate(value)]
    if dataclasses.is_dataclass(value):
        kind: Any = type(value)
        value = {name: getattr(value, name) for name in _hints(kind)}
    place.expect(isinstance(value, Mapping), "made of numbers, texts and arrays")
    place.expect(all(isinstance(name, str) for name in value), "a dictionary of texts")
    return {name: _plain(item, place.at(name)) for name, item in value.items()}


def _plain_array(value: NDArray[Any], place: _Place) -> NDArray[Any]:
    """Return floats in eight bytes, and whole numbers in as few bytes as they need."""
    place.expect(value.dtype.kind in "iuf", "of the right type")
    kinds = ("<f8",) if value.dtype.kind == "f" else ("|i1", "<i2", "<i4", "<i8")
    same = (name for name in kinds[:-1] if np.array_equal(value.astype(name), value))
    return np.ascontiguousarray(value, dtype=next(same, kinds[-1]))


def _member(name: str) -> str:
    return f"arrays/{name}.npy"


def _pack(members: Mapping[str, bytes]) -> bytes:
    """Put members into an archive, stored as they are; the same members give the same bytes."""
    stream = io.BytesIO()
    try:
        with zipfile.ZipFile(stream, "w", allowZip64=False) as archive:
            for name, data in members.items():
                # Its date is that of all: 1980-01-01, the first that ZIP has.
                info = zipfile.ZipInfo(name)
                info.create_system = 0  # the same on every system
                archive.writestr(info, data)
    except zipfile.LargeZipFile:
        raise ModelFileError(
            "the model takes more than 2 GiB, which a model file cannot hold; save it without "
            "labels (labels=False)."
        ) from None
    return stream.getvalue()


# --- reading: members and arrays ------------------------------------------------------------------

# The record that ends an archive, and bytes of the headers of a member: before its data, and in the
# list at the end.
END = struct.Struct("<4s4H2IH")
LOCAL_BYTES, LISTED_BYTES, LOCATOR_BYTES = 30, 46, 20


@contextmanager
def _unpacked(file: BinaryIO) -> Iterator[zipfile.ZipFile]:
    """Open an archive, in which nothing is compressed, hidden or there twice."""
    if file.read(4) != b"PK\x03\x04":
        raise ModelFileError("it is no model file: it does not begin like one.")
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - END.size - LOCATOR_BYTES))
    _check_end(file.read())
    try:
        with zipfile.ZipFile(file) as archive:
            _check_members(archive.infolist(), size)
            yield archive
    except ModelFileError:
        raise
    except (zipfile.BadZipFile, RuntimeError, EOFError, ValueError, struct.error) as error:
        raise _damaged(ascii(str(error))) from None


def _check_end(data: bytes) -> None:
    """Bound the list of members at the end: ``zipfile`` would read one of any length."""
    mark, *_, members, size, _, comment = END.unpack(data[-END.size :].rjust(END.size))
    # The mark of a second such list, with sizes of 64 bits, which zipfile would prefer.
    extended = data[: -END.size].startswith(b"PK\x06\x07")
    if mark != b"PK\x05\x06" or comment or extended:
        raise _damaged("it does not end like a model file")
    if members > MOST_MEMBERS or size > MOST_MEMBERS * (LISTED_BYTES + LONGEST_NAME):
        raise ModelFileError(f"it has more than {MOST_MEMBERS} members.")


def _check_members(infos: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse members that are not stored one after the other from the first byte to the last."""
    place, names = 0, set()
    for info in infos:
        name = info.orig_filename
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits:
            raise ModelFileError(
                "it holds a member that is compressed, encrypted or otherwise not as regimix "
                "writes it."
            )
        if not name.isascii() or name != info.filename or len(name) > LONGEST_NAME:
            raise ModelFileError("it holds a member whose name is not a short plain text.")
        if name in names:
            raise ModelFileError(f"it has two members called {name!r}.")
        names.add(name)
        if info.header_offset != place or info.compress_size != info.file_size:
            raise _damaged(f"the member {name!r} is not where it should be")
        place += LOCAL_BYTES + len(name) + info.file_size
    place += sum(LISTED_BYTES + len(name) for name in names) + END.size
    if place != size:
        raise _damaged(f"{size} bytes instead of {place}")


def _damaged(reason: str) -> ModelFileError:
    return ModelFileError(
        "it is cut off or was changed: its list of members or a checksum is not right "
        f"({reason.rstrip('.')})."
    )


@dataclass(frozen=True)
class _Entry:
    """What the manifest says of an array."""

    dtype: DType
    shape: tuple[int, ...]
    sha256: str


def _read_arrays(plain: Any, archive: zipfile.ZipFile) -> Arrays:
    """Read the arrays that the manifest lists: these and no others, in this order."""
    place = ROOT.at("arrays")
    place.expect(isinstance(plain, dict), "an object")
    place.expect(all(map(ARRAY_NAME.fullmatch, plain)), "made of plain names")
    listed = [MANIFEST, *map(_member, plain)]
    place.expect(listed == archive.namelist(), "the list of its members")
    entries = _read(dict[str, _Entry], plain, place)
    return {name: _read_array(name, entries[name], archive) for name in plain}


def _read_array(name: str, entry: _Entry, archive: zipfile.ZipFile) -> NDArray[Any]:
    """Read an array whose type, shape and checksum stand in the manifest.

    Whole numbers get one size more than in the file, so that small sums with them do not overflow;
    eight bytes each would take eight times the memory of the file.
    """
    dtype, shape = np.dtype(entry.dtype), entry.shape
    if len(shape) > MOST_DIMENSIONS or math.prod(max(n, 1) for n in shape) > MOST_NUMBERS:
        raise ModelFileError(f"it holds an array of the shape {shape}, which is too large.")
    size = math.prod(shape) * dtype.itemsize
    member = archive.getinfo(_member(name))
    with archive.open(member) as stream:
        begin = stream.read(npy.MAGIC_LEN + 2)
        text = stream.read(min(int.from_bytes(begin[npy.MAGIC_LEN :], "little"), LONGEST_HEADER))
        # As NumPy writes it, but for the blanks at the end: no parser sees what strangers wrote.
        expected = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {shape}, }}"
        right = begin.startswith(npy.magic(1, 0)) and text.rstrip() == expected.encode()
        if not right or member.file_size != len(begin) + len(text) + size:
            raise ModelFileError(
                f"it holds an array that is not of the shape {shape} it should have."
            )
        checksum = hashlib.sha256(begin + text)
        wider = np.dtype(f"=i{min(8, 2 * dtype.itemsize)}" if dtype.kind == "i" else "=f8")
        values, done = np.empty(math.prod(shape), wider), 0
        while some := stream.read(READ_BYTES):
            checksum.update(some)
            numbers = np.frombuffer(some, dtype)
            values[done : done + numbers.size] = numbers
            done += numbers.size
    if checksum.hexdigest() != entry.sha256:
        raise ModelFileError(f"its array {name!r} was changed: the checksum is wrong.")
    return values.reshape(shape)


# --- reading: the document ------------------------------------------------------------------------


def decode(data: bytes | BinaryIO) -> ModelFile:
    """Read a model file of any version; refuse everything else."""
    with _unpacked(io.BytesIO(data) if isinstance(data, bytes) else data) as archive:
        first = next(iter(archive.namelist()), "")
        _Place("its first member").expect(first == MANIFEST, MANIFEST)
        ROOT.expect(archive.getinfo(MANIFEST).file_size <= MOST_MANIFEST_BYTES, "of a sane size")
        manifest = _read_manifest(archive.read(MANIFEST))
        arrays = _read_arrays(manifest.get("arrays"), archive)
    written = manifest["version"]
    for number in range(written, VERSION):
        try:
            manifest, arrays = MIGRATIONS[number](manifest, arrays)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ModelFileError(f"its manifest is not that of version {number}.") from None
    ROOT.expect(set(manifest) == FIELDS, f"made of {', '.join(sorted(FIELDS))}")
    mixture = _read_mixture(manifest["model"], arrays)
    plain = manifest["recipe"]
    if plain is not None:
        _read(Recipe, plain, _Place("recipe"))
        try:
            recipe = Recipe.from_json(plain)
        except DataError as error:
            raise ModelFileError(f"recipe: {error}") from None
        # It reads data frames for the mixture only if it makes its features.
        if recipe.feature_names == mixture.feature_names:
            mixture = replace(mixture, encoding=recipe)
    return ModelFile(mixture, plain, written, manifest["library"])


def _read_manifest(data: bytes) -> dict[str, Any]:
    """Parse the manifest, and make sure that this version can read it."""
    try:
        manifest = json.loads(
            data.decode("ascii"),
            object_pairs_hook=_unrepeated,
            parse_int=_bounded,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except (ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"its manifest is not JSON: {str(error)[:100]}.") from None
    ROOT.expect(isinstance(manifest, dict), "an object")
    ROOT.expect(manifest.get("format") == FORMAT, "that of a regimix model")
    number, library = manifest.get("version"), manifest.get("library")
    ROOT.at("version").expect(type(number) is int and number >= 1, "a whole number from 1")
    ROOT.at("library").expect(isinstance(library, str) and len(library) < 40, "a version")
    if number > VERSION:
        raise ModelFileError(
            f"it is of version {number} of the format, written by regimix {library!r}, and regimix "
            f"{version('regimix')} reads versions up to {VERSION}. Update regimix to read it."
        )
    return dict(manifest)


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    ROOT.expect(len(found) == len(pairs), "free of repeated names")
    return found


def _bounded(digits: str) -> int:
    ROOT.expect(len(digits.lstrip("-")) <= MOST_DIGITS, "free of huge numbers")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    ROOT.expect(math.isfinite(number), "free of numbers that are not finite")
    return number


def _read_mixture(plain: Any, arrays: Arrays) -> Mixture:
    """Turn a document and arrays into a mixture, or refuse them."""
    place = _Place("model", dict(arrays))
    mixture: Mixture = _read(Mixture, plain, place)
    if place.arrays:
        raise ModelFileError(f"it holds an array that belongs nowhere: {min(place.arrays)!r}.")
    m, d = mixture.coef.shape
    place.at("coef").expect(m and d, "of at least one component and one feature")
    for name, right, what in _agreements(mixture, m, d):
        place.at(name).expect(right, what)
    return mixture


def _agreements(mixture: Mixture, m: int, d: int) -> Iterator[tuple[str, Any, str]]:
    """Give what fields must have in common, or the numbers of one: its name, whether, in words."""
    labels = mixture.labels
    yield "feature_names", len(mixture.feature_names) == d, "one name for each feature"
    right = 0 < mixture.weights.sum() <= 1 + SUM_ROUNDING
    yield "weights", right, "made of shares of which the sum is above 0 and at most 1"
    yield "labels", labels.max(initial=-1) < m, "made of numbers of components"
    yield "labels", labels.size in (0, mixture.n_rows), "one number for each row"
    if mixture.inference is not None and mixture.inference.covariance is not None:
        covariance = mixture.inference.covariance
        right = covariance.shape[1] == d + mixture.fit_intercept
        yield "inference.covariance", right, "that of all coefficients"
        variances = np.diagonal(covariance, axis1=1, axis2=2)
        yield "inference.covariance", not (variances < 0).any(), "one: it has negative variances"
    if mixture.spectrum is not None:
        falling = not (np.diff(mixture.spectrum.spectrum) > 0).any()
        yield "spectrum.spectrum", falling, "made of numbers that fall"
    gate = mixture.gate
    if isinstance(gate, Gate | TreeGate):
        yield "gate.names", len(gate.names) == gate.center.size, "one name for each column"
        names = [name for column in gate.columns for name in column.feature_names]
        right = tuple(names) in ((), gate.names)
        yield "gate.columns", right, "what becomes the columns of the gate"
        right = isinstance(gate, Gate) or gate.is_sound()
        yield "gate", right, "made of trees in which every way ends in a leaf"
        shares = gate.intercept > -math.inf if isinstance(gate, Gate) else gate.value
        for name, values in (("", shares), (".average", gate.average)):
            right = values is None or (values.sum(axis=-1) > 0).all()
            yield f"gate{name}", right, "made of shares of which one is above 0"


def _from_version_1(manifest: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """Set the share of outliers, where version 1 had the share of the other rows.

    To keep all rows was to sort them into regimes, which has a name of its own now. Evidence had to
    be above zero, and must be 3 nats now if the number of regimes was found: what was a relation
    then stays one.
    """
    model = dict(manifest["model"])
    settings = dict(model["settings"])
    keep = settings.pop("keep", None)
    settings["outliers"] = None if keep is None else round(1.0 - keep, 12)
    if keep == 1 and settings["search"] != "net":
        n_regimes = len(arrays["coef"])
        settings |= {"search": "partition", "n_components": n_regimes, "outliers": None}
    evidence = model["evidence"]
    if settings["n_components"] is None and not isinstance(evidence, str) and evidence > 0:
        model["evidence"] = max(evidence, 3.0)
    return {**manifest, "model": {**model, "settings": settings}}, arrays


# What brings manifest and arrays of one version to the next, by the version they come from. They
# see files from strangers; limits are checked afterwards.
MIGRATIONS: dict[int, Callable[[dict[str, Any], Arrays], tuple[dict[str, Any], Arrays]]] = {
    1: _from_version_1
}


# --- the schema -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """Where in a document a value stands, and what belongs to the whole of it."""

    path: str  # as messages show it: "model.settings.seed"
    arrays: Arrays = field(default_factory=dict)  # by the path of their place, see ``name``
    # What arrays have in common: "m" is the number of components, "d" of features. The first array
    # that uses a size sets it.
    sizes: dict[str, int] = field(default_factory=dict)

    def at(self, name: str) -> _Place:
        # A terminal obeys some characters; a message must not carry them.
        shown = name if name.isprintable() else ascii(name)
        return _Place(f"{self.path}.{shown}", self.arrays, self.sizes)

    @property
    def name(self) -> str:
        """Name of the array that belongs here."""
        return self.path.partition(".")[2]

    def expect(self, right: object, what: str) -> None:
        if not right:
            raise ModelFileError(f"{self.path} is not {what}.")

    def agree(self, size: str, value: int) -> None:
        expected = self.sizes.setdefault(size, value)
        self.expect(value == expected, f"of the right size: {value} instead of {expected}")


ROOT = _Place("its manifest")


@dataclass(frozen=True)
class _Limit:
    """What the annotation of a field does not say: sizes, and limits of every number."""

    sizes: str = ""  # of an array, by name: "m d"; or of a list, which may also be empty
    low: float = -LARGEST
    high: float = LARGEST
    free: bool = False  # numbers may be anything, also not a number
    nan: bool = False  # numbers may also be unknown, which is not a number


FREE = _Limit(free=True)


def _read(hint: Any, plain: Any, place: _Place, limit: _Limit = FREE) -> Any:
    """Turn plain JSON into a value of an annotated type, or refuse it."""
    kind, inner = get_origin(hint), get_args(hint)
    if hasattr(kind, "__value__"):  # a type alias, which NDArray is from NumPy 2.5 on
        return _read(kind.__value__[inner], plain, place, limit)
    if type(None) in inner:
        return None if plain is None else _read(_meant(inner[:-1], plain), plain, place, limit)
    if kind is np.ndarray:
        return _take_array(plain, place, limit, whole=inner[1] == np.dtype[np.int64])
    if kind is tuple:
        place.expect(isinstance(plain, list), "a list")
        if limit.sizes and plain:
            place.agree(limit.sizes, len(plain))
        items = enumerate(plain)
        return tuple(_read(inner[0], item, place.at(str(i)), limit) for i, item in items)
    if kind is dict:
        place.expect(isinstance(plain, dict), "an object")
        return {name: _read(inner[1], value, place.at(name)) for name, value in plain.items()}
    if dataclasses.is_dataclass(hint):
        return _read_record(hint, plain, place)
    return _read_scalar(hint, plain, place, limit)


def _meant(hints: tuple[Any, ...], plain: Any) -> Any:
    """Choose, among several dataclasses, the one that has the fields of a document."""
    given = set(plain) if isinstance(plain, dict) else set()
    return next((hint for hint in hints[1:] if given <= set(_hints(hint))), hints[0])


def _read_scalar(hint: Any, plain: Any, place: _Place, limit: _Limit) -> Any:
    """Read a text, true or false, or a number."""
    choices = get_args(hint)
    if hint is str or choices:
        place.expect(isinstance(plain, str) and not SURROGATE.search(plain), "a text")
        place.expect(not choices or plain in choices, f"one of {', '.join(choices)}")
    elif hint is bool:
        place.expect(isinstance(plain, bool), "true or false")
    elif hint is int:
        low = 0 if limit.free else limit.low
        place.expect(type(plain) is int and plain >= low, f"a whole number from {low}")
    else:
        plain = NOT_FINITE.get(plain) if isinstance(plain, str) else plain
        place.expect(type(plain) in (int, float), "a number")
        right = limit.free or limit.low <= plain <= limit.high
        place.expect(right, f"a number from {limit.low:g} to {limit.high:g}")
        return float(plain)
    return plain


def _read_record(make: Any, plain: Any, place: _Place) -> Any:
    """Read a dataclass; a field that an older file lacks gets its default."""
    place.expect(isinstance(plain, dict), "an object")
    hints, limits = _hints(make), LIMITS.get(make, {})
    for name in plain:
        place.at(name[:40]).expect(name in hints, "a field that is known here")
    for part in dataclasses.fields(make):
        missing = part.default is part.default_factory is dataclasses.MISSING
        place.at(part.name).expect(part.name in plain or not missing, "there")
    return make(
        **{
            name: _read(hints[name], value, place.at(name), limits.get(name, FREE))
            for name, value in plain.items()
        }
    )


@cache
def _hints(make: Any) -> dict[str, Any]:
    """Return the annotations of the fields that belong into a file."""
    local = {kind.__name__: kind for kind in (Attempt, Rival, Selection, Stability, Subspace)}
    hints = get_type_hints(make, localns=local)
    if make is Mixture:
        hints["gate"] = Gate | TreeGate | None  # a gate of the user's own cannot be saved
    return {name: hint for name, hint in hints.items() if name not in LEFT_OUT.get(make, ())}


def _take_array(plain: Any, place: _Place, limit: _Limit, *, whole: bool) -> NDArray[Any]:
    """Take an array from the members, once; floats or whole numbers of named sizes."""
    name, sizes = place.name, limit.sizes.split()
    place.expect(plain == {"array": name}, "an array: a reference to its array")
    place.expect(name in place.arrays, "among the arrays")
    array = place.arrays.pop(name)
    place.expect(array.ndim == len(sizes), f"an array of {len(sizes)} dimensions")
    for size, length in zip(sizes, array.shape, strict=True):
        place.agree(size, length)
    place.expect((array.dtype.kind == "i") == whole, "of the right type")
    if array.size and not limit.free:
        known = array[~np.isnan(array)] if limit.nan else array
        bounded = math.isfinite(limit.low) and math.isfinite(limit.high)
        place.expect(whole or not bounded or np.isfinite(array).all(), "finite")
        right = not known.size or (limit.low <= known.min() and known.max() <= limit.high)
        place.expect(right, f"within {limit.low:g} and {limit.high:g}")
    return array


SHARE = _Limit(low=0.0, high=1.0)
NOT_NEGATIVE = _Limit(low=0.0)
POSITIVE = _Limit(low=math.ulp(0.0))
TO_INFINITY = _Limit(low=0.0, high=math.inf)
ABOVE_ZERO = replace(TO_INFINITY, low=math.ulp(0.0))
# How far sums of shares, and correlations, may exceed one by rounding.
SUM_ROUNDING = 1e-6
# Far beyond what tables may hold, whose squares must be numbers; slopes are quotients of two such.
IN_UNITS = _Limit(low=-1e200, high=1e200)
SLOPE = 1e300

GATE = {
    "center": _Limit("gate_columns"),
    "scale": _Limit("gate_columns", math.ulp(0.0)),
    "names": _Limit("gate_columns"),
    "average": _Limit("m", 0.0, 1.0),
}
LIMITS: dict[Any, dict[str, _Limit]] = {
    Mixture: {
        "coef": _Limit("m d", -SLOPE, SLOPE),
        "intercept": replace(IN_UNITS, sizes="m"),
        "weights": _Limit("m", 0.0, 1.0),
        "scale": replace(IN_UNITS, sizes="m", low=0.0),
        "labels": _Limit("n", -1),
        "outlier_share": SHARE,
        "background": NOT_NEGATIVE,
        "background_middle": IN_UNITS,
        "background_width": ABOVE_ZERO,
        "background_degrees": ABOVE_ZERO,
        "noise_degrees": ABOVE_ZERO,
        "cutoff": TO_INFINITY,
        "mass": _Limit(low=1.0),
        "feature_names": _Limit("d"),
        "component_evidence": _Limit("m", free=True),
        "origin": _Limit("m"),
        "ranks": _Limit("m", 0),
        "label_counts": _Limit(low=0),
        "doubtful_rows": _Limit(low=0),
        "rivals_rows": _Limit(low=1),
        "gain_of_shares": NOT_NEGATIVE,
        "without_slopes": NOT_NEGATIVE,
        "gain_of_line": NOT_NEGATIVE,
    },
    Settings: {
        "n_components": _Limit(low=1),
        "outliers": SHARE,
        "tol": NOT_NEGATIVE,
        "n_jobs": _Limit(low=-(2**31)),
        "max_starts": _Limit(low=1),
        "time_limit": POSITIVE,
        "granularity": POSITIVE,
        "tolerance": POSITIVE,
        "taus": SHARE,
    },
    # The directions are those of whitened features: q of them, which need not be d.
    Subspace: {"basis": _Limit("q r"), "spectrum": _Limit("q")},
    RowLaw: {
        "mean": replace(IN_UNITS, sizes="d"),
        "deviation": replace(IN_UNITS, sizes="d", low=0.0),
        "correlation": _Limit("d d", -1 - SUM_ROUNDING, 1 + SUM_ROUNDING),
        "middle": IN_UNITS,
        "values": _Limit(low=0),
        "step": NOT_NEGATIVE,
    },
    Inference: {
        "standard_error": _Limit("m d", 0.0, math.inf, nan=True),
        "intercept_error": _Limit("m", 0.0, math.inf, nan=True),
        "degrees": _Limit("m", free=True),
        "r_squared": _Limit("m", free=True),
        "size": _Limit("m", 0.0),
        "covariance": _Limit("m p p", free=True),
        "notes": _Limit("m"),
    },
    Stability: {
        "jaccard": _Limit("b m", 0.0, 1.0),
        "n_components": _Limit("b", 0),
        "coef": _Limit("b m d", free=True),
        "intercept": _Limit("b m", free=True),
    },
    Selection: {
        "n_components": _Limit("k", 0),
        "evidence": _Limit("k", free=True),
        "bic": _Limit("k", free=True),
        "icl": _Limit("k", free=True),
    },
    # A component without rows has the intercept minus infinity.
    Gate: GATE | {"coef": _Limit("m gate_columns"), "intercept": _Limit("m", -math.inf)},
    TreeGate: GATE
    | {
        "feature": _Limit("gate_nodes", -1),
        "threshold": _Limit("gate_nodes"),
        "left": _Limit("gate_nodes", -1),
        "right": _Limit("gate_nodes", -1),
        "value": _Limit("gate_nodes m", 0.0, 1.0),
        "roots": _Limit("gate_trees", 0),
    },
}
