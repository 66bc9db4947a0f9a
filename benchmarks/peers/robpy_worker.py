"""Fit with robpy and time inside its process; worker.py describes the conversation.

Runs in robpy's environment, where regimix is not installed: it imports nothing from here.
"""

import logging
import sys
import time
from importlib.metadata import version

import numpy as np
from robpy.regression.lts import FastLTSRegression

print(f"robpy {version('robpy')}, scikit-learn {version('scikit-learn')}", flush=True)
for line in sys.stdin:
    path, *sizes = line.split()
    rows, columns, kept = map(int, sizes)
    values = np.fromfile(path)
    X = np.ascontiguousarray(values[: rows * columns].reshape(columns, rows).T)
    y = values[rows * columns :]
    # Without reweighting robpy reports its raw coefficients, and saves one of over a
    # thousand least squares fits. Half a row more makes its int(alpha * n) exact.
    model = FastLTSRegression(alpha=(kept + 0.5) / rows, reweighting=False)
    start = time.perf_counter()
    model.fit(X, y, verbosity=logging.ERROR)
    seconds = time.perf_counter() - start
    print(seconds, float(model.model.intercept_[0]), *model.model.coef_[0].tolist(), flush=True)
