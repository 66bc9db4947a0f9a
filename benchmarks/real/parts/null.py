"""What is claimed where there is nothing to find?

Residuals are shuffled, not drawn with replacement: rows that share a residual would lie on a line
exactly, and be a regime.
"""

from collections.abc import Sequence

import numpy as np
from sklearn.mixture import GaussianMixture

from benchmarks.data import Floats
from benchmarks.real import compare, in_r, ours
from benchmarks.real.part import Effort, Line, Part, Row, at_most, percent
from benchmarks.real.tables import Table

TARGET_RELATION, TARGET_SECOND = 0.01, 0.02
# A second peak of fewer rows than this share is outliers.
LEAST_SHARE = 0.1
GRID = 201


def work(table: Table, effort: Effort) -> list[Row]:
    lines = one_regime_fits(table)
    row: Row = {"table": table.name, "shape": table.shape}
    claims: dict[str, list[bool]] = {"relation": []}
    for kind in lines:
        claims |= {f"second_{kind}": [], f"unwarned_{kind}": []}
    for seed in range(effort.permutations):
        rng = np.random.default_rng([seed, len(table.y)])
        claims["relation"].append(ours.mixed(table.X, rng.permutation(table.y), seed).found)
        for kind, (mean, residuals) in lines.items():
            fit = ours.mixed(table.X, mean + rng.permutation(residuals), seed)
            claims[f"second_{kind}"].append(fit.claimed > 1)
            claims[f"unwarned_{kind}"].append(fit.claimed > 1 and not fit.has_rival)
    peaks = {f"peaks_{kind}": two_peaks(residuals) for kind, (_, residuals) in lines.items()}
    return [{**row, **claims, **peaks}]


def one_regime_fits(table: Table) -> dict[str, tuple[Floats, Floats]]:
    """Fit one line by least squares, with R robustly too; and least squares with normal noise."""
    model = compare.least_squares(table.X, table.y)
    A = compare.with_ones(table.X)
    mean = A @ model.theta[0]
    noise = np.random.default_rng(len(table.y)).normal(0, model.noise[0], len(table.y))
    fits = {"normal": (mean, noise), "ols": (mean, table.y - mean)}
    peer = in_r.robust_line(table.X, table.y)
    if peer is not None:
        fits["lts"] = (A @ peer.theta, table.y - A @ peer.theta)
    return fits


def two_peaks(residuals: Floats) -> bool:
    """Whether two normal laws fit better than one, by BIC, and their density has two peaks.

    Such residuals are two parallel regimes, however they are shuffled. A few far rows are none,
    nor is one law with heavy tails.
    """
    values = (residuals / (residuals.std() or 1.0))[:, None]
    one, two = (
        GaussianMixture(k, n_init=5, random_state=0, reg_covar=1e-4).fit(values) for k in (1, 2)
    )
    if two.bic(values) >= one.bic(values) or two.weights_.min() < LEAST_SHARE:
        return False
    # From mean to mean: all peaks of the sum of two normal laws lie between them.
    density = two.score_samples(np.linspace(*sorted(two.means_[:, 0]), GRID)[:, None])
    inner = density[1:-1]
    return bool(np.any((inner < density[:-2]) & (inner <= density[2:])))


def sum_up(rows: Sequence[Row]) -> list[Line]:
    relation = [claim for row in rows for claim in row["relation"]]
    what = f"shuffled responses: a relation is claimed (of {len(relation)})"
    lines = [at_most(what, compare.share(relation), TARGET_RELATION)]
    names = {"ols": "least squares residuals", "lts": "ltsReg residuals", "normal": "normal noise"}
    for kind, name in names.items():
        have = [row for row in rows if f"second_{kind}" in row]
        fair = [row for row in have if not row[f"peaks_{kind}"]]
        every, one = ([c for row in some for c in row[f"second_{kind}"]] for some in (have, fair))
        what = f"one regime, {name}: a second is claimed (of {len(every)})"
        lines.append(at_most(what, compare.share(every), TARGET_SECOND))
        if any(every):
            silent = [claim for row in have for claim in row[f"unwarned_{kind}"]]
            what = "the same, and no single relation is named as a rival"
            lines.append(Line(what, percent(compare.share(silent))))
        if len(fair) < len(have):
            left = f"without the {len(have) - len(fair)} tables whose residuals have two peaks"
            lines.append(Line(f"the same {left}", percent(compare.share(one))))
    return lines


PART = Part(
    title="Nothing to find",
    about=(
        "Responses in random order: a relation that is claimed is wrong. One line with its own "
        "residuals in random order, or with normal noise: a second regime is wrong. "
        "Residuals with two peaks are two parallel lines in truth; the figures without those "
        "tables stand beside. Shown: how many of the draws."
    ),
    work=work,
    sum_up=sum_up,
    columns={
        "table": "table",
        "shape": "rows × columns",
        "relation": "relation claimed",
        "second_ols": "second, least squares",
        "second_lts": "second, ltsReg",
        "second_normal": "second, normal",
        "peaks_ols": "two peaks",
    },
)
