"""One relation: densities integrate to one, slopes are right, evidence is that of a grid."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp

from regimix.engines.base import Sample
from regimix.model.em import REGIME_GAIN, Parameters, refit
from regimix.model.relation import (
    COUNTS,
    KERNELS,
    Relation,
    _Law,
    fit_relation,
    gain_of_shares,
    line_of,
)
from regimix.model.rows import whitened_rows


def table(n, d, seed=0, outliers=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X.sum(axis=1) + 0.5 * rng.standard_normal(n)
    sample = Sample(np.column_stack([np.ones(n), X]), y, np.ones(n))
    return whitened_rows(sample, intercept=True, outliers=outliers)[0]


def plain(rows, kernel="normal", **more):
    none = np.zeros(rows.n)
    return Relation(rows, line_of(rows), none, none, kernel, **more)


CASES = [(kernel, skewed, spread) for kernel in KERNELS for skewed in (0, 1) for spread in (0, 1)]


@pytest.mark.parametrize("outliers", [False, True])
@pytest.mark.parametrize(("kernel", "skewed", "spread"), [*CASES, (COUNTS, 0, 0)])
def test_slopes_are_those_of_differences(kernel, skewed, spread, outliers):
    rows = table(30, 2)
    more = {"spread": rows.features[:, :1]} if spread else {}
    if kernel == COUNTS:
        more["counts"] = np.round(np.exp(rows.y)), 0.3, 0.7
    relation = replace(plain(rows, kernel, skewed=bool(skewed), **more), rounding=np.full(30, 0.1))
    law = _Law.of(relation, outliers=outliers)
    at = law.start + np.random.default_rng(1).normal(0, 0.3, law.start.size)
    slopes = np.hstack([factor[:, None] * block for factor, block in law.rows_at(at)[1]])
    for k in range(at.size):
        step = np.zeros(at.size)
        step[k] = 1e-6
        difference = (law.rows_at(at + step)[0] - law.rows_at(at - step)[0]) / 2e-6
        np.testing.assert_allclose(slopes[:, k], difference, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("skew", [0.0, 1.3, -2.0])
@pytest.mark.parametrize("kernel", KERNELS)
def test_noise_laws_integrate_to_one(kernel, skew):
    rows = table(4, 1)

    def density(y):
        here = plain(replace(rows, y=np.full(4, y)), kernel, skewed=True)
        law = _Law.of(here, outliers=False)
        at = np.array([0.0, 0.0, 0.2, skew])
        # The line itself is at zero.
        law = replace(law, offset=np.zeros(4))
        return float(np.exp(law.rows_at(at)[0][0]))

    total = quad(density, -np.inf, 0, limit=200)[0] + quad(density, 0, np.inf, limit=200)[0]
    assert total == pytest.approx(1.0, abs=1e-6)


def test_counts_sum_to_one():
    rows = table(400, 1)
    counts = np.arange(400.0)
    relation = plain(rows, COUNTS, counts=(counts, 1.0, 0.0))
    law = replace(_Law.of(relation, outliers=False), offset=np.zeros(400))
    log_mass = law.rows_at(np.array([0.0, 0.0, -0.5]))[0]
    assert np.exp(log_mass).sum() == pytest.approx(1.0, abs=1e-9)
    assert np.exp(log_mass) @ counts == pytest.approx(np.e, rel=1e-9)


@pytest.mark.parametrize("kernel", ["normal", "student3"])
def test_evidence_is_that_of_a_grid(kernel):
    rows = table(15, 0, seed=3, outliers=False)
    relation = plain(rows, kernel)
    law = _Law.of(relation, outliers=False)
    level = np.linspace(-4, 4, 401)
    noise = np.linspace(*(ends[1] for ends in law.bounds), 4001)
    noise = noise[noise > -4]
    log_p = np.empty((level.size, noise.size))
    for i, b in enumerate(level):
        t = (rows.y - b) / np.exp(noise)[:, None]
        log_p[i] = KERNELS[kernel](t)[0].sum(axis=1) - rows.n * noise
    deviation = rows.prior.deviation[0]
    log_p -= (0.5 * (level / deviation) ** 2 + np.log(deviation * np.sqrt(2 * np.pi)))[:, None]
    cell = np.log((level[1] - level[0]) * (noise[1] - noise[0]))
    truth = logsumexp(log_p) + cell + np.log(2) - rows.prior.log_span - REGIME_GAIN
    assert fit_relation(relation).score == pytest.approx(truth, abs=0.3)


@pytest.mark.parametrize(("n", "d"), [(50, 1), (200, 3), (1000, 5)])
def test_a_straight_line_has_the_score_of_one_regime(n, d):
    rows = table(n, d, outliers=False)
    start = Parameters.point(np.zeros((1, d + 1)), np.ones(1), np.ones(1), ("one",))
    assert fit_relation(plain(rows)).score == pytest.approx(refit(rows, start, 100).score, abs=0.5)


def test_noise_is_not_smaller_than_rounding():
    rows = table(40, 1)
    exact = replace(rows, y=rows.design @ np.array([0.1, 1.0]))
    rounded = replace(plain(exact), rounding=np.full(40, 0.2))
    # No density can be larger than that of noise as small as the rounding.
    most = -40 * np.log(0.2 * np.sqrt(2 * np.pi))
    assert fit_relation(rounded).score < most < fit_relation(plain(exact)).score


def test_outliers_are_left_to_the_background():
    rows = table(100, 1)
    y = rows.y.copy()
    y[:10] += 40.0
    spoilt = replace(rows, y=y)
    good, bad = fit_relation(plain(rows)), fit_relation(plain(spoilt))
    np.testing.assert_allclose(good.expected, bad.expected, atol=0.2)
    assert fit_relation(plain(replace(spoilt, outliers=False))).score < bad.score - 50


def test_no_outliers_are_looked_at_only_where_that_may_reach_the_goal():
    rows = table(100, 1)
    best, with_outliers = fit_relation(plain(rows)), fit_relation(plain(rows), 1e6)
    assert with_outliers.score < best.score
    assert fit_relation(plain(rows), best.score).score == best.score


def test_shares_that_depend_on_features_gain_only_where_they_do():
    rng = np.random.default_rng(1)
    x = rng.standard_normal(200)
    gains = []
    for steep in (0.0, 3.0):
        second = rng.random(200) < 1 / (1 + np.exp(-steep * x))
        y = np.where(second, 3 + x, -x) + 0.3 * rng.standard_normal(200)
        sample = Sample(np.column_stack([np.ones(200), x]), y, np.ones(200))
        for outliers in (False, True):
            rows = whitened_rows(sample, intercept=True, outliers=outliers)[0]
            coef = np.stack(
                [np.linalg.lstsq(rows.design[second == k], rows.y[second == k])[0] for k in (0, 1)]
            )
            start = Parameters.point(coef, np.full(2, 0.2), np.full(2, 0.49), ("a", "b"))
            gains.append(gain_of_shares(rows, refit(rows, start, 50)))
    assert max(gains[:2]) < 1
    # 200 rows of which a feature tells the regime: most of their log 2 each, less two parameters.
    assert 30 < min(gains[2:]) < max(gains[2:]) < 200 * np.log(2)


def test_a_hopeless_relation_is_given_up_early(monkeypatch):
    """And one that may come near is fitted as if there were no goal."""
    calls = []
    rows_at = _Law.rows_at
    monkeypatch.setattr(_Law, "rows_at", lambda *at: calls.append(1) or rows_at(*at))
    rows = table(200, 8, outliers=False)
    relation = plain(rows, "student3", skewed=True, spread=rows.features)
    best = fit_relation(relation)
    whole = len(calls)
    assert fit_relation(relation, hopeless=best.score - 25).score == best.score
    calls.clear()
    given_up = fit_relation(relation, hopeless=best.score + 450)
    assert len(calls) < whole / 2
    assert best.score - 50 < given_up.score < best.score


def test_what_is_added_to_a_hopeless_relation_is_looked_at_once(monkeypatch):
    """One look; and one that may come near is fitted from its own start, as if there were none."""
    rows = table(200, 8, outliers=False)
    near = fit_relation(plain(rows))
    alone = plain(rows, skewed=True, spread=rows.features)
    relation, whole = replace(alone, near=near), fit_relation(alone)
    for hopeless in (-np.inf, whole.score - 25):
        assert fit_relation(relation, hopeless=hopeless).score == whole.score
    calls = []
    rows_at = _Law.rows_at
    monkeypatch.setattr(_Law, "rows_at", lambda *at: calls.append(1) or rows_at(*at))
    given_up = fit_relation(relation, hopeless=near.score + 450)
    assert near.score <= given_up.score < near.score + 30
    once = len(calls)
    calls.clear()
    fit_relation(alone, hopeless=near.score + 450)
    assert once < len(calls)
