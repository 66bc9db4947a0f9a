"""Processor time of a default fit, beside flexmix in the same run."""

from collections.abc import Sequence

import numpy as np

from benchmarks.real import in_r, ours
from benchmarks.real.part import Effort, Line, Part, Row, described
from benchmarks.real.tables import Table

MOST_ROWS = 500
REPEATS = 3
TARGET_RATIO = 1.0


def work(table: Table, _effort: Effort) -> list[Row]:
    ours.mixed(table.X, table.y, 0)  # what is loaded when it is first needed is not charged
    seconds = [ours.mixed(table.X, table.y, seed).seconds for seed in range(REPEATS)]
    mine = float(np.median(seconds))
    peer = in_r.by_bic(table.X, table.y, 1, fresh=True)
    theirs = None if peer is None else peer.seconds
    ratio = theirs and mine / theirs
    head: Row = {"table": table.name, "shape": table.shape}
    return [{**head, "regimix": mine, "flexmix": theirs, "ratio": ratio}]


def sum_up(rows: Sequence[Row]) -> list[Line]:
    mine, ratios = described(rows, "regimix"), described(rows, "ratio")
    lines = [
        Line("median seconds of a default fit", f"{np.median(mine):.3g}"),
        Line("slowest", f"{max(mine, default=0):.3g} seconds"),
    ]
    if ratios:
        middle = float(np.median(ratios))
        met = middle <= TARGET_RATIO
        target = f"≤ {TARGET_RATIO:g}"
        lines.append(Line("median of our time over flexmix's", f"{middle:.3g}", target, met))
        theirs = float(np.median(described(rows, "flexmix")))
        lines.append(Line("median seconds of flexmix", f"{theirs:.3g}"))
    return lines


PART = Part(
    title="Time",
    about=(
        f"Processor seconds on one thread, tables of at most {MOST_ROWS} rows: the median of "
        f"{REPEATS} default fits, and `stepFlexmix` with one to five regimes, five starts each, "
        "timed inside R."
    ),
    work=work,
    sum_up=sum_up,
    columns={
        "table": "table",
        "shape": "rows × columns",
        "regimix": "regimix",
        "flexmix": "flexmix",
        "ratio": "ratio",
    },
    suits=lambda table: len(table.y) <= MOST_ROWS,
)
