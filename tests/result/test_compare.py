"""How regimes differ: the joint information beside finite differences, and coverage."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from regimix import MixedLinearRegression
from regimix.errors import ParameterError
from regimix.result.compare import joint_covariance
from regimix.result.inference import Inference, holm
from tests.result.test_mixture import mixture_of

pytestmark = pytest.mark.usefixtures("searched_once")


def rows(seed=0, n=300, apart=2.0, noise=0.8, outliers=0):
    """Two lines that cross, so that many rows may belong to either."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2)) * [3.0, 50.0] + [10.0, -400.0]
    slopes = np.array([[0.5, 0.02], [0.5 + apart / 6, -0.01]])
    regime = rng.random(n) < 0.4
    y = np.einsum("ij,ij->i", X, slopes[regime.astype(int)]) + np.where(regime, -8 - apart, 5)
    y += noise * rng.standard_normal(n)
    y[:outliers] += rng.standard_t(2, outliers) * 20
    return X, y


def moved(mixture, vector):
    """The mixture at other parameters: coefficients, intercept and log noise, then log odds."""
    m, d = mixture.coef.shape
    each = vector[: m * (d + 2)].reshape(m, d + 2)
    odds = vector[m * (d + 2) :]
    whole = np.append(odds, 0.0)
    shares = np.exp(whole - whole.max())
    shares /= shares.sum()
    without = mixture.outlier_share == 0
    return replace(
        mixture,
        coef=each[:, :d],
        intercept=each[:, d],
        scale=np.exp(each[:, d + 1]),
        weights=shares if without else shares[:-1],
        outlier_share=0.0 if without else float(shares[-1]),
    )


def slow_covariance(mixture, X, y, weights):
    """Invert minus the second differences of the log-likelihood, in the units of the user."""
    m, d = mixture.coef.shape
    shares = (
        mixture.weights if mixture.outlier_share == 0 else [*mixture.weights, mixture.outlier_share]
    )
    start = np.concatenate(
        [
            np.column_stack([mixture.coef, mixture.intercept, np.log(mixture.scale)]).ravel(),
            np.log(np.asarray(shares)[:-1] / shares[-1]),
        ]
    )
    # Of the size of a thousandth of what one row may change.
    step = np.concatenate(
        [np.tile([*(1e-4 / np.abs(X).mean(axis=0)), 1e-4, 1e-4], m), np.full(len(shares) - 1, 1e-4)]
    )

    def value(vector):
        return weights @ moved(mixture, vector).score_samples(X, y)

    size = start.size
    hessian = np.empty((size, size))
    for i in range(size):
        for k in range(i + 1):
            a, b = np.eye(size)[i] * step[i], np.eye(size)[k] * step[k]
            change = (
                value(start + a + b)
                - value(start + a - b)
                - value(start - a + b)
                + value(start - a - b)
            )
            hessian[i, k] = hessian[k, i] = change / (4 * step[i] * step[k])
    inverse = np.linalg.inv(-hessian)[: m * (d + 2), : m * (d + 2)]
    return inverse.reshape(m, d + 2, m, d + 2)[:, : d + 1, :, : d + 1]


@pytest.mark.parametrize(
    ("options", "outliers"),
    [({}, 0), ({}, 30), ({"noise": "student"}, 0), ({"outliers": False, "n_components": 2}, 0)],
)
def test_the_joint_covariance_is_that_of_second_differences(options, outliers):
    X, y = rows(outliers=outliers)
    mixture = MixedLinearRegression(random_state=0, **options).fit(X, y).mixture_
    assert mixture.n_components == 2
    weights = np.random.default_rng(1).integers(1, 4, y.size).astype(float)
    quick = joint_covariance(mixture, X, y, weights, counts=True)
    slow = slow_covariance(mixture, X, y, weights)
    error = np.sqrt(np.einsum("aiai->ai", slow))
    relative = (quick - slow) / error[:, :, None, None] / error[None, None]
    assert np.abs(relative).max() < 2e-3


def test_far_apart_regimes_are_independent():
    X, y = rows(apart=60.0)
    model = MixedLinearRegression(random_state=0).fit(X, y)
    alone, together = model.compare(), model.compare(X, y)
    assert (alone.joint, together.joint) == (False, True)
    assert together.std_err == pytest.approx(alone.std_err, rel=0.05)
    assert "does not assume it" in alone.note
    assert "all regimes together" in together.note


def test_rows_between_regimes_tie_their_coefficients():
    X, y = rows(apart=2.0)
    model = MixedLinearRegression(2, random_state=0).fit(X, y)
    alone, together = model.compare(), model.compare(X, y)
    assert not np.allclose(together.std_err, alone.std_err, rtol=0.02)
    kept = MixedLinearRegression(2, random_state=0, keep_rows=True).fit(X, y)
    assert kept.compare().std_err == pytest.approx(together.std_err)


