"""Plain mixtures of K regimes without outliers: is ours as likely as the best of flexmix?"""

from collections.abc import Sequence

import numpy as np

from benchmarks.real import compare, in_r, ours
from benchmarks.real.part import Effort, Line, Part, Row, at_most, described, percent
from benchmarks.real.tables import Table

REGIMES = (2, 3)
LESS = 0.1
TARGET_LESS = 0.05
# A regime with so much less noise than least squares fits a few rows exactly.
SPIKE = 1e-3
NOT_AVAILABLE = "not available"


def work(table: Table, effort: Effort) -> list[Row]:
    return [_one(table, regimes, effort) for regimes in REGIMES]


def _one(table: Table, regimes: int, effort: Effort) -> Row:
    head: Row = {"table": table.name, "shape": table.shape, "regimes": regimes}
    peer = in_r.best_of(table.X, table.y, regimes, effort.starts)
    noise = float(compare.least_squares(table.X, table.y).noise[0])
    spike = None if peer is None else bool(peer.model.noise.min() < SPIKE * noise)
    theirs = {"flexmix": None if peer is None else peer.loglik, "spike": spike}
    try:
        fit = ours.mixed(table.X, table.y, 0, n_components=regimes, outliers=False)
    except TypeError as error:
        if "outliers" not in str(error):
            raise
        return {**head, **theirs, "regimix": None, "note": f"{NOT_AVAILABLE}: {error}"}
    loglik = float(fit.model.score_samples(table.X, table.y).sum())
    own = bool(np.min(fit.model.scale_) < SPIKE * noise)
    return {**head, **theirs, "regimix": loglik, "count": fit.count, "own_spike": own, "note": ""}


def sum_up(rows: Sequence[Row]) -> list[Line]:
    if not described(rows, "regimix"):
        return [Line("log-likelihoods", NOT_AVAILABLE)]
    both = [row for row in rows if None not in (row["regimix"], row["flexmix"])]
    fair = [row for row in both if not row["spike"]]
    less = [row["regimix"] < row["flexmix"] - LESS for row in fair]
    more = [row["regimix"] > row["flexmix"] + LESS for row in fair]
    what = f"below flexmix by over {LESS} nats (of {len(fair)}; {len(both) - len(fair)} spikes out)"
    return [
        at_most(what, compare.share(less), TARGET_LESS),
        Line(f"above flexmix by over {LESS} nats", percent(compare.share(more))),
    ]


PART = Part(
    title="Likelihood of K regimes",
    about=(
        "`MixedLinearRegression(n_components=K, outliers=False)` beside flexmix, the likeliest of "
        "100 starts that keep K regimes. Log-likelihood of all rows in nats. A *spike* has a noise "
        "below a thousandth of that of least squares: its likelihood has no bound. flexmix divides "
        "variances by n − d − 1, so its own log-likelihood is slightly below its best."
    ),
    work=work,
    sum_up=sum_up,
    columns={
        "table": "table",
        "shape": "rows × columns",
        "regimes": "K",
        "regimix": "regimix",
        "flexmix": "flexmix",
        "spike": "spike",
        "note": "note",
    },
)
