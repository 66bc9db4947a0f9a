"""Fit once while a parent takes samples of this process: ``sampler.py`` says how."""

import faulthandler
import sys
from pathlib import Path

from benchmarks.data import SHARES, mixed_models
from benchmarks.speed.sampler import SIGNAL
from regimix import MixedLinearRegression


def main() -> None:
    rows, columns, stacks = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    given = {"given": len(SHARES), "auto": "auto"}[sys.argv[4]]
    sample = mixed_models(rows, columns, seed=0)
    warm_up = slice(0, min(rows, 5_000))
    MixedLinearRegression(given, random_state=0).fit(sample.X[warm_up], sample.y[warm_up])
    with stacks.open("w") as file:
        faulthandler.register(SIGNAL, file=file, all_threads=False)
        print("ready", flush=True)
        sys.stdin.readline()
        MixedLinearRegression(given, random_state=1).fit(sample.X, sample.y)


if __name__ == "__main__":
    main()