def test_given_labels_it_is_welchs_comparison_of_two_regressions():
    X, y = rows(apart=60.0)
    model = MixedLinearRegression(2, search="partition", random_state=0).fit(X, y)
    found = model.compare(X, y)
    assert found.note.startswith("Labels are taken for granted")
    parts = []
    for j in range(2):
        mine = model.labels_ == j
        A = np.column_stack([X[mine], np.ones(mine.sum())])
        theta, left = np.linalg.lstsq(A, y[mine])[:2]
        free = mine.sum() - 3
        parts.append((theta, left[0] / free * np.diag(np.linalg.inv(A.T @ A)), free))
    (a, va, fa), (b, vb, fb) = parts
    error = np.sqrt(va + vb)
    free = (va + vb) ** 2 / (va**2 / fa + vb**2 / fb)
    p = 2 * stats.t.sf(np.abs(b - a) / error, free)
    assert found.difference[0] == pytest.approx(b - a, rel=1e-6)
    assert found.std_err[0] == pytest.approx(error, rel=0.02)
    assert found.p_holm.ravel() == pytest.approx(holm(found.p_value.ravel()))
    assert found.p_value[0] == pytest.approx(p, rel=0.3, abs=1e-12)
    reach = stats.t.ppf(1 - 0.05 / 2 / 3, free) * error
    assert found.upper[0] - found.lower[0] == pytest.approx(2 * reach, rel=0.02)


def test_units_change_nothing_but_the_units():
    X, y = rows()
    first = MixedLinearRegression(2, random_state=0).fit(X, y)
    start = np.column_stack([first.coef_, first.intercept_])
    scale, shift, unit = np.array([1e4, 1e-3]), np.array([7e4, -3.0]), 250.0
    there = np.column_stack(
        [unit * first.coef_ / scale, unit * first.intercept_ - (unit * first.coef_ / scale) @ shift]
    )
    one = MixedLinearRegression(2, random_state=0, init=start).fit(X, y)
    two = MixedLinearRegression(2, random_state=0, init=there).fit(X * scale + shift, unit * y)
    a, b = one.compare(X, y), two.compare(X * scale + shift, unit * y)
    assert b.difference[:, :2] * scale / unit == pytest.approx(a.difference[:, :2], rel=1e-3)
    assert b.std_err[:, :2] * scale / unit == pytest.approx(a.std_err[:, :2], rel=1e-3)
    assert b.t[:, :2] == pytest.approx(a.t[:, :2], rel=1e-2)


@pytest.mark.parametrize("unit", [1e-120, 1e120])
@pytest.mark.parametrize("y_unit", [1e-120, 1.0, 1e120])
def test_squares_of_errors_need_not_be_numbers(unit, y_unit):
    X, y = rows()
    tables = (X, y), (unit * X, y_unit * y)
    fits = [MixedLinearRegression(2, random_state=0).fit(*table) for table in tables]
    for given in (True, False):
        known, found = (
            fit.compare(*(table if given else ())) for fit, table in zip(fits, tables, strict=True)
        )
        assert found.joint == given
        assert found.p_value == pytest.approx(known.p_value, rel=1e-3)
        assert found.lower[:, :2] * (unit / y_unit) == pytest.approx(known.lower[:, :2], rel=1e-3)


def test_whole_weights_are_repetitions_and_importances_have_no_unit():
    X, y = rows()
    weights = np.random.default_rng(2).integers(1, 4, y.size)
    mixture = MixedLinearRegression(2, random_state=0).fit(X, y, weights).mixture_
    again = np.repeat(np.arange(y.size), weights)
    one = mixture.compare(X, y, sample_weight=weights)
    two = mixture.compare(X[again], y[again])
    assert one.std_err == pytest.approx(two.std_err)
    uneven = weights / 7.3
    three, four = (mixture.compare(X, y, sample_weight=f * uneven) for f in (1.0, 3.3))
    assert three.std_err == pytest.approx(four.std_err)


def test_rows_that_came_without_their_importances_are_not_taken_for_those_of_the_fit():
    X, y = rows()
    weights = np.random.default_rng(2).uniform(0.1, 3.0, y.size)
    mixture = MixedLinearRegression(2, random_state=0).fit(X, y, weights).mixture_
    assert mixture.compare(X, y, sample_weight=weights).joint
    found = mixture.compare(X, y)
    assert not found.joint
    assert "came without weights" in found.note
    assert found.std_err == pytest.approx(mixture.compare().std_err)


