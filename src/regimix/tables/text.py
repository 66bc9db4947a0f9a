"""Tables in text: CSV, TSV and JSON lines, in any encoding, compressed with gzip or not."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from regimix.errors import DataError, Message, ParameterError, Setting
from regimix.tables.extra import refusing

__all__ = ["GZIP", "Text", "beginning", "read_csv", "read_json_lines"]

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
# So much of a file tells its separator and its decimal mark; a header of 50,000 columns fits.
HEAD_BYTES = 1 << 20
# The types of columns are guessed from so many rows; if a later row disagrees, from all of them,
# which takes about four times as long.
GUESS_ROWS = 10_000
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
DECIMAL_COMMA = re.compile(r"(?:^|;)\s*[-+]?\d+,\d+\s*(?=;|$)", re.MULTILINE)
DECIMAL_POINT = re.compile(r"(?:^|;)\s*[-+]?\d*\.\d+\s*(?=;|$)", re.MULTILINE)


@dataclass(frozen=True)
class Text:
    """A text in UTF-8: where it is, and how it begins.

    Attributes
    ----------
    name : str
        What messages call it.
    body : bytes or Path
        A file that needs no change stays on disk: polars maps it into memory.
    head : str
        At most the first ``HEAD_BYTES``, whole lines.
    """

    name: str
    body: bytes | Path
    head: str

    @classmethod
    def of(cls, name: str, body: bytes | Path, encoding: str = "utf-8") -> Text:
        """Unpack, decode and look at the beginning."""
        _check_encoding(encoding)
        start = beginning(body)
        if start.startswith(GZIP):
            body = _unpacked(name, body)
            start = body[:HEAD_BYTES]
        _refuse_archive(name, start)
        if start.startswith(UTF16):
            encoding = "utf-16"
        if start.startswith(codecs.BOM_UTF8) or not _is_utf8(encoding):
            body = _recoded(name, _whole(body), encoding)
            start = body[:HEAD_BYTES]
        if not start.strip():
            raise DataError(f"{name} is empty; pass a file with a header and rows.")
        return cls(name, body, _head(name, start))

    def complain(self) -> None:
        """Refuse bytes that are not UTF-8, saying where; called when something went wrong."""
        _recoded(self.name, _whole(self.body), "utf-8")

    def lines(self) -> io.TextIOWrapper:
        """Open it from the start, as csv likes it."""
        source = self.body.open("rb") if isinstance(self.body, Path) else io.BytesIO(self.body)
        return io.TextIOWrapper(source, "utf-8", newline="")


def read_csv(text: Text, separator: str | None = None) -> tuple[pl.DataFrame, list[str]]:
    """Read separated values; return the frame and notes."""
    notes = []
    separator = separator or _separator(text.head)
    names = [name.strip() for name in _first_row(text.head, separator)]
    header = not names or not all(map(_is_number, names))
    if header:
        _refuse_doubles(text.name, names)
    else:
        names = [f"column_{i + 1}" for i in range(len(names))]
        notes.append(
            f"The first line of {text.name} holds only numbers: it is read as a row, and the "
            "columns are called column_1, column_2, ..."
        )
    options: dict[str, Any] = {"separator": separator, "has_header": header}
    if separator == ";" and DECIMAL_COMMA.search(text.head) and not DECIMAL_POINT.search(text.head):
        options["decimal_comma"] = True
        notes.append(f"Numbers in {text.name} have a decimal comma.")
    frame = _parsed_csv(text, options)
    if len(names) == frame.width:
        frame.columns = names
    return frame, notes


def _parsed_csv(text: Text, options: dict[str, Any]) -> pl.DataFrame:
    """Parse with types guessed from the first rows, or else from all of them."""
    options |= {"null_values": MISSING, "try_parse_dates": True, "glob": False}
    try:
        return pl.read_csv(text.body, infer_schema_length=GUESS_ROWS, **options)
    except (pl.exceptions.PolarsError, UnicodeDecodeError):
        text.complain()
    _refuse_ragged(text, options["separator"])
    with refusing(text.name, "separated values (CSV)"):
        return pl.read_csv(text.body, infer_schema_length=None, **options)


def read_json_lines(text: Text) -> pl.DataFrame:
    """Read one JSON object a line."""
    try:
        return pl.read_ndjson(text.body, infer_schema_length=GUESS_ROWS)
    except (pl.exceptions.PolarsError, UnicodeDecodeError):
        text.complain()
    with refusing(text.name, "JSON lines (one object a line)"):
        return pl.read_ndjson(text.body, infer_schema_length=None)


# --- bytes to UTF-8 -------------------------------------------------------------------------------


def beginning(body: bytes | Path) -> bytes:
    """Return the first bytes of a file or text."""
    if isinstance(body, bytes):
        return body[:HEAD_BYTES]
    with body.open("rb") as file:
        return file.read(HEAD_BYTES)


def _whole(body: bytes | Path) -> bytes:
    return body if isinstance(body, bytes) else body.read_bytes()


def _unpacked(name: str, body: bytes | Path) -> bytes:
    try:
        return gzip.decompress(_whole(body))
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{name} is compressed with gzip, but damaged or cut off ({error}); fetch it again."
        ) from error


def _check_encoding(encoding: str) -> None:
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise ParameterError(
            Message(
                Setting("encoding"),
                f" must be one that Python knows, such as 'utf-8' or 'latin-1'; got {encoding!r}.",
            )
        ) from error


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name == "utf-8"


def _recoded(name: str, data: bytes, encoding: str) -> bytes:
    """Turn an encoding into UTF-8 without a byte order mark."""
    try:
        return data.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeDecodeError as error:
        if _is_binary(data[:HEAD_BYTES]):
            raise DataError(
                f"{name} holds binary data, not text. Tables are CSV, TSV, JSON lines, Parquet or "
                "Arrow; save it as one of these, and let its name end accordingly."
            ) from error
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            Message(
                f"{name} is not {encoding}: line {line} holds the byte {data[error.start]:#04x}. "
                "Save it as UTF-8, or say how it was saved with ",
                Setting("encoding"),
                ": 'latin-1' (or 'cp1252') is common.",
            )
        ) from error


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


def _is_binary(start: bytes) -> bool:
    """Whether bytes are full of signs that no text has."""
    return len(start) - len(start.translate(None, CONTROL)) > CONTROL_SHARE * len(start)


def _head(name: str, start: bytes) -> str:
    """Decode the first lines; the last one may have been cut."""
    cut = len(start) == HEAD_BYTES
    start = start.lstrip(b"\r\n")
    if cut and b"\n" not in start:
        return start.decode("utf-8", "ignore")
    whole = start[: start.rfind(b"\n") + 1] if cut else start
    return _recoded(name, whole, "utf-8").decode()


# --- what a table in text looks like --------------------------------------------------------------


def _separator(head: str) -> str:
    """Choose the separator that cuts the first line into most cells."""
    return max(SEPARATORS, key=lambda mark: len(_first_row(head, mark)))


def _first_row(head: str, separator: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(head, newline=""), delimiter=separator))
    except csv.Error:
        return []  # a cell that is too long to be one


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _refuse_doubles(source: str, names: list[str]) -> None:
    twice = [name for i, name in enumerate(names) if name in names[:i] and name]
    if twice:
        raise DataError(
            f"{source} has more than one column named {twice[0]!r}; rename or drop all but one."
        )


def _refuse_ragged(text: Text, separator: str) -> None:
    """Find the first row with more cells than the header, and say which."""
    with text.lines() as lines:
        reader = csv.reader(lines, delimiter=separator)
        try:
            width = len(next(reader))
            for row in reader:
                if len(row) > width:
                    raise DataError(
                        f"{text.name} has {width} columns, but {len(row)} cells in line "
                        f"{reader.line_num}; put text that holds {separator!r} in quotes, or "
                        "repair the line."
                    )
        except csv.Error:
            return  # the parser itself says better what is wrong
