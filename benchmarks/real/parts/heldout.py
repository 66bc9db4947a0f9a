"""How likely are rows that the fit has not seen? Three folds, the same for everybody."""

from collections.abc import Sequence

import numpy as np

from benchmarks.data import Floats
from benchmarks.real import compare, in_r, ours
from benchmarks.real.part import Effort, Line, Part, Row, at_most, described
from benchmarks.real.tables import Table

FOLDS = 3
BELOW_OLS, BELOW_FLEXMIX = 0.01, 0.02
TARGET_OLS, TARGET_FLEXMIX = 0.05, 0.1


def work(table: Table, _effort: Effort) -> list[Row]:
    X, y = table.X, table.y
    ours_, ols, flexmix, counts = np.empty(len(y)), np.empty(len(y)), np.empty(len(y)), []
    for number, out in enumerate(compare.folds(len(y), FOLDS, seed=0)):
        fit = ours.mixed(X[~out], y[~out], number)
        ours_[out] = fit.model.score_samples(X[out], y[out])
        ols[out] = compare.least_squares(X[~out], y[~out]).log_density(X[out], y[out])
        peer = in_r.by_bic(X[~out], y[~out], number + 1)
        flexmix[out] = np.nan if peer is None else peer.model.log_density(X[out], y[out])
        counts.append(fit.claimed)
    head: Row = {"table": table.name, "shape": table.shape, "counts": counts}
    means = {"regimix": _mean(ours_), "ols": _mean(ols), "flexmix": _mean(flexmix)}
    return [{**head, **means, "worst_row": float(ours_.min())}]


def _mean(values: Floats) -> float | None:
    return None if np.isnan(values).any() else float(values.mean())


def sum_up(rows: Sequence[Row]) -> list[Line]:
    against = [row["regimix"] - row["ols"] for row in rows]
    peers = [row for row in rows if row["flexmix"] is not None]
    beside = [row["regimix"] - row["flexmix"] for row in peers]
    lines = [
        at_most(
            f"tables below least squares by over {BELOW_OLS}",
            compare.share([gain < -BELOW_OLS for gain in against]),
            TARGET_OLS,
        ),
        at_most(
            f"tables below flexmix by over {BELOW_FLEXMIX} (of {len(peers)})",
            compare.share([gain < -BELOW_FLEXMIX for gain in beside]),
            TARGET_FLEXMIX,
        ),
        Line("median gain over least squares", f"{np.median(against):.3f} nats a row"),
    ]
    if beside:
        above = compare.share([gain > BELOW_FLEXMIX for gain in beside])
        lines.append(Line(f"tables above flexmix by over {BELOW_FLEXMIX}", f"{100 * above:.3g} %"))
        lines.append(Line("median gain over flexmix", f"{np.median(beside):.3f} nats a row"))
        low = [row for row in peers if row["flexmix"] < row["ols"] - BELOW_OLS]
        lines.append(Line("flexmix itself below least squares", f"{len(low)} of {len(peers)}"))
    worst = min(described(rows, "worst_row"), default=float("nan"))
    lines.append(Line("least likely row of all, regimix", f"{worst:.3g} nats"))
    return lines


PART = Part(
    title="Held-out log density",
    about=(
        "Mean over all rows, in nats, each from a fit to the other two of three folds. Least "
        "squares: normal noise, its variance over n − d − 1. flexmix: one to five regimes, five "
        "starts each, the number by BIC. *regimes*: found in each fold, 0 for no relation."
    ),
    work=work,
    sum_up=sum_up,
    columns={
        "table": "table",
        "shape": "rows × columns",
        "counts": "regimes",
        "regimix": "regimix",
        "ols": "least squares",
        "flexmix": "flexmix",
    },
)
