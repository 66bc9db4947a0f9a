"""What regimix and its alternatives find in the same five tables.

``python -m benchmarks.compare`` writes ``results/compare.md`` and ``results/compare.svg`` in
about two minutes. Packages of R and statsmodels take part where they are installed; the page says
which.
"""

import argparse
import io
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import (
    HuberRegressor,
    LinearRegression,
    RANSACRegressor,
    TheilSenRegressor,
)
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.preprocessing import StandardScaler

from benchmarks.recovery.contestants.mix_irls import mix_irls
from benchmarks.speed.machine import describe
from regimix import MixedLinearRegression, TrimmedRegressor
from regimix.datasets import load_calls, load_tone
from regimix.synth import make_mlrc

Floats = NDArray[np.float64]
RESULTS = Path(__file__).parent / "results"
RSCRIPT = shutil.which("Rscript")


@dataclass(frozen=True)
class Table:
    """Rows, the lines that are known to be in them (K, d + 1), and the rows that follow none."""

    X: Floats
    y: Floats
    lines: Floats
    near: float  # a line counts as found if its predictions are that near, root mean square
    wrong: NDArray[np.bool_]


@dataclass(frozen=True)
class Answer:
    """Lines (k, d + 1), intercept first, and flagged rows, if the method flags any."""

    lines: Floats
    flagged: NDArray[np.bool_] | None = None


def _line(model: LinearRegression) -> Floats:
    return np.r_[model.intercept_, model.coef_][None]


def least_squares(table: Table) -> Answer:
    return Answer(_line(LinearRegression().fit(table.X, table.y)))


def huber(table: Table) -> Answer:
    model = HuberRegressor(max_iter=1000).fit(table.X, table.y)
    return Answer(_line(model), model.outliers_)


def theil_sen(table: Table) -> Answer:
    return Answer(_line(TheilSenRegressor(random_state=0).fit(table.X, table.y)))


def ransac(table: Table) -> Answer:
    model = RANSACRegressor(random_state=0).fit(table.X, table.y)
    return Answer(_line(model.estimator_), ~model.inlier_mask_)


def ransac_repeated(table: Table) -> Answer:
    """Fit, remove the rows that follow, and fit the others again."""
    left, lines = np.arange(len(table.y)), []
    while len(lines) < len(table.lines) and len(left) > 2 * table.X.shape[1] + 2:
        model = RANSACRegressor(random_state=0).fit(table.X[left], table.y[left])
        lines.append(_line(model.estimator_))
        left = left[~model.inlier_mask_]
    flagged = np.isin(np.arange(len(table.y)), left)
    return Answer(np.vstack(lines), flagged)


def rlm(table: Table) -> Answer:
    import statsmodels.api as sm

    fit = sm.RLM(table.y, sm.add_constant(table.X)).fit()
    return Answer(np.asarray(fit.params)[None])


def k_means(table: Table) -> Answer:
    """Cluster the rows by all their columns, then fit a line in each cluster."""
    rows = StandardScaler().fit_transform(np.c_[table.X, table.y])
    labels = KMeans(len(table.lines), n_init=10, random_state=0).fit_predict(rows)
    fits = [LinearRegression().fit(table.X[labels == j], table.y[labels == j]) for j in set(labels)]
    return Answer(np.vstack([_line(fit) for fit in fits]))


def mix_irls_told(table: Table) -> Answer:
    cell = SimpleNamespace(m=len(table.lines), fit_intercept=True, outliers=table.wrong.mean())
    found = mix_irls(cell, table, 0, 0.0)  # type: ignore[arg-type]
    return Answer(np.c_[found.intercept, found.coef])


def trimmed(table: Table) -> Answer:
    model = TrimmedRegressor(random_state=0).fit(table.X, table.y)
    return Answer(_line(model), ~model.inlier_mask_)


def regimes(table: Table) -> Answer:
    model = MixedLinearRegression(random_state=0).fit(table.X, table.y)
    return Answer(np.c_[model.intercept_, model.coef_], model.labels_ == -1)


