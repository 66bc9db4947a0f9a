"""What a fit spends its time on: BLAS, selection, other compiled code, Python; stage by stage."""

import ast
import linecache
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

import regimix
from benchmarks.speed.race import say
from benchmarks.speed.sampler import CannotSampleError, Frame, Moment, check_system, sample
from benchmarks.speed.table import Comparison, Row, grid

ROWS, QUICK_ROWS = 1_000_000, 20_000
COLUMNS, QUICK_COLUMNS = 50, 5
EVERY = 0.004  # seconds between samples
LIBRARY = Path(regimix.__file__).parent
MODES = {"given": "m given", "auto": 'n_components="auto"'}

BLAS, SELECTION, COMPILED, PYTHON = "BLAS, LAPACK", "partition", "other compiled", "Python"
KINDS = (BLAS, SELECTION, COMPILED, PYTHON)
BLAS_NAMES = ("blas", "lapack", "mkl")
PYTHON_NAMES = ("python", "libpython")
STANDARD_LIBRARY = "lib-dynload"  # where Python keeps modules of its own that are compiled
REST = "rest"
SMALLEST = 0.02  # modules with less than this share of the time are not listed

Counts = dict[str, Counter[str]]
Place = Callable[[Moment], str]


def run(_repeats: int, quick: bool) -> Comparison:
    rows, columns = (QUICK_ROWS, QUICK_COLUMNS) if quick else (ROWS, COLUMNS)
    table, remarks, raw = [], [], {}
    for mode, name in MODES.items():
        what = f"share of BLAS and LAPACK in the search, {rows:,} × {columns}, {name}"
        try:
            moments = profile(rows, columns, mode)
        except CannotSampleError as error:
            table.append(Row(what, "–", "all of its time", f"missing here: {error}"))
            continue
        stages = count(moments, stage_of)
        modules = count(moments, lambda moment: f"{stage_of(moment)}: {module_of(moment)}")
        search = stages.get("search", Counter())
        share = search[BLAS] / max(1, search.total())
        say(f"{name}: {len(moments)} samples, {share:.0%} of the search in BLAS")
        table.append(Row(what, f"{share:.0%}", "all of its time", "100%", share, digits=2))
        remarks += _remarks(name, stages, modules)
        raw[mode] = {"stages": plain(stages), "modules": plain(modules)}
        for line in busiest(moments):
            say(line)
    return Comparison(table, remarks, raw, {"every": EVERY, "threads": 1})


def profile(rows: int, columns: int, mode: str) -> list[Moment]:
    """Take samples of one fit, on one thread: waiting for threads is not work."""
    check_system()
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory() as folder:
        stacks = Path(folder) / "stacks"
        module = "benchmarks.speed.profiled_fit"
        command = [sys.executable, "-m", module, str(rows), str(columns), str(stacks), mode]
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **one_thread},
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            if child.stdout.readline() != "ready\n":
                raise RuntimeError("The fit to be profiled stopped; it says why above.")
            child.stdin.write("\n")
            child.stdin.flush()
            moments = sample(child.pid, stacks, EVERY)
        finally:
            child.stdin.close()
            child.stdout.close()
            child.kill()
            child.wait()
    return [moment for moment in moments if any(map(_ours, moment.stack))]


def count(moments: Iterable[Moment], place: Place) -> Counts:
    """Count the kinds of samples at each place, the busiest place first."""
    counts: Counts = {}
    for moment in moments:
        counts.setdefault(place(moment), Counter())[kind(moment)] += 1
    return dict(sorted(counts.items(), key=lambda item: -item[1].total()))


def busiest(moments: list[Moment], most: int = 10) -> list[str]:
    """Quote the lines of the library that take longest, for whoever wants to make it faster."""
    frames = Counter(next(filter(_ours, moment.stack)) for moment in moments)
    return [
        f"{times / len(moments):4.0%} {Path(frame.file).relative_to(LIBRARY)}:{frame.line}  "
        f"{linecache.getline(frame.file, frame.line).strip()}"
        for frame, times in frames.most_common(most)
    ]


def plain(counts: Counts) -> dict[str, dict[str, int]]:
    """Write counts as JSON can hold them."""
    return {place: {name: kinds[name] for name in KINDS} for place, kinds in counts.items()}


def kind(moment: Moment) -> str:
    """Say what the machine was doing."""
    name = Path(moment.library).name.lower()
    if any(blas in name for blas in BLAS_NAMES):
        return BLAS
    if selecting(moment.stack):
        return SELECTION
    if name.startswith(PYTHON_NAMES) or STANDARD_LIBRARY in moment.library:
        return PYTHON
    return COMPILED


def selecting(stack: tuple[Frame, ...]) -> bool:
    """Tell whether the innermost line selects, be it through a function or a method of NumPy."""
    innermost = stack[0]
    line = linecache.getline(innermost.file, innermost.line)
    return "partition" in innermost.function or "partition(" in line


def stage_of(moment: Moment) -> str:
    """Name the stage: that of the ``with clock.stage(...)`` around a line on the stack."""
    for frame in moment.stack:
        if _ours(frame):
            for first, last, name in _stages(frame.file):
                if first <= frame.line <= last:
                    return name
    return REST


def module_of(moment: Moment) -> str:
    """Name the innermost module of the library."""
    frame = next(filter(_ours, moment.stack))
    return Path(frame.file).relative_to(LIBRARY).as_posix()


def _ours(frame: Frame) -> bool:
    return frame.file.startswith(f"{LIBRARY}{os.sep}")


@cache
def _stages(file: str) -> list[tuple[int, int, str]]:
    found = []
    for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
        if not isinstance(node, ast.With):
            continue
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("clock.stage"):
                found.append((node.lineno, node.end_lineno or node.lineno, _text(call.args[0])))
    return found


def _text(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)


def _remarks(name: str, stages: Counts, modules: Counts) -> list[str]:
    total = sum(counts.total() for counts in stages.values())
    return [
        f"A fit with {name}, on one thread; {total:,} samples. By stage:",
        _shares("stage", stages, total),
        "By the innermost module of the library:",
        _shares("stage and module", modules, total),
    ]


def _shares(what: str, places: Mapping[str, Counter[str]], total: int) -> str:
    """Write what share of all time is spent at a place, and on what there."""
    lines = [
        [
            place,
            f"{counts.total() / max(1, total):.0%}",
            *(f"{counts[name] / counts.total():.0%}" for name in KINDS),
        ]
        for place, counts in places.items()
        if counts.total() >= SMALLEST * total
    ]
    return grid([what, "of the time", *KINDS], lines)
