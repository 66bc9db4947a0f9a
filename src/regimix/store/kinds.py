"""What a value in a model file may be: how it is written, and what is refused when it is read.

Plain values go into the JSON document, arrays become members of their own. A kind refuses what it
does not expect, and says where.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regimix.errors import ModelFileError

__all__ = [
    "Array",
    "Flag",
    "Kind",
    "ListOf",
    "Maybe",
    "Named",
    "Number",
    "Place",
    "Record",
    "Text",
    "Whole",
]

# JSON knows no numbers but finite ones.
ODD_NUMBERS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
ODD_WORDS = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
# Halves of characters, which no terminal or file can show.
SURROGATE = re.compile(r"[\ud800-\udfff]")
# Digits of a whole number: seeds may have 128 bits.
MOST_DIGITS = 39


@dataclass(frozen=True)
class Place:
    """Where in a document a value stands, and what belongs to the whole of it.

    Attributes
    ----------
    path : str
        As messages show it: "model.settings.seed".
    arrays : dict of str to ndarray
        The arrays of the document, by the path of their place without its first word.
    sizes : dict of str to int
        What arrays have in common: "m" is the number of components, "d" of features. Whoever uses
        a size first sets it.
    """

    path: str
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def at(self, name: str) -> Place:
        """Go one step further in; a message must not carry what a terminal would obey."""
        shown = name if name.isprintable() else ascii(name)
        return Place(f"{self.path}.{shown}", self.arrays, self.sizes)

    @property
    def name(self) -> str:
        """Name of the array that belongs here."""
        return self.path.partition(".")[2]

    def expect(self, right: object, what: str) -> None:
        """Refuse what is not right."""
        if not right:
            raise ModelFileError(f"{self.path} is not {what}.")

    def agree(self, size: str, value: int) -> None:
        """Refuse a size that differs from what it was elsewhere."""
        expected = self.sizes.setdefault(size, value)
        self.expect(value == expected, f"of the right size: {value} instead of {expected}")


class Kind(Protocol):
    """How values of a kind are written and read."""

    def write(self, value: Any, place: Place) -> Any:
        """Turn a value into plain JSON; arrays go to the place."""

    def read(self, plain: Any, place: Place) -> Any:
        """Turn plain JSON into a value, or refuse it."""


@dataclass(frozen=True)
class Number:
    """A float: from low to high, finite or not; NaN only if ``nan``."""

    low: float = -math.inf
    high: float = math.inf
    nan: bool = False

    def write(self, value: Any, place: Place) -> float | str:
        """Write a number; one that is not finite as a word."""
        place.expect(isinstance(value, Real) and not isinstance(value, bool), "a number")
        return ODD_WORDS.get(repr(float(value)), float(value))

    def read(self, plain: Any, place: Place) -> float:
        """Read a number or one of the words."""
        value = ODD_NUMBERS.get(plain) if isinstance(plain, str) else plain
        place.expect(type(value) in (int, float), "a number")
        number = float(value)  # type: ignore[arg-type]
        if not (self.nan and math.isnan(number)):
            limits = f"a number from {self.low:g} to {self.high:g}"
            place.expect(self.low <= number <= self.high, limits)
        return number


@dataclass(frozen=True)
class Whole:
    """A whole number from ``low``."""

    low: int = 0

    def write(self, value: Any, place: Place) -> int:
        """Write a whole number."""
        place.expect(isinstance(value, Integral) and not isinstance(value, bool), "a whole number")
        right = len(str(abs(int(value)))) <= MOST_DIGITS
        place.expect(right, f"a number of at most {MOST_DIGITS} digits")
        return int(value)

    def read(self, plain: Any, place: Place) -> int:
        """Read a whole number."""
        place.expect(type(plain) is int and plain >= self.low, f"a whole number from {self.low}")
        return int(plain)


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def write(self, value: Any, place: Place) -> bool:
        """Write true or false."""
        place.expect(isinstance(value, bool | np.bool_), "true or false")
        return bool(value)

    def read(self, plain: Any, place: Place) -> bool:
        """Read true or false."""
        place.expect(isinstance(plain, bool), "true or false")
        return bool(plain)


@dataclass(frozen=True)
class Text:
    """A text; one of a few if there are choices."""

    choices: tuple[str, ...] = ()

    def write(self, value: Any, place: Place) -> str:
        """Write a text."""
        return self.read(value, place)

    def read(self, plain: Any, place: Place) -> str:
        """Read a text."""
        place.expect(isinstance(plain, str) and not SURROGATE.search(plain), "a text")
        if self.choices:
            place.expect(plain in self.choices, f"one of {', '.join(self.choices)}")
        return str(plain)


@dataclass(frozen=True)
class Maybe:
    """A value or None."""

    kind: Kind

    def write(self, value: Any, place: Place) -> Any:
        """Write null for None."""
        return None if value is None else self.kind.write(value, place)

    def read(self, plain: Any, place: Place) -> Any:
        """Read None from null."""
        return None if plain is None else self.kind.read(plain, place)


@dataclass(frozen=True)
class ListOf:
    """A tuple of values of one kind; of a common size, or empty, if the size has a name."""

    kind: Kind
    size: str = ""

    def write(self, value: Any, place: Place) -> list[Any]:
        """Write a list."""
        place.expect(isinstance(value, tuple | list), "a list")
        return [self.kind.write(item, place.at(str(i))) for i, item in enumerate(value)]

    def read(self, plain: Any, place: Place) -> tuple[Any, ...]:
        """Read a list."""
        place.expect(isinstance(plain, list), "a list")
        if self.size and plain:
            place.agree(self.size, len(plain))
        return tuple(self.kind.read(item, place.at(str(i))) for i, item in enumerate(plain))


@dataclass(frozen=True)
class Named:
    """A dictionary from any texts to values of one kind."""

    kind: Kind

    def write(self, value: Any, place: Place) -> dict[str, Any]:
        """Write an object."""
        place.expect(isinstance(value, Mapping), "a dictionary")
        place.expect(all(isinstance(name, str) for name in value), "a dictionary of texts")
        return {n: self.kind.write(v, place.at(n)) for n, v in value.items()}

    def read(self, plain: Any, place: Place) -> dict[str, Any]:
        """Read an object."""
        place.expect(isinstance(plain, dict), "an object")
        return {name: self.kind.read(v, place.at(name)) for name, v in plain.items()}


@dataclass(frozen=True)
class Record:
    """An object with known fields.

    Attributes
    ----------
    make : class or callable
        Makes the value of its fields; a dataclass has defaults for fields that an older file lacks.
    fields : mapping of str to Kind
    """

    make: Callable[..., Any]
    fields: Mapping[str, Kind]

    def write(self, value: Any, place: Place) -> dict[str, Any]:
        """Write every field."""
        if isinstance(value, Mapping):
            fields: Mapping[str, Any] = value
        else:
            place.expect(isinstance(value, self.make), f"a {self.make.__name__}")  # type: ignore[arg-type]
            fields = {name: getattr(value, name) for name in self.fields}
        place.expect(set(fields) == set(self.fields), f"made of {', '.join(self.fields)}")
        return {
            name: kind.write(fields[name], place.at(name)) for name, kind in self.fields.items()
        }

    def read(self, plain: Any, place: Place) -> Any:
        """Read every field that is there; refuse others."""
        place.expect(isinstance(plain, dict), "an object")
        for name in plain:
            place.at(name[:40]).expect(name in self.fields, "a field that is known here")
        needed = self._needed()
        for name in needed:
            place.at(name).expect(name in plain, "there")
        return self.make(
            **{name: self.fields[name].read(value, place.at(name)) for name, value in plain.items()}
        )

    def _needed(self) -> list[str]:
        """Return the fields without a default."""
        if not dataclasses.is_dataclass(self.make):
            return list(self.fields)
        missing = dataclasses.MISSING
        return [
            field.name
            for field in dataclasses.fields(self.make)
            if field.default is missing and field.default_factory is missing
        ]


@dataclass(frozen=True)
class Array:
    """An array of floats, or of whole numbers, whose sizes are known by name.

    Attributes
    ----------
    sizes : tuple of str
    low, high : float
        Limits of its values.
    odd : bool
        Whether values may be infinite or NaN.
    whole : bool
        Whole numbers, written in as few bytes as they need.
    """

    sizes: tuple[str, ...]
    low: float = -math.inf
    high: float = math.inf
    odd: bool = False
    whole: bool = False

    def write(self, value: Any, place: Place) -> dict[str, str]:
        """Hand the array to the members; refer to it."""
        place.expect(isinstance(value, np.ndarray), "an array")
        place.expect(value.dtype.kind in ("iu" if self.whole else "f"), "of the right type")
        name = place.name
        place.arrays[name] = np.ascontiguousarray(value, dtype=self._dtype(value))
        return {"array": name}

    def _dtype(self, value: NDArray[Any]) -> str:
        if not self.whole:
            return "<f8"
        lowest, highest = int(value.min(initial=0)), int(value.max(initial=0))
        fitting = (
            name
            for name in ("|i1", "<i2", "<i4")
            if np.iinfo(name).min <= lowest and highest <= np.iinfo(name).max
        )
        return next(fitting, "<i8")

    def read(self, plain: Any, place: Place) -> NDArray[Any]:
        """Take the array from the members, once."""
        name = place.name
        place.expect(plain == {"array": name}, "a reference to its array")
        place.expect(name in place.arrays, "among the arrays")
        array = place.arrays.pop(name)
        place.expect(array.ndim == len(self.sizes), f"an array of {len(self.sizes)} dimensions")
        for size, length in zip(self.sizes, array.shape, strict=True):
            place.agree(size, length)
        place.expect((array.dtype.kind == "i") == self.whole, "of the right type")
        if self.whole:
            array = array.astype(np.int64)
        elif not self.odd:
            place.expect(np.isfinite(array).all(), "finite")
        if array.size and not self.odd:
            right = self.low <= array.min() and array.max() <= self.high
            place.expect(right, f"within {self.low:g} and {self.high:g}")
        return array