NOTHING, COUNT = "", "number of lines"
OURS: Mapping[str, tuple[str, Callable[[Table], Answer]]] = {
    "least squares": (NOTHING, least_squares),
    "Huber (scikit-learn)": (NOTHING, huber),
    "Theil-Sen (scikit-learn)": (NOTHING, theil_sen),
    "RANSAC (scikit-learn)": (NOTHING, ransac),
    "RANSAC, repeated": (COUNT, ransac_repeated),
    "RLM (statsmodels)": (NOTHING, rlm),
    "k-means, then regress": (COUNT, k_means),
    "Mix-IRLS": (f"{COUNT}, share of outliers", mix_irls_told),
    "`TrimmedRegressor`": (NOTHING, trimmed),
    "`MixedLinearRegression`": (NOTHING, regimes),
}
IN_R = {
    "robustbase": ("ltsReg (R)", NOTHING),
    "flexmix": ("flexmix (R), BIC", NOTHING),
    "mixtools": ("mixtools (R)", COUNT),
}
ORDER = [*list(OURS)[:6], "ltsReg (R)", "k-means, then regress", "mixtools (R)"]
ORDER += ["flexmix (R), BIC", "Mix-IRLS", *list(OURS)[-2:]]


def tone() -> Table:
    """Tuned to the octave (2) or to the overtones (x): what the experiment was about."""
    data = load_tone()
    lines = np.array([[2.0, 0.0], [0.0, 1.0]])
    return Table(data.X, data.y, lines, 0.05, _far(data.X, data.y, lines, 0.2))


def _far(X: Floats, y: Floats, lines: Floats, distance: float) -> NDArray[np.bool_]:
    return np.abs(y[:, None] - _predictions(X, lines)).min(axis=1) > distance


def calls() -> Table:
    """The years 1963 to 1970 hold another unit; the line is that of the others."""
    data = load_calls()
    wrong = np.isin(data.row_names, [str(year) for year in range(1963, 1971)])
    right = LinearRegression().fit(data.X[~wrong], data.y[~wrong])
    return Table(data.X, data.y, _line(right), 0.2, wrong)


def mixture(seed: int) -> Table:
    X, y, truth = make_mlrc(
        600, 4, 2, weights=[0.6, 0.4], noise=0.1, corruption=0.05, random_state=seed
    )
    return Table(X, y, np.c_[truth.intercept, truth.coef], 0.2, truth.corrupted)


def clean(seed: int) -> Table:
    X, y, truth = make_mlrc(200, 3, 1, noise=0.3, random_state=seed)
    return Table(X, y, np.c_[truth.intercept, truth.coef], 0.2, truth.corrupted)


def _predictions(X: Floats, lines: Floats) -> Floats:
    return lines[:, 0] + X @ lines[:, 1:].T


