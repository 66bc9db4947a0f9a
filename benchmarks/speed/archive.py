"""What has been measured: one file that a later run completes, comparison by comparison."""

import json
import math
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.speed import machine, plots
from benchmarks.speed.table import Comparison, Entry, Measured, Row, Target, markdown
from regimix.atomic import open_atomically

HOME = Path(__file__).parents[2]
FORMAT = 2  # of speed.json


class Archive:
    """The comparisons in ``speed.json`` of a folder; without a folder nothing is kept."""

    def __init__(self, folder: Path | None, order: Sequence[str]) -> None:
        self._folder, self._order = folder, order
        self.entries: dict[str, Entry] = {}
        if folder is not None and (folder / "speed.json").exists():
            content = json.loads((folder / "speed.json").read_text(encoding="utf-8"))
            if content.get("format") == FORMAT:  # another one is measured again
                found = content["comparisons"]
                self.entries = {name: _entry(values) for name, values in found.items()}

    def add(self, name: str, comparison: Comparison, measured: Measured) -> None:
        """Take a comparison in, instead of an older one of that name."""
        # Through JSON, so that the page looks alike when it is written again later.
        plain = json.loads(json.dumps(_finite(asdict(Entry(comparison, measured)))))
        self.entries[name] = _entry(plain)
        self.entries = {key: self.entries[key] for key in self._order if key in self.entries}

    def write(self) -> None:
        """Write ``speed.json``, the pictures and ``speed.md``, each whole or not at all."""
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        entries = {name: asdict(entry) for name, entry in self.entries.items()}
        content = _finite({"format": FORMAT, "comparisons": entries})
        self._put("speed.json", json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        raw = {name: entry.comparison.raw for name, entry in self.entries.items()}
        self._put("speed.md", markdown(self.entries, plots.draw(raw, self._folder)))

    def text(self) -> str:
        """Return the page without its pictures."""
        return markdown(self.entries, {})

    def _put(self, name: str, text: str) -> None:
        assert self._folder is not None
        with open_atomically(self._folder / name, "w", encoding="utf-8") as file:
            file.write(text)


def now(repeats: int, quick: bool) -> Measured:
    """Say when and with what something is measured at this moment."""
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Measured(date, commit(), repeats, quick, machine.describe())


def commit() -> str:
    """Name the commit of the code, and say if the library differs from it."""
    try:
        name = _git("rev-parse", "--short", "HEAD").strip()
        changed = _git("status", "--porcelain", "--", "src").strip()
    except (OSError, subprocess.CalledProcessError):
        return "no commit known"
    return f"commit {name} with changes" if changed else f"commit {name}"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(HOME), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _entry(values: Mapping[str, Any]) -> Entry:
    comparison = dict(values["comparison"])
    comparison["rows"] = [_row(row) for row in comparison["rows"]]
    return Entry(Comparison(**comparison), Measured(**values["measured"]))


def _row(values: Mapping[str, Any]) -> Row:
    target = values["target"]
    return Row(**{**values, "target": target and Target(**target)})


def _finite(value: Any) -> Any:
    """Replace infinities, which JSON does not know, by None."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
