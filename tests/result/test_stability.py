"""Stability: clear regimes come back from resampled rows, doubtful ones are called so."""

import signal

import numpy as np
import pytest

from regimix import MixedLinearRegression
from regimix.errors import ParameterError
from regimix.result.stability import BACK, Stability, _interrupts_held, similarities


def two_lines(n=120, noise=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 1))
    y = np.where(rng.random(n) < 0.5, 2 + X[:, 0], -2 - X[:, 0]) + noise * rng.standard_normal(n)
    return X, y


@pytest.fixture(scope="module")
def fitted():
    X, y = two_lines()
    return MixedLinearRegression(random_state=0).fit(X, y).mixture_, X, y


def test_clear_regimes_come_back(fitted):
    mixture, X, y = fitted
    seen = []
    found = mixture.stability(
        X, y, n_resamples=4, random_state=0, progress=lambda *at: seen.append(at)
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert found.counts == {2: 1.0}
    assert found.jaccard.min() > 0.9
    np.testing.assert_array_equal(found.recurrence, 1.0)
    assert not found.doubtful.any()
    # Coefficients are those of the same regime every time, and move by about their error.
    np.testing.assert_allclose(found.coef - mixture.coef, 0, atol=0.15)
    assert 0 < found.coef_deviation.min() <= found.coef_deviation.max() < 0.1


def test_the_answer_depends_on_the_seed_alone(fitted):
    mixture, X, y = fitted
    one = mixture.stability(X, y, n_resamples=3, random_state=5)
    two = mixture.stability(X, y, n_resamples=3, random_state=5, n_jobs=2)
    np.testing.assert_array_equal(one.jaccard, two.jaccard)
    np.testing.assert_array_equal(one.coef, two.coef)
    other = mixture.stability(X, y, n_resamples=3, random_state=6)
    assert not np.array_equal(one.jaccard, other.jaccard)


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_two_lines_forced_on_one_are_doubtful():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 1))
    y = X[:, 0] + 0.5 * rng.standard_normal(80)
    mixture = MixedLinearRegression(2, random_state=0).fit(X, y).mixture_
    found = mixture.stability(X, y, n_resamples=5, random_state=0)
    assert found.doubtful.any()
    assert "doubtful" in repr(found)


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_a_line_that_is_no_regime_is_not_counted_as_one():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.standard_normal(60)
    mixture = MixedLinearRegression(random_state=0).fit(X, y).mixture_
    assert mixture.found_nothing
    found = mixture.stability(X, y, n_resamples=2, random_state=0)
    assert found.n_components.min() == 0
    assert "none in " in found.numbers


def test_rows_are_needed(fitted):
    with pytest.raises(ParameterError, match="does not hold all 120 rows"):
        fitted[0].stability()
    with pytest.raises(ParameterError, match="n_resamples"):
        fitted[0].stability(fitted[1], fitted[2], n_resamples=0)


def test_similarity_is_the_index_of_jaccard():
    first = np.array([0, 0, 0, 1, 1, -1, -1])
    second = np.array([0, 0, 1, 1, 1, 0, -1])
    expected = np.empty((2, 2))
    for i in range(2):
        for j in range(2):
            a, b = set(np.flatnonzero(first == i)), set(np.flatnonzero(second == j))
            expected[i, j] = len(a & b) / len(a | b)
    np.testing.assert_allclose(similarities(first, second), expected)


def test_what_is_said_of_resamples():
    jaccard = np.array([[0.9, 0.1], [0.8, 0.6], [1.0, 0.5]])
    coef = np.where(jaccard > BACK, 1.0, np.nan)[..., None] * np.arange(1, 4)[:, None, None]
    found = Stability(jaccard, np.array([2, 2, 1]), coef, coef[..., 0])
    np.testing.assert_allclose(found.recurrence, [1, 1 / 3])
    np.testing.assert_array_equal(found.doubtful, [False, True])
    assert found.counts == {1: pytest.approx(1 / 3), 2: pytest.approx(2 / 3)}
    assert found.coef_deviation[0, 0] == pytest.approx(1.0)
    assert np.isnan(found.coef_deviation[1, 0])
    assert repr(found).splitlines()[-1] == "  regime 1: back in 33.3%, mean Jaccard 0.40, doubtful"


def test_ctrl_c_waits_while_workers_start(request):
    # A process that was started in the background may ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    def blocked():
        return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())

    waited = []

    def press():
        signal.raise_signal(signal.SIGINT)
        waited.append(blocked())

    with pytest.raises(KeyboardInterrupt), _interrupts_held():
        press()
    assert waited == [True]
    assert not blocked()
