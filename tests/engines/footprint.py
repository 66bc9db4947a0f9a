"""Fit a table on disk and say how much memory that took; run as a process of its own."""

import json
import sys
import threading
from pathlib import Path

import numpy as np

from regimix import MixedLinearRegression
from regimix.engines.parts import PartTable, RawRows
from regimix.result import fit as mixture_fit

__all__ = ["write_table"]

AT_ONCE = 4_000  # rows
# The search works on a draw of bounded size, which here would hide what the table itself takes.
SEARCH_ROWS = 4_000


def write_table(path, n_rows, n_features):
    """Write two regimes to a file, features first, a few rows at a time."""
    table = np.lib.format.open_memmap(path, "w+", float, (n_rows, n_features + 1))
    coef = np.random.default_rng(1).standard_normal((2, n_features))
    for first in range(0, n_rows, AT_ONCE):
        rng, count = np.random.default_rng([3, first]), min(AT_ONCE, n_rows - first)
        X = rng.standard_normal((count, n_features))
        y = (X * coef[rng.integers(0, 2, count)]).sum(axis=1)
        table[first : first + count, :-1] = X
        table[first : first + count, -1] = y + 0.1 * rng.standard_normal(count)
    table.flush()


def read_rows(path, first):
    rows = np.load(path, mmap_mode="r")[first : first + AT_ONCE]
    yield RawRows(np.array(rows[:, :-1]), np.array(rows[:, -1]))


def own_memory():
    """Bytes of this process that are not pages of a file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return 1024 * int(line.split()[1])
    raise RuntimeError("the kernel does not say")


class Peak(threading.Thread):
    """Looks at the memory every few milliseconds."""

    def __init__(self):
        super().__init__()
        self.begun = self.most = own_memory()
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(0.003):
            self.most = max(self.most, own_memory())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.join()


def fit_in_parts(path, table):
    names = tuple(f"x{i}" for i in range(table.shape[1] - 1))
    firsts = range(0, len(table), AT_ONCE)
    readers = tuple(lambda first=first: read_rows(path, first) for first in firsts)
    whole = PartTable(names, "y", readers, tuple(map(str, firsts)))
    return MixedLinearRegression(random_state=0).fit(whole)


def fit_map(path, table):
    return MixedLinearRegression(random_state=0).fit(table[:, :-1], table[:, -1])


def main(path, how):
    mixture_fit.SEARCH_ROWS, mixture_fit.SEARCH_ROWS_PER_COEFFICIENT = SEARCH_ROWS, 0
    table = np.load(path, mmap_mode="r")
    few = np.random.default_rng(0).standard_normal((300, 2))
    MixedLinearRegression(random_state=0).fit(few, few @ [1.0, 2.0] + 0.1)  # loads all code
    with Peak() as peak:
        fit = {"map": fit_map, "parts": fit_in_parts}[how](path, table)
    said = {
        "extra": peak.most - peak.begun,
        "n_components": fit.n_components_,
        "coef": fit.coef_.tolist(),
        "labelled": len(fit.labels_),
    }
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
