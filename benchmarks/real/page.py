"""What has been measured: ``real.json``, completed part by part, and ``real.md``."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.real.part import BROKEN, Line, Part, Row, lines_of
from benchmarks.real.parts import PARTS
from regimix.atomic import open_atomically

FORMAT = 1
INTRODUCTION = """# Real tables

Tables of R packages, each with a formula that was fixed before it was fitted
(`benchmarks/real/formulas.py`); `make bench-real` measures again. A part that is measured again
replaces its own figures only. Figures of every run are in `real.json`.
"""


class Archive:
    """The parts in ``real.json`` of a folder; without a folder nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.parts: dict[str, dict[str, Any]] = {}
        if folder is not None and (folder / "real.json").exists():
            content = json.loads((folder / "real.json").read_text(encoding="utf-8"))
            if content.get("format") == FORMAT:  # another one is measured again
                self.parts = content["parts"]

    def add(self, name: str, rows: Sequence[Row], measured: Mapping[str, Any]) -> None:
        """Take a part in instead of an older one, and write the files, each whole or not at all."""
        # Through JSON, so that the page looks alike when it is written again later.
        self.parts[name] = json.loads(json.dumps(plain({"measured": measured, "rows": rows})))
        self.parts = {key: self.parts[key] for key in PARTS if key in self.parts}
        self.write()

    def write(self) -> None:
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        content = {"format": FORMAT, "parts": self.parts}
        self._put("real.json", json.dumps(content, ensure_ascii=False) + "\n")
        self._put("real.md", self.text())

    def text(self) -> str:
        """Return the page: the figures beside their targets, then every table."""
        lines = [INTRODUCTION, *_targets(self.parts)]
        for name, content in self.parts.items():
            lines += _section(PARTS[name], content)
        return "\n".join(lines)

    def _put(self, name: str, text: str) -> None:
        assert self._folder is not None
        with open_atomically(self._folder / name, "w", encoding="utf-8") as file:
            file.write(text)


def _targets(parts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = ["| part | figure | | target | met |", "| --- | --- | ---: | ---: | --- |"]
    for name, content in parts.items():
        for line in lines_of(PARTS[name], content["rows"]):
            met = {True: "yes", False: "**no**", None: ""}[line.met]
            lines.append(f"| {name} | {line.what} | {line.figure} | {line.target} | {met} |")
    return [*lines, ""]


def _section(part: Part, content: Mapping[str, Any]) -> list[str]:
    names = part.columns.values()
    lines = [f"## {part.title}", "", part.about, ""]
    lines += ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    for row in part.shown([row for row in content["rows"] if BROKEN not in row]):
        lines.append("| " + " | ".join(cell(row.get(key)) for key in part.columns) + " |")
    about = ", ".join(f"{key} {value}" for key, value in content["measured"].items() if value)
    return [*lines, "", f"Measured: {about}.", ""]


def told(lines: Sequence[Line]) -> str:
    """Show the summary of a part on a terminal."""
    marks = {True: "met", False: "NOT MET", None: ""}
    texts = (f"  {x.what}: {x.figure}  {x.target} {marks[x.met]}".rstrip() for x in lines)
    return "\n".join(texts)


def cell(value: Any) -> str:
    """Show a figure; of a list of yes and no, how many are yes."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and value and all(isinstance(item, bool) for item in value):
        return f"{sum(value)} of {len(value)}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def plain(value: Any) -> Any:
    """Replace what JSON does not know, infinities and tuples; and keep six digits."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
