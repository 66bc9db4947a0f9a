"""How large the house is: lines, files, who imports whom, chosen numbers, the way of a fit.

What is counted is Python, and counted by reading it, but for the way of a fit: a fit of 150 rows
and one column is run, and every function of the package that it passes through is written down.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

# Rooms whose numbers were chosen, if they are there: they decide what a search finds.
CHOOSING = ("search", "mixture", "model")
ROWS = 150
# Code of its own in some versions of Python and not in others; nobody calls it a function.
COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
ARRAYS = frozenset({"array", "asarray"})


@dataclass(frozen=True)
class Folder:
    """Python files directly or deeper inside one folder of the package, and their lines."""

    name: str
    files: int
    lines: int


@dataclass(frozen=True)
class Way:
    """What a call passes through, of one package."""

    files: int
    functions: int


# --- files and lines ------------------------------------------------------------------------------


def sources(package: Path) -> dict[str, Path]:
    """List the modules of a package by their full names."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def folders(package: Path) -> list[Folder]:
    """Count files and lines, first of what lies at the top, then folder by folder."""
    files: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for path in sources(package).values():
        inside = path.relative_to(package).parts
        name = inside[0] + "/" if len(inside) > 1 else ""
        files[name] += 1
        lines[name] += len(path.read_text(encoding="utf-8").splitlines())
    return [Folder(name or "at the top", files[name], lines[name]) for name in sorted(files)]


# --- who imports whom -----------------------------------------------------------------------------


def importers(package: Path) -> dict[str, set[str]]:
    """Say for each module, packages and ``__main__`` aside, which others import it.

    Imports count wherever they stand: at the top, inside a function, for type checkers only, or by
    ``import_module`` with a name that is written out.
    """
    modules = sources(package)
    by: dict[str, set[str]] = {
        name: set() for name, path in modules.items() if path.stem not in ("__init__", "__main__")
    }
    for name, path in modules.items():
        home = name if path.stem == "__init__" else name.rpartition(".")[0]
        for wanted in _imported(ast.parse(path.read_text(encoding="utf-8")), home, modules):
            if wanted in by and wanted != name:
                by[wanted].add(name)
    return by


def _imported(tree: ast.AST, home: str, modules: dict[str, Path]) -> Iterator[str]:
    """Name the modules that a module imports; ``home`` is the package it lies in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                above = home.split(".")
                above = above[: len(above) - node.level + 1]
                source = ".".join([*above, source] if source else above)
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                yield inner if inner in modules else source
        elif isinstance(node, ast.Call) and _called(node) == "import_module":
            yield from (str(word.value) for word in node.args if isinstance(word, ast.Constant))


def _called(node: ast.Call) -> str:
    """Name the function that is called, without where it comes from."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


# --- chosen numbers -------------------------------------------------------------------------------


def chosen_numbers(package: Path, rooms: tuple[str, ...] = CHOOSING) -> list[str]:
    """Name the numbers that somebody chose: constants of modules, and fields of ``*Numbers``.

    A constant is an upper-case name at the top of a module that is given a number, or several as a
    tuple, list or array, written out. ``*Numbers`` are frozen dataclasses of that name.
    """
    found = []
    for name, path in sources(package).items():
        inside = path.relative_to(package).parts
        if len(inside) < 2 or inside[0] not in rooms:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found += [f"{name}.{node.name}.{field}" for field in _number_fields(node)]
            else:
                found += [f"{name}.{target}" for target in _constants(node)]
    return found


def _constants(node: ast.stmt) -> list[str]:
    """Name the constants that a statement makes."""
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    else:
        return []
    if not _is_number(node.value):
        return []
    # "LOW, HIGH = 1, 2" makes two.
    names = [one for target in targets for one in getattr(target, "elts", [target])]
    return [one.id for one in names if isinstance(one, ast.Name) and one.id.isupper()]


def _is_number(node: ast.expr | None) -> bool:
    """Say whether an expression is a number, or several, written out."""
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float, complex)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    if isinstance(node, ast.Tuple | ast.List):
        return bool(node.elts) and all(_is_number(one) for one in node.elts)
    if isinstance(node, ast.Call) and _called(node) in ARRAYS:
        return bool(node.args) and _is_number(node.args[0])
    return False


