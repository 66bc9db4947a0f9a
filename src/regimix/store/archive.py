"""Members and bytes: a ZIP archive in one canonical form, and arrays as NumPy writes them.

Nothing is compressed, dates are fixed, no field is optional: the same members give the same bytes,
and a reader can demand exactly those. Any ZIP tool and ``numpy.load`` open what is written here;
what other tools write is refused, which leaves nothing to be clever about: no bombs, no overlapping
or hidden members, no names that leave a folder.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.errors import ModelFileError

__all__ = ["DTYPES", "array_bytes", "array_from", "pack", "unpack"]

# Little-endian types of arrays; Python objects are none of them.
DTYPES = ("<f8", "|i1", "<i2", "<i4", "<i8")
MOST_MEMBERS = 64
LONGEST_NAME = 100
# Sizes and offsets have 32 bits.
MOST_BYTES = 2**32 - 1

LOCAL = struct.Struct("<4s5H3I2H")
CENTRAL = struct.Struct("<4s6H3I5H2I")
END = struct.Struct("<4s4H2IH")
# Made by version 2.0 for DOS, no flags, stored, midnight of 1980-01-01, the first day ZIP knows.
HEAD = (20, 0, 0, 0, 33)


def pack(members: Mapping[str, bytes]) -> bytes:
    """Put members into an archive."""
    body = [_local(name, data) + data for name, data in members.items()]
    packed = b"".join(body)
    size = len(packed) + 2 * sum(CENTRAL.size + len(name) for name in members)
    if size > MOST_BYTES:
        raise ModelFileError(
            f"the model takes {size} bytes, and a model file at most {MOST_BYTES}; save it without "
            "labels (labels=False)."
        )
    return packed + _directory([(name, bytes(data)) for name, data in members.items()])


def unpack(data: bytes) -> dict[str, memoryview]:
    """Take an archive apart; refuse any byte that ``pack`` would not have written."""
    if not data.startswith(b"PK\x03\x04"):
        raise ModelFileError("it is no model file: it does not begin like one.")
    view = memoryview(data)
    members: dict[str, memoryview] = {}
    place = 0
    while bytes(view[place : place + 4]) == b"PK\x03\x04":
        if len(members) == MOST_MEMBERS:
            raise ModelFileError(f"it has more than {MOST_MEMBERS} members.")
        name, content = _member(view, place)
        if name in members:
            raise ModelFileError(f"it has two members called {name!r}.")
        members[name] = content
        place += LOCAL.size + len(name) + len(content)
    directory = _directory(list(members.items()))
    if len(view) - place != len(directory) or bytes(view[place:]) != directory:
        raise ModelFileError("it is cut off or was changed: its list of members is not right.")
    return members


def _member(view: memoryview, place: int) -> tuple[str, memoryview]:
    """Read one member, and check that its header and its content are right."""
    if len(view) - place < LOCAL.size:
        raise ModelFileError("it is cut off within the header of a member.")
    _, *head, checksum, packed, size, name_length, extra = LOCAL.unpack_from(view, place)
    if tuple(head) != HEAD or packed != size or extra or name_length > LONGEST_NAME:
        raise ModelFileError(
            "it holds a member that is compressed, encrypted or otherwise not as regimix writes it."
        )
    start = place + LOCAL.size + name_length
    if len(view) - start < size:
        raise ModelFileError("it is cut off within a member.")
    raw = bytes(view[place + LOCAL.size : start])
    if not raw.isascii():
        raise ModelFileError("it holds a member whose name is not plain text.")
    content = view[start : start + size]
    if zlib.crc32(content) != checksum:
        raise ModelFileError(f"its member {raw.decode()!r} was changed: the checksum is wrong.")
    return raw.decode(), content


def _local(name: str, data: bytes) -> bytes:
    size = len(data)
    numbers = (zlib.crc32(data), size, size, len(name), 0)
    return LOCAL.pack(b"PK\x03\x04", *HEAD, *numbers) + name.encode("ascii")


def _directory(members: list[tuple[str, bytes]] | list[tuple[str, memoryview]]) -> bytes:
    """Write the list of members that ends an archive."""
    entries, place = [], 0
    for name, data in members:
        size = len(data)
        numbers = (zlib.crc32(data), size, size, len(name), 0, 0, 0, 0, 0, place)
        entries.append(CENTRAL.pack(b"PK\x01\x02", 20, *HEAD, *numbers) + name.encode("ascii"))
        place += LOCAL.size + len(name) + size
    listing = b"".join(entries)
    count = len(members)
    return listing + END.pack(b"PK\x05\x06", 0, 0, count, count, len(listing), place, 0)


# --- arrays ---------------------------------------------------------------------------------------


def array_bytes(array: NDArray[Any]) -> bytes:
    """Write an array in NumPy's own format."""
    return _array_header(array.dtype.str, array.shape) + array.tobytes()


def array_from(data: memoryview, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Read an array whose type and shape are known; the header has to say the same."""
    if dtype not in DTYPES:
        raise ModelFileError(
            f"it holds an array of type {dtype!r}; allowed are {', '.join(DTYPES)}."
        )
    header = _array_header(dtype, shape)
    kind = np.dtype(dtype)
    if math.prod(max(n, 1) for n in shape) > MOST_BYTES:
        raise ModelFileError(f"it holds an array of the shape {shape}, which is too large.")
    if len(data) != len(header) + math.prod(shape) * kind.itemsize or data[: len(header)] != header:
        raise ModelFileError(f"it holds an array that is not of the shape {shape} it should have.")
    values = np.frombuffer(data, dtype=kind, offset=len(header))
    return values.reshape(shape).astype(kind.newbyteorder("="))


def _array_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Write the header of version 1.0 of the format, padded to a multiple of 64 bytes."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    length = 10 + len(text) + 1
    text += " " * (-length % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("ascii")