@dataclass
class Judged:
    """One method on all draws of a kind of table."""

    counts: list[int] = field(default_factory=list)
    found: list[int] = field(default_factory=list)
    flags: list[tuple[int, int]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    last: Answer | None = None

    def add(self, table: Table, answer: Answer, seconds: float) -> None:
        gaps = _predictions(table.X, table.lines)[:, :, None]
        gaps = gaps - _predictions(table.X, answer.lines)[:, None]
        near = np.sqrt((gaps**2).mean(axis=0)) < table.near
        self.counts.append(len(answer.lines))
        self.found.append(int(near.any(axis=1).sum()))
        self.seconds.append(seconds)
        if answer.flagged is not None:
            right = int((answer.flagged & table.wrong).sum())
            self.flags.append((right, int(answer.flagged.sum()) - right))
        self.last = answer


def measure(draws: list[Table]) -> dict[str, Judged]:
    """Let every method that is here look at every draw."""
    here = {name: find for name, (_, find) in OURS.items()}
    if find_spec("statsmodels") is None:
        del here["RLM (statsmodels)"]
    judged = {name: Judged() for name in here}
    for table in draws:
        for name, find in here.items():
            begun = time.process_time()
            answer = find(table)
            judged[name].add(table, answer, time.process_time() - begun)
    for name, found in _in_r(draws).items():
        for table, (answer, seconds) in zip(draws, found, strict=True):
            judged.setdefault(name, Judged()).add(table, answer, seconds)
    return {name: judged[name] for name in ORDER if name in judged}


VERSIONS: dict[str, str] = {}


def _in_r(draws: list[Table]) -> dict[str, list[tuple[Answer, float]]]:
    """Have R fit all draws, in one process; empty if there is no R."""
    answers: dict[str, list[tuple[Answer, float]]] = {}
    if RSCRIPT is None:
        return answers
    with tempfile.TemporaryDirectory() as folder:
        for i, table in enumerate(draws):
            rows = np.c_[np.full(len(table.y), len(table.lines)), table.y, table.X]
            np.savetxt(Path(folder) / f"{i:03}.csv", rows, delimiter=",", fmt="%.17g")
        script = Path(__file__).with_suffix(".R")
        run = subprocess.run(
            [RSCRIPT, str(script), folder], capture_output=True, text=True, check=True
        )
    for line in run.stdout.splitlines():
        package, name, *numbers = line.split()
        if package == "version":
            VERSIONS[name] = numbers[0]
        elif package in IN_R:
            end = numbers.index("outliers")
            lines = np.array(numbers[2:end], dtype=float).reshape(int(numbers[1]), -1)
            columns = draws[int(name)].X.shape[1] + 1
            flagged = None
            if package == "robustbase":
                rows_flagged = np.array(numbers[end + 1 :], dtype=int)
                flagged = np.isin(np.arange(len(draws[int(name)].y)), rows_flagged)
            answer = Answer(lines.reshape(-1, columns), flagged)
            answers.setdefault(IN_R[package][0], []).append((answer, float(numbers[0])))
    return answers


TOLD = {name: told for name, (told, _) in OURS.items()} | dict(IN_R.values())


def _time(seconds: float) -> str:
    """Two digits: more would be chance."""
    if seconds >= 0.95:
        return f"{seconds:.2g} s"
    return f"{float(f'{1000 * seconds:.2g}'):g} ms"


def _mean(values: list[int]) -> str:
    return f"{np.mean(values):.2g}" if len(set(values)) > 1 else f"{values[0]}"


def _equation(line: Floats) -> str:
    sign = "+" if line[1] >= 0 else "−"
    return f"{line[0]:.2f} {sign} {abs(line[1]):.2f} x".replace("-", "−")


def page_of(title: str, about: str, draws: list[Table], judged: dict[str, Judged]) -> list[str]:
    """Word one kind of table: what each method found, and what it took."""
    known, equations = len(draws[0].lines), len(draws) == 1
    flags = draws[0].wrong.any()
    head = ["method", "must be given", "lines in its answer", f"true lines found, of {known}"]
    head += ["outliers flagged: right, wrong"] * bool(flags) + ["its lines"] * equations + ["time"]
    rows = []
    for name, one in judged.items():
        row = [name, TOLD[name], _mean(one.counts), _mean(one.found)]
        if flags:
            right, false = (np.mean(part) for part in zip(*one.flags or [(0, 0)], strict=True))
            total = np.mean([table.wrong.sum() for table in draws])
            row.append(f"{right:.3g} of {total:.3g}, {false:.3g}" if one.flags else "–")
        if equations:
            assert one.last is not None
            row.append("; ".join(_equation(line) for line in one.last.lines) or "none: it failed")
        rows.append([*row, _time(float(np.median(one.seconds)))])
    return [f"## {title}", "", about, "", *_markdown(head, rows), ""]


def _markdown(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(row) + " |" for row in lines]


def predictions(draws: int) -> list[str]:
    """Compare one prediction a row, for rows that were not fitted: R²."""
    methods = {
        "least squares": LinearRegression(),
        "Huber": HuberRegressor(max_iter=1000),
        "gradient boosting": HistGradientBoostingRegressor(random_state=0),
        "regimix": MixedLinearRegression(random_state=0),
        'regimix, `gating="logistic"`': MixedLinearRegression(gating="logistic", random_state=0),
    }
    rows = {
        "a curve with interactions (Friedman 1), 500 rows": lambda seed: make_friedman1(
            500, noise=1.0, random_state=seed
        ),
        "one straight line, 200 rows, 3 features": lambda seed: (clean(seed).X, clean(seed).y),
        "two regimes and nothing that tells which, 600 rows, 4 features": _untold,
        "two regimes and a column that tells which, 600 rows, 5 features": _told,
    }
    body = []
    for name, draw in rows.items():
        scores = np.zeros((draws, len(methods)))
        for seed in range(draws):
            X, y = draw(seed)
            folds = KFold(5, shuffle=True, random_state=seed)
            for i, model in enumerate(methods.values()):
                scores[seed, i] = r2_score(y, cross_val_predict(model, X, y, cv=folds))
        body.append([name, *(f"{score:.2f}" for score in scores.mean(axis=0))])
    return _markdown(["rows held out: R² of `predict`", *methods], body)


def _untold(seed: int) -> tuple[Floats, Floats]:
    X, y, _ = make_mlrc(600, 4, 2, noise=0.1, random_state=seed)
    return X, y


def _told(seed: int) -> tuple[Floats, Floats]:
    X, y, truth = make_mlrc(600, 4, 2, noise=0.1, random_state=seed)
    noise = np.random.default_rng(seed).normal(size=600)
    return np.c_[X, truth.labels + 0.3 * noise], y


def draw_tone(judged: dict[str, Judged], table: Table) -> bytes:
    """Draw the tone data once for each method, with its lines."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "regimix", "svg.fonttype": "path", "font.size": 8.5}
    import matplotlib.pyplot as plt

    shown = ["Huber (scikit-learn)", "Theil-Sen (scikit-learn)", "RANSAC (scikit-learn)"]
    shown += ["ltsReg (R)", "k-means, then regress", "mixtools (R)", "flexmix (R), BIC"]
    shown = [name for name in shown if name in judged]
    figure, axes = plt.subplots(2, 5, figsize=(11, 4.6), layout="constrained")
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[], ylim=(1.1, 3.1))
        ax.plot(table.X[:, 0], table.y, ".", color="#9a9a9a", markersize=3)
    ends = np.array([[1.35], [3.0]])
    panels = iter(axes.flat)
    for name in shown:
        _draw_lines(next(panels), name, judged[name], ends, "#b2182b")
    boosted = HistGradientBoostingRegressor(random_state=0).fit(table.X, table.y)
    grid, ax = np.linspace(1.35, 3.0, 300)[:, None], next(panels)
    ax.plot(grid, boosted.predict(grid), color="#b2182b", linewidth=1.6)
    ax.set_title("gradient boosting: no lines")
    _draw_lines(next(panels), "`TrimmedRegressor`", judged["`TrimmedRegressor`"], ends, "#0072b2")
    both = "`MixedLinearRegression`"
    _draw_lines(next(panels), both, judged[both], ends, "#0072b2")
    for ax in panels:
        ax.set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _draw_lines(ax, name: str, one: Judged, ends: Floats, colour: str) -> None:
    assert one.last is not None
    ax.plot(ends, _predictions(ends, one.last.lines), color=colour, linewidth=1.8)
    short = name.replace(" (scikit-learn)", "").replace("`", "")
    ax.set_title(f"{short}: {one.found[0]} of 2")


def main() -> None:
    """Measure, and write the page and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=8, help="of each simulated table")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    begun, seeds = time.perf_counter(), range(given.draws)
    mixed, straight = [mixture(seed) for seed in seeds], [clean(seed) for seed in seeds]
    on_tone = measure([tone()])
    pages = page_of("Tone data: two lines, 150 rows", TONE, [tone()], on_tone)
    pages += page_of(
        "Calls: one line, 24 rows, 8 of them wrong", CALLS, [calls()], measure([calls()])
    )
    several = f"Means over {given.draws} simulated tables; times are medians."
    pages += page_of(MIXTURE, several, mixed, measure(mixed))
    pages += page_of(CLEAN, several, straight, measure(straight))
    pages += [f"## {PREDICT}", "", f"Five folds, means over {given.draws // 4} tables.", ""]
    pages += [*predictions(given.draws // 4), ""]
    packages = {**VERSIONS}
    if find_spec("statsmodels") is not None:
        packages["statsmodels"] = version("statsmodels")
    where = {**describe(), **packages}
    listed = ", ".join(f"{name} {value}" for name, value in where.items())
    absent = [name for name in ORDER if name not in on_tone]
    pages += [f"Measured in {time.perf_counter() - begun:.0f} seconds; {listed}."]
    pages += [f"Not installed here, and left out: {', '.join(absent)}."] * bool(absent)
    (given.out / "compare.svg").write_bytes(draw_tone(on_tone, tone()))
    (given.out / "compare.md").write_text("\n".join(pages) + "\n", encoding="utf-8")


TONE = (
    "The musician tuned either to the octave, y = 2, or to the overtones, y = x. A line counts as "
    "found within 0.05 of it; an outlier is a trial farther than 0.2 from both."
)
CALLS = (
    "The line is least squares on the 16 years that were recorded as numbers of calls; it counts "
    "as found within 0.2."
)
MIXTURE = "Mixture with outliers: two regimes, 600 rows, 4 features, 5 % gross errors"
CLEAN = "One clean line: 200 rows, 3 features, no outliers"
PREDICT = "One number a row: prediction of rows held out"

if __name__ == "__main__":
    main()
