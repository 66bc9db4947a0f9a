"""Everybody who takes part, by name; one short file per kind.

A contestant is called with the cell (it may look at what the description of its method says it is
told), the data, a seed and the seconds that regimix took on the same data.
"""

from collections.abc import Callable, Mapping

from benchmarks.recovery.cells import Cell
from benchmarks.recovery.contestants import in_r, mix_irls, oracle, ours, restarts, sequential
from benchmarks.recovery.judge import Found
from benchmarks.recovery.sample import Sample

Contestant = Callable[[Cell, Sample, int, float], Found]

CONTESTANTS: Mapping[str, Contestant] = {
    "regimix": ours.nothing_given,
    "regimix, m given": ours.count_given,
    "net": ours.algorithm_2,
    "Mix-IRLS": mix_irls.mix_irls,
    "EM": restarts.expectation_maximisation,
    "alternating": restarts.alternating_minimisation,
    "sequential LTS": sequential.sequential_lts,
    "ltsReg, sequential": in_r.ltsreg,
    "flexmix": in_r.flexmix,
    "mixtools": in_r.mixtools,
    "oracle": oracle.oracle_start,
}

# What each is told beyond the data, for the page.
TOLD = {
    "regimix": "nothing",
    "regimix, m given": "m",
    "net": 'm; Algorithm 2 as written (`search="net"`), for as long as regimix took',
    "Mix-IRLS": "m and the true share of outliers",
    "EM": "m; random restarts for at least as long as regimix took",
    "alternating": "m; random restarts for at least as long as regimix took",
    "sequential LTS": "m; `TrimmedRegressor` on the rows that are left",
    "ltsReg, sequential": "m; `robustbase::ltsReg` on the rows that are left",
    "flexmix": "m; restarted until the truth is found, at most 100 times",
    "mixtools": "m; restarted until the truth is found, at most 100 times",
    "oracle": "the true coefficients, as starts: what a perfect search would give",
}

NEEDS_OUR_TIME = ("net", "EM", "alternating", "flexmix", "mixtools")
USES_REGIMIX = ("regimix", "regimix, m given", "net", "sequential LTS")
