"""Parquet files as their footers tell them: columns, row groups, and parts made of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from pathlib import Path, PurePosixPath
from typing import Any

from regimix.engines.parquet import Span
from regimix.engines.parquetfile import FileMark, open_parquet, what_failed
from regimix.errors import DataError
from regimix.tables.paths import find_paths, is_table_file, ordered
from regimix.tables.places import cannot_reach, canonical, is_address, reach

__all__ = ["Footer", "cut_into_parts", "read_footers"]

# Footers that are read side by side: on a network most of the time is waiting.
READERS = 16


@dataclass(frozen=True, eq=False)
class Footer:
    """What the end of a Parquet file says about it.

    Attributes
    ----------
    path, name : str
        Where it is; what messages call it.
    relative : str
        Its name below the folder that all files have in common.
    kinds : dict of str to pyarrow.DataType
        The columns.
    group_rows : tuple of int
        Rows of each row group.
    extents : dict of str to tuple
        Smallest and largest value of columns of numbers, where the file tells; None twice: no
        values at all.
    mark : FileMark
        What tells the file from what it may be changed to.
    """

    path: str
    name: str
    relative: str
    kinds: dict[str, Any]
    group_rows: tuple[int, ...]
    extents: dict[str, tuple[Any, Any]]
    mark: FileMark = field(default_factory=FileMark)


def read_footers(source: str | Path) -> list[Footer]:
    """Find the files of a table in Parquet, and read their footers."""
    paths, names = zip(*_files(str(source)), strict=True)
    with ThreadPoolExecutor(READERS) as readers:
        footers = list(readers.map(_read, paths, names, _below_common_folder(names)))
    _check_columns(footers)
    return footers


def _files(source: str) -> list[tuple[str, str]]:
    """Return where each file is, and what it is called."""
    local = canonical(source) if is_address(source) else source
    if not is_address(local):
        paths = find_paths(Path(local), "parquet")
        return [(str(path.resolve()), str(path)) for path in paths]
    system, place = reach(source)
    try:
        system.invalidate_cache()  # files may have changed since someone looked
        inside = f"{place.rstrip('/')}/**" if system.isdir(place) else place
        names = system.glob(inside) if any(sign in inside for sign in "*?[") else [inside]
        addresses = [system.unstrip_protocol(name) for name in names]
    except (OSError, ValueError) as error:
        raise cannot_reach(source, error) from error
    if place != inside:
        addresses = [name for name in addresses if is_table_file(PurePosixPath(name))]
    if not addresses:
        raise DataError(f"there is no Parquet file at {source!r}; check the address.")
    return [(address, address) for address in ordered(addresses)]


def _below_common_folder(names: Sequence[str]) -> list[str]:
    """Call files by what distinguishes them."""
    pieces = [PurePosixPath(name.replace("\\", "/")).parts for name in names]
    shared = 0
    folders = [parts[:-1] for parts in pieces]
    while all(len(parts) > shared for parts in folders):
        if len({parts[shared] for parts in folders}) > 1:
            break
        shared += 1
    return ["/".join(parts[shared:]) for parts in pieces]


def _read(path: str, name: str, relative: str) -> Footer:
    import pyarrow as pa

    try:
        with open_parquet(path) as (file, mark):
            schema, metadata = file.schema_arrow, file.metadata
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"{name!r} cannot be read as Parquet: {what_failed(error)}. Check that the file is "
            "whole and what its name says."
        ) from error
    twice = [column for column in schema.names if schema.names.count(column) > 1]
    if twice:
        raise DataError(
            f"{name!r} has more than one column named {twice[0]!r}; rename or drop all but one."
        )
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    kinds = dict(zip(schema.names, schema.types, strict=True))
    rows = tuple(group.num_rows for group in groups)
    return Footer(path, name, relative, kinds, rows, _extents(groups, kinds), mark)


def _extents(groups: list[Any], kinds: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Find the smallest and largest value of each column, where all row groups tell."""
    unknown: set[str] = set()
    found: dict[str, tuple[Any, Any]] = {}
    for group in groups:
        for i in range(group.num_columns if group.num_rows else 0):
            column = group.column(i)
            name, statistics = column.path_in_schema, column.statistics
            if name not in kinds or name in unknown:
                continue
            if statistics is not None and statistics.has_min_max:
                ends = (statistics.min, statistics.max)
            elif statistics is not None and statistics.null_count == group.num_rows:
                ends = (None, None)
            else:
                unknown.add(name)
                continue
            found[name] = joined_extent(found.get(name, (None, None)), ends)
    return {name: ends for name, ends in found.items() if name not in unknown}


def joined_extent(first: tuple[Any, Any], second: tuple[Any, Any]) -> tuple[Any, Any]:
    """Put together two extents."""
    if first[0] is None or second[0] is None:
        return second if first[0] is None else first
    return min(first[0], second[0]), max(first[1], second[1])


def _check_columns(footers: list[Footer]) -> None:
    """Refuse files of other columns than the first."""
    first = footers[0]
    for footer in footers[1:]:
        for mine, other in ((first, footer), (footer, first)):
            lacking = next((name for name in mine.kinds if name not in other.kinds), None)
            if lacking is not None:
                raise DataError(
                    f"{other.name!r} has no column {lacking!r}, but {mine.name!r} has; all files "
                    "of a table must have the same columns. Leave out files of another table."
                )


# --- parts ----------------------------------------------------------------------------------------


def cut_into_parts(footers: Iterable[Footer], part_rows: int) -> list[tuple[Span, ...]]:
    """Put row groups together until a part has about so many rows.

    Small files share a part; a file is cut only if it is larger than a part, between row groups.
    """
    parts: list[list[Span]] = []
    room = 0
    for spans in _numbered([_spans(footer, part_rows) for footer in footers]):
        for span in spans:
            if not parts or span.n_rows > room or len(spans) > 1:
                parts.append([])
                room = part_rows
            parts[-1].append(span)
            room -= span.n_rows
    return [tuple(part) for part in parts]


def _spans(footer: Footer, part_rows: int) -> list[Span]:
    """Cut a file that is too large for one part; a row group is never cut."""
    ends = [0, *accumulate(footer.group_rows)]
    cuts = [0]
    for group in range(1, len(footer.group_rows)):
        if ends[group + 1] - ends[cuts[-1]] > part_rows:
            cuts.append(group)
    cuts.append(len(footer.group_rows))
    pieces = list(pairwise(cuts))
    return [
        Span(
            path=footer.path,
            name=footer.name,
            first=low,
            stop=high,
            n_rows=ends[high] - ends[low],
            output=_output(footer.relative, i, len(pieces)),
            mark=footer.mark,
        )
        for i, (low, high) in enumerate(pieces)
    ]


def _output(name: str, index: int, count: int) -> str:
    """Call what is written as what is read; pieces of a file have a number."""
    if count == 1:
        return name
    path = PurePosixPath(name)
    return str(path.with_name(f"{path.stem}.{index:0{len(str(count - 1))}}{path.suffix}"))


def _numbered(files: list[list[Span]]) -> Iterator[list[Span]]:
    """Say where each span begins in the table, and call no two outputs the same."""
    row, taken = 0, {span.output for spans in files if len(spans) == 1 for span in spans}
    for spans in files:
        told = []
        for span in spans:
            output = span.output
            while len(spans) > 1 and output in taken:
                path = PurePosixPath(output)
                output = str(path.with_name(f"{path.stem}_{path.suffix}"))
            taken.add(output)
            told.append(replace(span, first_row=row, output=output))
            row += span.n_rows
        yield told
