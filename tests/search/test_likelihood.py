"""The mixture of largest likelihood, beside a slow twin and beside what a search ends with."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from regimix import MixedLinearRegression
from regimix.engines.base import Sample
from regimix.model.em import Parameters
from regimix.model.rows import whitened_rows
from regimix.search import likelihood
from regimix.search.likelihood import most_likely
from regimix.search.numbers import SEARCH
from tests.model.mixtures import mixed_rows


def table(seed, n=80, gap=4.0):
    """Two crossing lines in noise."""
    rng = np.random.default_rng(seed)
    x, second = rng.standard_normal(n), rng.random(n) < 0.4
    y = np.where(second, gap - x, x) + 0.5 * rng.standard_normal(n)
    design = np.column_stack([np.ones(n), x])
    rows = whitened_rows(Sample(design, y, np.ones(n)), intercept=True, outliers=False)[0]
    return x[:, None], y, rows


def log_likelihood(rows, coef, scale, share):
    parts = [
        np.log(p) + norm.logpdf(rows.y, rows.design @ b, s)
        for b, s, p in zip(coef, scale, share, strict=True)
    ]
    return float(rows.weights @ logsumexp(parts, axis=0))


def slow_em(rows, coef, scale, share, rounds=400):
    """One start after the other, component by component."""
    for _ in range(rounds):
        joint = np.array(
            [
                np.log(p) + norm.logpdf(rows.y, rows.design @ b, s)
                for b, s, p in zip(coef, scale, share, strict=True)
            ]
        )
        member = np.exp(joint - logsumexp(joint, axis=0)) * rows.weights
        fits = [
            np.linalg.lstsq(rows.design * np.sqrt(w)[:, None], rows.y * np.sqrt(w), rcond=None)[0]
            for w in member
        ]
        coef = np.array(fits)
        left = (rows.y - coef @ rows.design.T) ** 2
        scale = np.sqrt((member * left).sum(axis=1) / member.sum(axis=1))
        share = member.sum(axis=1) / rows.mass
    return coef, scale, share


@pytest.mark.parametrize("seed", range(4))
def test_no_start_of_a_slow_twin_ends_higher(seed):
    _, _, rows = table(seed)
    nothing = Parameters.point(np.zeros((1, 2)), np.ones(1), np.ones(1), ("test",))
    found = most_likely(rows, nothing, 2, seed)
    best = log_likelihood(rows, found.coef, found.scale, found.share)
    rng = np.random.default_rng(seed)
    for _ in range(8):
        start = rng.standard_normal((2, 2)), np.ones(2), np.full(2, 0.5)
        coef, scale, share = slow_em(rows, *start)
        if (share * rows.mass > rows.width + 1).all():
            assert log_likelihood(rows, coef, scale, share) <= best + 0.01


@pytest.mark.parametrize("count", [2, 3, 4])
def test_as_many_regimes_as_asked_for_and_none_that_interpolates(count):
    X, y, _ = table(7)
    fit = MixedLinearRegression(count, outliers=False, noise="normal", random_state=0).fit(X, y)
    assert fit.n_components_ == count
    assert fit.outlier_share_ == 0
    assert fit.weights_.sum() == pytest.approx(1.0)
    assert (fit.weights_ * len(y) > 3).all()


@pytest.mark.filterwarnings("ignore:constants explain:regimix.errors.EvidenceWarning")
@pytest.mark.filterwarnings("ignore::regimix.errors.UnrepeatedWarning")  # there are not three
def test_more_regimes_are_never_less_likely():
    X, y, _ = table(3)
    likely = [
        MixedLinearRegression(k, outliers=False, noise="normal", random_state=0)
        .fit(X, y)
        .mixture_.loglik(X, y)
        for k in (1, 2, 3)
    ]
    assert likely == sorted(likely)
    residual = (
        y
        - np.column_stack([np.ones(len(y)), X])
        @ np.linalg.lstsq(np.column_stack([np.ones(len(y)), X]), y, rcond=None)[0]
    )
    alone = norm.logpdf(residual, 0, np.sqrt(np.mean(residual**2))).sum()
    assert likely[0] == pytest.approx(alone, abs=1e-3)


def test_large_and_small_tables_are_fitted_alike(monkeypatch):
    """Large ones regime by regime, others all starts in one product."""
    rows, _ = mixed_rows(0, n=200, outliers=False, weighted=True)
    labels = np.random.default_rng(0).integers(-1, 2, (3, rows.n))
    fields = []
    for numbers in (10**9, 1):
        monkeypatch.setattr(likelihood, "SEARCH", replace(SEARCH, batch_numbers=numbers))
        field = likelihood._Field(rows, likelihood.weighted_fits(rows, labels, 2))
        assert (field.products is None) == (numbers == 1)
        fields.append((field.coef, field))
        field.run(3)
    np.testing.assert_allclose(fields[0][0], fields[1][0], rtol=1e-8)
    np.testing.assert_allclose(fields[0][1].coef, fields[1][1].coef, rtol=1e-6)
    np.testing.assert_allclose(fields[0][1].log_likelihood, fields[1][1].log_likelihood)
    few = rows.take(np.arange(3))  # fewer than coefficients
    one = np.zeros((1, 3), np.intp)
    small = likelihood.weighted_fits(few, one, 1)
    monkeypatch.setattr(likelihood, "SEARCH", SEARCH)
    np.testing.assert_allclose(small, likelihood.weighted_fits(few, one, 1), rtol=1e-4)
