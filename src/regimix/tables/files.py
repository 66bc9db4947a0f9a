"""Tables in files, as one frame: CSV, TSV, JSON lines, Parquet and Arrow."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from regimix.data.cells import is_float
from regimix.data.recipe import check_unique
from regimix.errors import DataError, Message, ParameterError, Setting, reason_of
from regimix.paths import FORMATS, find_paths, format_of_name

# How files begin, where that is certain.
MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}
GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"
# The first member of a model file, whose name follows a header of 30 bytes.
MANIFEST_WITHIN = 64
# Signs below the blank that text does not use, and the share of them that makes bytes binary.
CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b"))
CONTROL_SHARE = 0.02
# Cells that stand for "not known", in any column; blank cells do so anyway.
MISSING = ["NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A"]
SEPARATORS = ",;\t|"
# The beginning of a file that shows its separator and decimal mark; 50,000 columns fit.
HEAD_BYTES = 1 << 20
# The types of columns are guessed from the first rows; if a later row disagrees, from all rows,
# which takes about four times as long.
GUESS_ROWS = 10_000
DECIMAL_COMMA = re.compile(r"(?:^|;)\s*[-+]?\d+,\d+\s*(?=;|$)", re.MULTILINE)
DECIMAL_POINT = re.compile(r"(?:^|;)\s*[-+]?\d*\.\d+\s*(?=;|$)", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Loaded:
    """A frame as it was read."""

    frame: pl.DataFrame
    source: str  # what messages call it; holds no password
    notes: tuple[str, ...] = ()  # what was assumed in reading it


def load_file(
    source: str | Path, file_format: str | None = None, encoding: str = "utf-8"
) -> Loaded:
    """Read a file, a folder of Parquet files, the files of a glob, or standard input ("-")."""
    if file_format not in (None, *FORMATS):
        raise ParameterError(
            f"file_format must be one of {', '.join(FORMATS)}; got {file_format!r}."
        )
    _codec(encoding)
    if str(source) == "-":
        return _read("standard input", sys.stdin.buffer.read(), file_format, encoding)
    paths = find_paths(Path(source), file_format)
    parts = [_read(str(path), path, file_format, encoding) for path in paths]
    if len(parts) == 1:
        return parts[0]
    with _refusing(str(source), "one table"):
        frame = pl.concat([part.frame for part in parts], how="vertical_relaxed")
    return Loaded(frame, str(source), tuple(dict.fromkeys(n for part in parts for n in part.notes)))


# --- one file -------------------------------------------------------------------------------------


def _read(name: str, body: bytes | Path, file_format: str | None, encoding: str) -> Loaded:
    """Read a file, or what came from elsewhere; without a format its name or content decides."""
    try:
        start = _beginning(body)
    except OSError as error:
        raise DataError(f"{name!r} cannot be opened: {error.strerror}.") from error
    if not start:
        raise DataError(f"{name} is empty; pass a file with a header and rows.")
    if file_format is None and isinstance(body, Path):
        file_format = format_of_name(body)
    if file_format is None:
        file_format = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), None)
    if file_format in ("parquet", "arrow"):
        if start.startswith(GZIP):
            raise DataError(
                f"{name} is compressed with gzip; {file_format} files are compressed inside. "
                "Unpack it first."
            )
        with _refusing(name, file_format):
            if file_format == "parquet":
                # Folders called "year=2024" hold a column.
                hive = isinstance(body, Path) and "=" in str(body.parent)
                return Loaded(pl.read_parquet(body, glob=False, hive_partitioning=hive), name)
            read = pl.read_ipc if start.startswith(b"ARROW1") else pl.read_ipc_stream
            return Loaded(read(io.BytesIO(_whole(body))), name)
    body, head = _as_utf8(name, body, encoding)
    if file_format == "jsonl" or (file_format is None and head.startswith("{")):
        lines = "JSON lines (one object a line)"
        return Loaded(_guessing(name, body, lines, pl.read_ndjson), name)
    frame, notes = _read_csv(name, body, head, "\t" if file_format == "tsv" else None)
    return Loaded(frame, name, tuple(notes))


@contextmanager
def _refusing(source: str, kind: str) -> Iterator[None]:
    """Turn what a parser has to say about damaged data into a sentence."""
    # polars panics on some damaged files; a panic is no Exception there.
    damage = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
    try:
        yield
    except damage as error:
        raise DataError(
            f"{source} cannot be read as {kind}: {reason_of(error)}. Check that the file is whole "
            "and what its name says."
        ) from error


def _read_csv(
    name: str, body: bytes | Path, head: str, separator: str | None
) -> tuple[pl.DataFrame, list[str]]:
    """Read separated values; return the frame and notes."""
    notes = []
    # The separator that cuts the first line into most cells.
    separator = separator or max(SEPARATORS, key=lambda mark: len(_first_row(head, mark)))
    names = [cell.strip() for cell in _first_row(head, separator)]
    header = not names or not all(map(is_float, names))
    if header:
        check_unique(filter(None, names), f"{name} has")
    else:
        names = [f"column_{i + 1}" for i in range(len(names))]
        notes.append(
            f"The first line of {name} holds only numbers: it is read as a row, and the columns "
            "are called column_1, column_2, ..."
        )
    commas = separator == ";" and DECIMAL_COMMA.search(head) and not DECIMAL_POINT.search(head)
    if commas:
        notes.append(f"Numbers in {name} have a decimal comma.")
    parse = partial(
        pl.read_csv,
        separator=separator,
        has_header=header,
        decimal_comma=bool(commas),
        null_values=MISSING,
        try_parse_dates=True,
        glob=False,
    )
    frame = _guessing(name, body, "separated values (CSV)", parse, separator)
    if len(names) == frame.width:
        frame.columns = names
    return frame, notes


def _guessing(
    name: str,
    body: bytes | Path,
    kind: str,
    parse: Callable[..., pl.DataFrame],
    separator: str = "",
) -> pl.DataFrame:
    """Parse with types guessed from the first rows, or else from all of them."""
    try:
        return parse(body, infer_schema_length=GUESS_ROWS)
    except (pl.exceptions.PolarsError, UnicodeDecodeError):
        # Refuses bytes that are not UTF-8, and says where they are.
        _recoded(name, _whole(body), "utf-8")
    if separator:
        _refuse_ragged(name, body, separator)
    with _refusing(name, kind):
        return parse(body, infer_schema_length=None)


# --- bytes to UTF-8 -------------------------------------------------------------------------------


def _beginning(body: bytes | Path) -> bytes:
    """Return the first bytes of a file or text."""
    if isinstance(body, bytes):
        return body[:HEAD_BYTES]
    with body.open("rb") as file:
        return file.read(HEAD_BYTES)


def _whole(body: bytes | Path) -> bytes:
    return body if isinstance(body, bytes) else body.read_bytes()


def _codec(encoding: str) -> str:
    """Return the name that Python has for an encoding."""
    try:
        return codecs.lookup(encoding).name
    except LookupError as error:
        words = f" must be one that Python knows, such as 'utf-8' or 'latin-1'; got {encoding!r}."
        raise ParameterError(Message(Setting("encoding"), words)) from error


def _as_utf8(name: str, body: bytes | Path, encoding: str) -> tuple[bytes | Path, str]:
    """Unpack and decode a text; return it in UTF-8, and whole lines of its beginning.

    A file that needs no change stays on disk: polars maps it into memory.
    """
    is_utf8 = _codec(encoding) == "utf-8"
    start = _beginning(body)
    if start.startswith(GZIP):
        body = _unpacked(name, body)
        start = body[:HEAD_BYTES]
    _refuse_archive(name, start)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding, is_utf8 = "utf-16", False
    if start.startswith(codecs.BOM_UTF8) or not is_utf8:
        body = _recoded(name, _whole(body), encoding)
        start = body[:HEAD_BYTES]
    if not start.strip():
        raise DataError(f"{name} is empty; pass a file with a header and rows.")
    return body, _head(name, start)


def _unpacked(name: str, body: bytes | Path) -> bytes:
    try:
        return gzip.decompress(_whole(body))
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{name} is compressed with gzip, but damaged or cut off ({error}); fetch it again."
        ) from error


def _recoded(name: str, data: bytes, encoding: str) -> bytes:
    """Turn an encoding into UTF-8 without a byte order mark."""
    try:
        return data.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeDecodeError as error:
        start = data[:HEAD_BYTES]
        if len(start) - len(start.translate(None, CONTROL)) > CONTROL_SHARE * len(start):
            raise DataError(
                f"{name} holds binary data, not text. Tables are CSV, TSV, JSON lines, Parquet or "
                "Arrow; save it as one of these, and let its name end accordingly."
            ) from error
        line = data.count(b"\n", 0, error.start) + 1
        words = (
            f"{name} is not {encoding}: line {line} holds the byte {data[error.start]:#04x}. Save "
            "it as UTF-8, or say how it was saved with "
        )
        common = ": 'latin-1' (or 'cp1252') is common."
        raise DataError(Message(words, Setting("encoding"), common)) from error


def _refuse_archive(name: str, start: bytes) -> None:
    """Refuse models and spreadsheets, whatever they are called: both are ZIP archives."""
    if not start.startswith(ZIP):
        return
    if b"manifest.json" in start[:MANIFEST_WITHIN]:
        raise DataError(
            f"{name} is a model that regimix has written, not a table; pass the file that holds "
            "the rows."
        )
    raise DataError(
        f"{name} is a ZIP archive or a spreadsheet, not a table in text; unpack it, or save the "
        "sheet as CSV."
    )


def _head(name: str, start: bytes) -> str:
    """Decode the first lines; the last one may have been cut."""
    cut = len(start) == HEAD_BYTES
    start = start.lstrip(b"\r\n")
    if cut and b"\n" not in start:
        return start.decode("utf-8", "ignore")
    whole = start[: start.rfind(b"\n") + 1] if cut else start
    return _recoded(name, whole, "utf-8").decode()


# --- what a table in text looks like --------------------------------------------------------------


def _first_row(head: str, separator: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(head, newline=""), delimiter=separator))
    except csv.Error:
        return []  # a cell that is too long to be one


def _refuse_ragged(name: str, body: bytes | Path, separator: str) -> None:
    """Find the first row with more cells than the header, and say which."""
    source = body.open("rb") if isinstance(body, Path) else io.BytesIO(body)
    with io.TextIOWrapper(source, "utf-8", newline="") as lines, suppress(csv.Error):
        reader = csv.reader(lines, delimiter=separator)
        width = len(next(reader))
        for row in reader:
            if len(row) > width:
                raise DataError(
                    f"{name} has {width} columns, but {len(row)} cells in line {reader.line_num}; "
                    f"put text that holds {separator!r} in quotes, or repair the line."
                )
