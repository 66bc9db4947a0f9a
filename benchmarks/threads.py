"""Eight threads that fit at once, beside the same fits one after the other.

``python -m benchmarks.threads`` prints for several sizes of tables how long both take, as a ratio:
of the time on the wall, which should be below 1.2 and is smaller where several cores can help, and
of the time of the processors, which a busy machine hardly changes.
"""

import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from regimix import MixedLinearRegression
from regimix.errors import RegimixWarning
from regimix.synth import make_mlrc

THREADS = 8
SIZES = ((150, 1), (500, 3), (4000, 10), (20_000, 20))


def ratios(n_rows: int, n_features: int) -> tuple[float, float]:
    """Return the ratios of both times, together to one after the other."""
    data = make_mlrc(n_rows, n_features, 2, corruption=0.1, noise=0.1, random_state=0)

    def fit(seed: int) -> np.ndarray:
        return MixedLinearRegression(random_state=seed).fit(data.X, data.y).coef_

    fit(0)  # what is loaded once is loaded now
    alone, one_by_one = _timed(lambda: list(map(fit, range(THREADS))))
    with ThreadPoolExecutor(THREADS) as pool:
        together, at_once = _timed(lambda: list(pool.map(fit, range(THREADS))))
    for one, other in zip(one_by_one, at_once, strict=True):
        np.testing.assert_array_equal(one, other)
    return together[0] / alone[0], together[1] / alone[1]


def _timed(work):
    begun = time.perf_counter(), time.process_time()
    found = work()
    return (time.perf_counter() - begun[0], time.process_time() - begun[1]), found


def main() -> None:
    """Print a line for each size."""
    warnings.simplefilter("ignore", RegimixWarning)
    print(f"{THREADS} threads      wall  processors")
    for n_rows, n_features in SIZES:
        wall, used = ratios(n_rows, n_features)
        print(f"{n_rows:>7} × {n_features:<3} {wall:6.2f} {used:11.2f}", flush=True)


if __name__ == "__main__":
    main()
