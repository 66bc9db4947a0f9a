"""From a mixture to the bytes of a model file and back, through every version of the format."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from numpy.typing import NDArray

from regimix.errors import ModelFileError
from regimix.result.mixture import Mixture
from regimix.store.archive import array_bytes, array_from, pack, unpack
from regimix.store.kinds import MOST_DIGITS, Place
from regimix.store.schema import RECIPE, read_mixture, write_mixture

__all__ = ["ModelFile", "decode", "encode"]

FORMAT = "regimix model"
VERSION = 2
Arrays = dict[str, NDArray[Any]]
# What brings manifest and arrays of one version to the next, by the version they come from; what
# was once here stays. A file from strangers may be of any version: limits are checked afterwards.
MIGRATIONS: dict[int, Callable[[dict[str, Any], Arrays], tuple[dict[str, Any], Arrays]]] = {
    1: lambda manifest, arrays: (_outliers_for_keep(manifest, len(arrays["coef"])), arrays),
}
MANIFEST = "manifest.json"
FIELDS = {"format", "version", "library", "arrays", "model", "recipe"}
ROOT = Place("its manifest")
# Names of features are the largest part of a manifest: 100,000 long ones fit.
MOST_MANIFEST_BYTES = 1 << 24
ARRAY_NAME = re.compile(r"[a-z_]{1,40}(\.[a-z_]{1,40})?")
MOST_DIMENSIONS = 3


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


def _outliers_for_keep(manifest: dict[str, Any], n_regimes: int) -> dict[str, Any]:
    """Say how many rows are outliers, where version 1 said how many are not.

    To keep all rows was to sort them into regimes, which has a name of its own now. Evidence had to
    be above zero, and must be 3 nats now if the number of regimes was found: what was a relation
    then stays one.
    """
    model = dict(manifest["model"])
    settings = dict(model["settings"])
    keep = settings.pop("keep", None)
    settings["outliers"] = None if keep is None else round(1.0 - keep, 12)
    if keep == 1 and settings["search"] != "net":
        settings |= {"search": "partition", "n_components": n_regimes, "outliers": None}
    evidence = model["evidence"]
    if settings["n_components"] is None and not isinstance(evidence, str) and evidence > 0:
        model["evidence"] = max(evidence, 3.0)
    return {**manifest, "model": {**model, "settings": settings}}


# --- writing --------------------------------------------------------------------------------------


def encode(mixture: Mixture, *, labels: bool, recipe: Mapping[str, Any] | None) -> bytes:
    """Write a mixture; the same one always gives the same bytes."""
    plain, arrays = write_mixture(mixture, labels=labels)
    written = {name: array_bytes(array) for name, array in arrays.items()}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "library": version("regimix"),
        "arrays": {
            name: {
                "dtype": array.dtype.str,
                "shape": list(array.shape),
                "sha256": hashlib.sha256(written[name]).hexdigest(),
            }
            for name, array in arrays.items()
        },
        "model": plain,
        "recipe": None if recipe is None else RECIPE.write(recipe, Place("recipe")),
    }
    text = json.dumps(manifest, indent=1, allow_nan=False).encode("ascii")
    return pack({MANIFEST: text, **{_member(name): data for name, data in written.items()}})


def _member(name: str) -> str:
    return f"arrays/{name}.npy"


# --- reading --------------------------------------------------------------------------------------


def decode(data: bytes) -> ModelFile:
    """Read a model file of any version; refuse everything else."""
    members = unpack(data)
    Place("its first member").expect(next(iter(members), "") == MANIFEST, MANIFEST)
    manifest = _manifest(bytes(members.pop(MANIFEST)))
    arrays = _arrays(manifest.get("arrays"), members)
    written = manifest["version"]
    for number in range(written, VERSION):
        try:
            manifest, arrays = MIGRATIONS[number](manifest, arrays)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ModelFileError(f"its manifest is not that of version {number}.") from None
    ROOT.expect(set(manifest) == FIELDS, f"made of {', '.join(sorted(FIELDS))}")
    recipe = manifest["recipe"]
    return ModelFile(
        mixture=read_mixture(manifest["model"], arrays),
        recipe=None if recipe is None else _recipe(recipe),
        version=written,
        library=manifest["library"],
    )


def _manifest(data: bytes) -> dict[str, Any]:
    """Parse the manifest, and make sure that this version can read it."""
    ROOT.expect(len(data) <= MOST_MANIFEST_BYTES, "of a sane size")
    try:
        manifest = json.loads(
            data.decode("ascii"),
            object_pairs_hook=_object,
            parse_int=_whole,
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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    ROOT.expect(len(found) == len(pairs), "free of repeated names")
    return found


def _whole(digits: str) -> int:
    ROOT.expect(len(digits.lstrip("-")) <= MOST_DIGITS, "free of huge numbers")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    ROOT.expect(math.isfinite(number), "free of numbers that are not finite")
    return number


def _recipe(plain: Any) -> dict[str, Any]:
    recipe: dict[str, Any] = RECIPE.read(plain, Place("recipe"))
    # Plain JSON went in, plain JSON comes out: tuples are lists again.
    return RECIPE.write(recipe, Place("recipe"))


def _arrays(entries: Any, members: dict[str, memoryview]) -> Arrays:
    """Read the arrays that the manifest lists: these and no others, in this order."""
    place = ROOT.at("arrays")
    place.expect(isinstance(entries, dict), "an object")
    place.expect(all(map(ARRAY_NAME.fullmatch, entries)), "made of plain names")
    place.expect([_member(name) for name in entries] == list(members), "the list of its members")
    return {name: _array(name, entry, members[_member(name)]) for name, entry in entries.items()}


def _array(name: str, entry: Any, data: memoryview) -> NDArray[Any]:
    place = ROOT.at("arrays").at(name)
    right = isinstance(entry, dict) and set(entry) == {"dtype", "shape", "sha256"}
    place.expect(right, "made of dtype, shape, sha256")
    shape = entry["shape"]
    right = isinstance(shape, list) and len(shape) <= MOST_DIMENSIONS
    right = right and all(type(n) is int and n >= 0 for n in shape)
    place.expect(right, f"of a shape of at most {MOST_DIMENSIONS} whole numbers")
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise ModelFileError(f"its array {name!r} was changed: the checksum is wrong.")
    return array_from(data, entry["dtype"], tuple(shape))
