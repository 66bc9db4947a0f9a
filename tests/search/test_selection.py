"""The selection path: every number of components that was looked at, and its criteria."""

import numpy as np
import pytest

from regimix import MixedLinearRegression
from regimix.datasets import load_tone
from regimix.model.em import REGIME_GAIN
from regimix.synth import make_mlrc


def three_regimes(seed, n=700):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    coef = np.array([[4.0, 0, 0, 0], [0, 4.0, 0, 0], [0, 0, 4.0, 0]])
    labels = rng.integers(0, 3, n)
    y = (X * coef[labels]).sum(axis=1) + 0.2 * rng.standard_normal(n)
    wrong = rng.random(n) < 0.05
    y[wrong] += 25 * rng.standard_normal(wrong.sum())
    return X, y


@pytest.mark.parametrize("seed", range(3))
def test_the_path_runs_from_one_past_the_choice_and_peaks_there(seed):
    path = MixedLinearRegression(random_state=seed).fit(*three_regimes(seed)).mixture_.selection
    assert path.chosen == 3
    assert path.n_components.tolist()[:4] == [1, 2, 3, 4]
    assert (np.diff(path.n_components) > 0).all()
    chosen = path.n_components.tolist().index(3)
    assert np.argmax(path.evidence) == chosen
    assert np.argmin(path.bic) == chosen
    assert np.argmin(path.icl) == chosen
    assert (path.icl >= path.bic).all()


def test_bic_is_that_of_the_likelihood_by_hand():
    """One regime, no outliers: the background hardly matters, and least squares says it all."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 2))
    y = X @ [2.0, -1.0] + 1 + 0.3 * rng.standard_normal(500)
    mixture = MixedLinearRegression(random_state=0).fit(X, y).mixture_
    path = mixture.selection
    assert path.chosen == 1
    # The path is in the search's own units of the response: its differences mean something.
    bic = {int(k): float(v) for k, v in zip(path.n_components, path.bic, strict=True)}
    assert bic[2] - bic[1] == pytest.approx(5 * np.log(500), abs=25)
    assert bic[2] > bic[1]


def test_a_given_number_is_not_chosen_from_a_path():
    data = make_mlrc(600, 3, 2, random_state=0)
    mixture = MixedLinearRegression(n_components=2, random_state=0).fit(data.X, data.y).mixture_
    assert mixture.selection is not None
    assert mixture.selection.chosen == mixture.n_components
    assert mixture.n_components in mixture.selection.n_components


def test_as_dict_is_ready_for_a_data_frame():
    tone = load_tone()
    path = MixedLinearRegression(random_state=0).fit(tone.X, tone.y).mixture_.selection
    columns = path.as_dict()
    assert set(columns) == {"n_components", "evidence", "bic", "icl"}
    assert len({len(column) for column in columns.values()}) == 1


def test_algorithm_2_knows_no_path():
    data = make_mlrc(400, 2, 1, random_state=0)
    fit = MixedLinearRegression(search="net", random_state=0).fit(data.X, data.y)
    assert fit.mixture_.selection is None


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("n", "d"), [(24, 1), (40, 3)])
def test_a_free_choice_is_no_less_likely_than_two_that_are_asked_for(n, d, seed):
    """What is an outlier beside one line may be a line of its own, and then there is no outlier."""
    rng = np.random.default_rng([seed, n, d])
    X = rng.standard_normal((n, d))
    lines = np.column_stack([np.ones(n), X]) @ rng.standard_normal((2, d + 1)).T
    lines *= 10 / np.sqrt(np.mean((lines[:, 0] - lines[:, 1]) ** 2))
    second = (rng.random(n) < 0.3).astype(int)
    y = lines[np.arange(n), second] + rng.standard_normal(n)
    free, two = (MixedLinearRegression(k, random_state=seed).fit(X, y) for k in ("auto", 2))
    assert free.evidence_ > two.evidence_ - REGIME_GAIN