def _number_fields(node: ast.ClassDef) -> list[str]:
    """Name the fields of a frozen dataclass whose name ends in Numbers."""
    frozen = any(
        isinstance(mark, ast.Call)
        and _called(mark) == "dataclass"
        and any(word.arg == "frozen" and _is_true(word.value) for word in mark.keywords)
        for mark in node.decorator_list
    )
    if not (frozen and node.name.endswith("Numbers")):
        return []
    return [
        field.target.id
        for field in node.body
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and "ClassVar" not in ast.unparse(field.annotation)
    ]


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


# --- the way of a fit -----------------------------------------------------------------------------


def way(package: Path, call: Callable[[], Any]) -> Way:
    """Count the files and functions of a package that a call passes through, in all threads.

    A function is a code object: a method that is called a thousand times counts once. Bodies of
    modules and classes, which run when something is imported, are none.
    """
    seen: set[CodeType] = set()

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            seen.add(frame.f_code)

    before = sys.getprofile()
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(before)
    home = package.resolve()
    functions = [
        code
        for code in seen
        if code.co_flags & inspect.CO_OPTIMIZED
        and code.co_name not in COMPREHENSIONS
        and home in Path(code.co_filename).resolve().parents
    ]
    return Way(len({code.co_filename for code in functions}), len(functions))


def small_fit() -> Callable[[], Any]:
    """Prepare a fit of two lines, one in each half of the rows; what it needs is imported now."""
    import numpy as np

    from regimix import MixedLinearRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 1))
    slopes = np.where(np.arange(ROWS) < ROWS // 2, 3.0, -2.0)
    y = slopes * X[:, 0] + 0.1 * rng.normal(size=ROWS)
    return lambda: MixedLinearRegression(random_state=0).fit(X, y)


# --- the table ------------------------------------------------------------------------------------

Table = list[tuple[str, ...]]


def tables(package: Path, passed: Way) -> tuple[Table, Table]:
    """Make the two tables: folders, and the rest."""
    listed = folders(package)
    by = importers(package)
    single = sum(len(names) == 1 for names in by.values())
    rooms = [room for room in CHOOSING if (package / room).is_dir()]
    total = Folder("all", sum(f.files for f in listed), sum(f.lines for f in listed))
    first: Table = [(package.name, "files", "lines")]
    first += [(f.name, f"{f.files:,}", f"{f.lines:,}") for f in [*listed, total]]
    second: Table = [("measure", "count")]
    second += [
        ("modules", f"{len(by):,}"),
        ("modules with a single importer", f"{single:,}"),
        (f"chosen numbers in {', '.join(rooms)}", f"{len(chosen_numbers(package)):,}"),
        (f"files a fit of {ROWS} × 1 passes through", f"{passed.files:,}"),
        (f"functions a fit of {ROWS} × 1 passes through", f"{passed.functions:,}"),
    ]
    return first, second


def plain(table: Table) -> str:
    return "\n".join("  ".join(cells).rstrip() for cells in _padded(table))


def markdown(table: Table) -> str:
    head, *rows = (f"| {' | '.join(cells)} |" for cells in _padded(table))
    rule = ["---", *["---:"] * (len(table[0]) - 1)]
    return "\n".join([head, f"| {' | '.join(rule)} |", *rows])


def rst(table: Table) -> str:
    head, *rows = ("  ".join(cells).rstrip() for cells in _padded(table))
    rule = "  ".join("=" * len(cell) for cell in _padded(table)[0])
    return "\n".join([rule, head, rule, *rows, rule])


def _padded(table: Table) -> Table:
    """Make all cells of a column equally wide: words to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [(cells[0].ljust(widths[0]), *map(str.rjust, cells[1:], widths[1:])) for cells in table]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.house", description=__doc__)
    parser.add_argument("--markdown", dest="show", action="store_const", const=markdown)
    parser.add_argument("--rst", dest="show", action="store_const", const=rst)
    parser.set_defaults(show=plain)
    show = parser.parse_args(arguments).show
    fit = small_fit()
    package = Path(sys.modules["regimix"].__file__ or "").parent
    print("\n\n".join(show(table) for table in tables(package, way(package, fit))))


if __name__ == "__main__":
    main()
