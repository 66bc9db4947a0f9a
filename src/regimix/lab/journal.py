"""The list of finished cells, from which an interrupted run goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from regimix.atomic import write_bytes
from regimix.lab.table import Row

__all__ = ["Journal"]


class Journal:
    """Finished cells of one experiment, a line of JSON for each.

    A line is added when its cell is done. A line that a crash cut short is not read, and the
    next one is written in its place.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._done: dict[str, list[Row]] = {}
        if path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        whole = []
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            try:
                entry = json.loads(line) if line.endswith("\n") else None
            except json.JSONDecodeError:
                entry = None
            if isinstance(entry, dict) and {"key", "rows"} <= entry.keys():
                whole.append(line)
                self._done[entry["key"]] = entry["rows"]
        text = "".join(whole)
        if text != path.read_text(encoding="utf-8"):
            write_bytes(path, text.encode())

    def __contains__(self, key: str) -> bool:
        return key in self._done

    def __getitem__(self, key: str) -> list[Row]:
        return self._done[key]

    def add(self, key: str, rows: Iterable[Row]) -> None:
        """Note a finished cell, on disk at once."""
        line = json.dumps({"key": key, "rows": list(rows)}) + "\n"
        # What was just measured and what is read again later must be the same rows.
        self._done[key] = json.loads(line)["rows"]
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
