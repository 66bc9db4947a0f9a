"""What trimming buys under label noise: ``python -m benchmarks.label_noise``.

Plain scikit-learn estimators, and the same ones in ``TrimmedEstimator``, learn from labels of which
some are wrong, and are judged by the truth on rows that they have not seen. Less than a
minute; writes ``results/label-noise.md``.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from benchmarks.speed import machine
from regimix.errors import EvidenceWarning
from regimix.estimators.meta import TrimmedEstimator

RESULTS = Path(__file__).parent / "results"
SEEDS = 3
FIRST_SEED = 100  # seeds below were looked at while the estimator was made
ROWS = 600  # to learn from; as many again to be judged by
COLUMNS = 6
CAUTIOUS_KEEP = 0.8  # where no label is wrong: what trimming costs those who need none

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]  # features, truth, wrong labels or responses
Spoil = Callable[[np.random.Generator, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Case:
    """An estimator, the truth it could learn, and how labels go wrong."""

    model: str
    estimator: Any
    truth: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    noise: str
    spoil: Spoil
    wrong: float  # share of all rows
    error: Callable[[np.ndarray, np.ndarray], float]

    @property
    def keep(self) -> float:
        """The share of rows that are right."""
        return 1 - self.wrong if self.wrong else CAUTIOUS_KEEP


# --- truths ---------------------------------------------------------------------------------------


def linear(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Label by the largest of three linear scores."""
    return np.argmax(X @ np.linalg.qr(rng.standard_normal((COLUMNS, COLUMNS)))[0][:, :3], axis=1)


def curved(_: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Label by the terciles of a quadratic form: no straight line separates them."""
    form = X[:, 0] ** 2 - X[:, 1] ** 2 + X[:, 2]
    return np.digitize(form, [-0.8, 0.8])


def wavy(_: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Respond by a curve."""
    return np.sin(2 * X[:, 0]) + X[:, 1]


# --- noise ----------------------------------------------------------------------------------------


def at_random(rng: np.random.Generator, y: np.ndarray, share: float) -> np.ndarray:
    """Draw a share of the labels again, from the other two classes."""
    wrong = rng.choice(y.size, round(share * y.size), replace=False)
    spoiled = y.copy()
    spoiled[wrong] = (y[wrong] + rng.integers(1, 3, wrong.size)) % 3
    return spoiled


def next_class(rng: np.random.Generator, y: np.ndarray, share: float) -> np.ndarray:
    """Move a share of the labels on to the next class: errors that agree with each other."""
    wrong = rng.choice(y.size, round(share * y.size), replace=False)
    spoiled = y.copy()
    spoiled[wrong] = (y[wrong] + 1) % 3
    return spoiled


def too_high(rng: np.random.Generator, y: np.ndarray, share: float) -> np.ndarray:
    """Add noise everywhere, and far too much to a share of the responses."""
    wrong = rng.choice(y.size, round(share * y.size), replace=False)
    spoiled = y + 0.1 * rng.standard_normal(y.size)
    spoiled[wrong] += rng.uniform(3, 10, wrong.size)
    return spoiled


# --- cases ----------------------------------------------------------------------------------------


def misclassified(truth: np.ndarray, answer: np.ndarray) -> float:
    return float(np.mean(truth != answer))


def root_mean_square(truth: np.ndarray, answer: np.ndarray) -> float:
    return float(np.sqrt(np.mean((truth - answer) ** 2)))


def cases() -> list[Case]:
    boosting = {"n_estimators": 30, "max_depth": 2, "random_state": 0}
    classifiers = [
        ("logistic regression", LogisticRegression(), linear),
        (
            "pipeline: scale, squares, logistic",
            make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression()),
            curved,
        ),
        ("gradient boosting", GradientBoostingClassifier(**boosting), curved),
    ]
    label_noises = [
        ("none", at_random, 0.0),
        ("20 % at random", at_random, 0.2),
        ("20 % to the next class", next_class, 0.2),
        ("30 % to the next class", next_class, 0.3),
    ]
    listed = [
        Case(model, estimator, truth, noise, partial(spoil, share=wrong), wrong, misclassified)
        for model, estimator, truth in classifiers
        for noise, spoil, wrong in label_noises
    ]
    regressor = GradientBoostingRegressor(**boosting)
    for noise, wrong in [("none", 0.0), ("20 % too high", 0.2), ("30 % too high", 0.3)]:
        spoil = partial(too_high, share=wrong)
        name = "gradient boosting, regression"
        listed.append(Case(name, regressor, wavy, noise, spoil, wrong, root_mean_square))
    return listed


def measure(case: Case, seed: int) -> list[float]:
    """Errors of the fit to true labels, the plain fit, and the trimmed fits, on new rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2 * ROWS, COLUMNS))
    truth = case.truth(rng, X)
    labels = case.spoil(rng, truth[:ROWS])
    contestants = [
        (case.estimator, truth[:ROWS]),
        (case.estimator, labels),
        (TrimmedEstimator(case.estimator, keep=case.keep), labels),
        (TrimmedEstimator(case.estimator, keep=case.keep, keep_start=1.0), labels),
    ]
    errors = []
    for estimator, target in contestants:
        fit = clone(estimator).fit(X[:ROWS], target)
        errors.append(case.error(truth[ROWS:], fit.predict(X[ROWS:])))
    return errors


def markdown(rows: list[tuple[Case, np.ndarray]], seeds: int, seconds: float) -> str:
    lines = [
        f"""# What TrimmedEstimator buys under label noise

Error on {ROWS} new rows with true labels, mean of {seeds} seeds; in brackets, in how many of them
the trimmed fit beats the plain one. Classifiers: share of wrong answers among three classes;
regression: root mean square error. {ROWS} rows to learn from, {COLUMNS} columns.
*True labels* is the plain estimator without noise. *Trimmed* keeps the share of rows that are right
({CAUTIOUS_KEEP:g} where all are: what needless trimming costs); *gradually* begins with all rows
(`keep_start=1.0`).

| estimator | wrong labels | keep | true labels | plain | trimmed | trimmed gradually |
| --- | --- | ---: | ---: | ---: | ---: | ---: |"""
    ]
    for case, errors in rows:
        mean, wins = errors.mean(axis=0), (errors[:, 2:] < errors[:, 1:2]).sum(axis=0)
        trimmed = [f"{mean[i + 2]:.3f} ({wins[i]})" for i in range(2)]
        cells = [
            case.model,
            case.noise,
            f"{case.keep:g}",
            f"{mean[0]:.3f}",
            f"{mean[1]:.3f}",
            *trimmed,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    about = ", ".join(f"{name} {value}" for name, value in machine.describe().items())
    lines += ["", f"Measured in {seconds:.0f} seconds; {about}.", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.label_noise", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=f"default {SEEDS}")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIR", help="where to write")
    arguments = parser.parse_args()
    # Said to users when a class is held at its floor or a fit is exact; the table shows the effect.
    warnings.simplefilter("ignore", EvidenceWarning)
    began = time.perf_counter()
    rows = []
    for case in cases():
        seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
        rows.append((case, np.array([measure(case, seed) for seed in seeds])))
        print(f"{case.model}, {case.noise}", flush=True)
    text = markdown(rows, arguments.seeds, time.perf_counter() - began)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "label-noise.md").write_text(text, encoding="utf-8")
    print(f"\n{text}\nWritten to {arguments.out / 'label-noise.md'}.")


if __name__ == "__main__":
    main()
