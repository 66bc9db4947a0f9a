"""How soon one can begin: imports beside scikit-learn's own, and ``regimix --help``.

Every measurement is an interpreter of its own. Byte code lies in a folder of ours which the
warm-up fills, so that an installed package and a working copy are measured alike.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping

from benchmarks.speed.race import Contestant, duration, medians, race, stopwatch
from benchmarks.speed.table import Comparison, Row, Target

OURS, THEIRS, BARE = "regimix", "scikit-learn", "numpy"
HELP = "--help"
IMPORTS = {
    OURS: "import regimix; from regimix import MixedLinearRegression",
    THEIRS: "from sklearn.linear_model import LinearRegression",
    BARE: "import numpy",
}
SHOW_HELP = "import sys; from regimix.cli import main; sys.exit(main(['--help']))"
LAZY = ("numpy", "polars", "sklearn")  # what asking for help must not load
MORE_ROUNDS = 3  # a start takes a second or less: so many times the rounds of the others
IMPORT_TARGET = Target(1.2, at_least=False)
HELP_SECONDS = 0.5
WORTH_TELLING = 0.001  # seconds that a package takes beyond those of scikit-learn


def run(repeats: int, quick: bool) -> Comparison:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        contestants = {name: _importing(code, environment) for name, code in IMPORTS.items()}
        contestants[HELP] = lambda _: stopwatch(lambda: _python(environment, "-c", SHOW_HELP))
        seconds = race(contestants, repeats if quick else MORE_ROUNDS * repeats)
        extra = beyond(*(import_times(IMPORTS[name], environment) for name in (OURS, THEIRS)))
        loaded = loaded_by_help(environment)
    median = medians(seconds)
    rows = [
        Row(
            "`from regimix import MixedLinearRegression`: time",
            duration(median[OURS]),
            "`from sklearn.linear_model import LinearRegression`",
            duration(median[THEIRS]),
            median[OURS] / median[THEIRS],
            IMPORT_TARGET,
        ),
        Row(
            "`regimix --help`, whole process: time",
            duration(median[HELP]),
            "half a second",
            duration(HELP_SECONDS),
            median[HELP] / HELP_SECONDS,
            Target(1, at_least=False),
            fault=f"loads {', '.join(loaded)}" if loaded else "",
        ),
    ]
    raw = {"seconds": seconds, "beyond_scikit_learn": extra}
    return Comparison(rows, _remarks(extra, median[BARE], loaded), raw)


def _importing(code: str, environment: Mapping[str, str]) -> Contestant:
    timed = f"import time; t = time.perf_counter(); {code}; print(time.perf_counter() - t)"
    return lambda _: float(_python(environment, "-c", timed).stdout)


def _python(environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"An interpreter failed with {arguments}:\n{done.stderr}")
    return done


def loaded_by_help(environment: Mapping[str, str]) -> list[str]:
    """Name the packages that asking for help loads and should not."""
    code = (
        f"import atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); {SHOW_HELP}"
    )
    modules = {name.partition(".")[0] for name in _python(environment, "-c", code).stderr.split()}
    return [name for name in LAZY if name in modules]


def import_times(code: str, environment: Mapping[str, str]) -> dict[str, float]:
    """Return the seconds that each module itself takes, as ``-X importtime`` sees it."""
    seconds: dict[str, float] = {}
    for line in _python(environment, "-X", "importtime", "-c", code).stderr.splitlines():
        own, _, module = line.removeprefix("import time:").split("|")
        if own.strip().isdigit():
            seconds[module.strip()] = int(own) / 1e6
    return seconds


def beyond(ours: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, float]:
    """Sum, by package, what modules take that only we load; the slowest package first."""
    packages: dict[str, float] = {}
    for module in ours.keys() - theirs.keys():
        package = ".".join(module.split(".")[:2])
        packages[package] = packages.get(package, 0.0) + ours[module]
    return dict(sorted(packages.items(), key=lambda item: -item[1]))


def _remarks(extra: Mapping[str, float], bare: float, loaded: list[str]) -> list[str]:
    slow = [f"{name} {duration(took)}" for name, took in extra.items() if took >= WORTH_TELLING]
    told = (
        "Imports are timed inside fresh interpreters, and compiled before. NumPy alone takes "
        f"{duration(bare)}. What regimix loads beyond scikit-learn's linear models "
        f"(`-X importtime`, which slows imports): {', '.join(slow) or 'nothing of note'}."
    )
    return [told] if loaded else [told, f"`regimix --help` loads none of {', '.join(LAZY)}."]