def most_likely(X, y, coef, intercept):
    """EM for two normal regimes without outliers, by the book, from the truth."""
    A = np.column_stack([X, np.ones(y.size)])
    theta, scale, share = np.column_stack([coef, intercept]), np.full(2, 0.8), np.array([0.6, 0.4])
    for _ in range(150):
        density = share * stats.norm.pdf(y[:, None], A @ theta.T, scale)
        chance = density / density.sum(axis=1, keepdims=True)
        for j in range(2):
            B = A * chance[:, j, None]
            theta[j] = np.linalg.solve(B.T @ A, B.T @ y)
            scale[j] = np.sqrt(chance[:, j] @ (y - A @ theta[j]) ** 2 / chance[:, j].sum())
        share = chance.mean(axis=0)
    gram = [(A * chance[:, j, None]).T @ A for j in range(2)]
    error = np.array([scale[j] * np.sqrt(np.diag(np.linalg.inv(gram[j]))) for j in range(2)])
    inference = Inference(
        standard_error=error[:, :2],
        intercept_error=error[:, 2],
        degrees=chance.sum(axis=0) - 3,
        r_squared=np.full(2, np.nan),
        r_squared_overall=np.nan,
        size=chance.sum(axis=0),
    )
    return mixture_of(
        theta[:, :2],
        intercept=theta[:, 2],
        scale=scale,
        weights=share,
        outlier_share=0.0,
        n_rows=y.size,
        inference=inference,
    )


@pytest.mark.parametrize("apart", [1.5, 6.0])
def test_intervals_hold_together_as_often_as_they_say(apart, base_seed):
    """All differences are inside in 92 to 98 % of the tables; a half or a fifth of rows in doubt.

    Errors that take labels for certain hold less often: in 80 to 90 % of them.
    """
    coef, intercept = np.array([[0.5, 0.02], [0.5 + apart / 6, -0.01]]), np.array([5, -8 - apart])
    truth = np.append(coef[1] - coef[0], intercept[1] - intercept[0])
    tables, held = 100, np.zeros((100, 2))
    for i in range(tables):
        X, y = rows(base_seed + i, apart=apart)
        mixture = most_likely(X, y, coef, intercept)
        for k, found in enumerate((mixture.compare(X, y), mixture.compare())):
            held[i, k] = ((found.lower[0] <= truth) & (truth <= found.upper[0])).all()
    together, alone = held.mean(axis=0)
    error = 4 * np.sqrt(0.95 * 0.05 / tables)
    assert 0.92 - error <= together <= 0.98 + error, base_seed
    assert alone <= together, base_seed


def test_the_table_says_what_differs():
    X, y = rows(apart=6.0)
    model = MixedLinearRegression(random_state=0).fit(X, y)
    found = model.compare(X, y)
    text = str(found)
    assert "Regime 1 less regime 0" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert found.sentences[0].startswith("Regimes 0 and 1 differ most surely in ")
    assert found.sentences[0] in " ".join(text.split())
    records = found.records()
    assert [record["term"] for record in records] == ["x0", "x1", "intercept"]
    assert records[0]["difference"] == found.difference[0, 0]
    assert len(found.frame()) == 3
    # An interval without zero goes with a small p-value, never the other way round.
    outside = (found.lower > 0) | (found.upper < 0)
    assert (found.p_holm[outside] < 0.05).all()


def test_one_regime_has_nothing_to_be_compared_with():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 1))
    model = MixedLinearRegression(random_state=0).fit(X, X[:, 0] + 0.1 * rng.standard_normal(60))
    with pytest.raises(ParameterError, match="there is one regime"):
        model.compare()


def test_of_many_comparisons_the_surest_are_printed():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 18))
    coef = rng.standard_normal((3, 18)) * 3
    y = np.einsum("ij,ij->i", X, coef[rng.integers(0, 3, 900)]) + 0.1 * rng.standard_normal(900)
    found = MixedLinearRegression(3, random_state=0).fit(X, y).compare()
    assert found.t.size == 57
    assert "17 more comparisons with smaller t" in str(found)


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize("outliers", [0, "auto"])
def test_of_clear_labels_errors_together_are_those_of_each_regime(outliers):
    rng = np.random.default_rng(0)
    X, side = rng.standard_normal((60, 5)), 1 - 2 * (np.arange(60) % 2)
    y = side * (10 + X.sum(axis=1)) + 0.5 * rng.standard_normal(60)
    fit = MixedLinearRegression(2, outliers=outliers, random_state=0).fit(X, y)
    each = np.sqrt((fit.mixture_.inference.standard_error**2).sum(axis=0))
    together = {record["term"]: record["std_err"] for record in fit.compare(X, y).records()}
    np.testing.assert_allclose([together[f"x{i}"] for i in range(5)], each, rtol=1e-3)
