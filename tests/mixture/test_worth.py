"""What components are worth, and whether the features are needed at all."""

import numpy as np
import pytest

from regimix import MixedLinearRegression
from regimix.errors import EvidenceWarning
from regimix.synth import make_mlrc

# Responses that know nothing of the features, and look nothing like a bell.
LAWS = {
    "exponential": lambda rng, n: rng.exponential(size=n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "two bumps": lambda rng, n: rng.choice([-3.0, 3.0], n) + rng.standard_normal(n),
    "counts": lambda rng, n: rng.poisson(1.0, n).astype(float),
    "rounded": lambda rng, n: np.round(rng.standard_normal(n)),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "constant": lambda rng, n: np.full(n, 3.0),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seed", range(3))
def test_the_law_of_the_response_alone_is_no_relation(law, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 3))
    with pytest.warns(EvidenceWarning, match="no evidence"):
        fit = MixedLinearRegression(random_state=0).fit(X, LAWS[law](rng, 300))
    assert fit.n_components_ == 1
    assert fit.evidence_ <= 0


def test_regimes_that_need_the_features_stay_though_the_response_has_bumps():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 1))
    high = rng.random(400) < 0.4
    y = np.where(high, 10 + X[:, 0], 0.5 * X[:, 0]) + 0.3 * rng.standard_normal(400)
    fit = MixedLinearRegression(random_state=0).fit(X, y)
    assert fit.n_components_ == 2
    assert fit.evidence_ > 0


@pytest.mark.parametrize("m", [1, 2, 3])
def test_a_component_is_worth_what_the_model_loses_without_it(m):
    X, y, _ = make_mlrc(400, 3, m, noise=0.3, random_state=1)
    mixture = MixedLinearRegression(random_state=0).fit(X, y).mixture_
    worth = mixture.component_evidence
    assert (worth > 0).all()
    assert (worth <= mixture.evidence + 1e-9).all()
    if m == 1:
        assert worth[0] == pytest.approx(mixture.evidence)


def test_a_keep_fraction_that_is_too_generous_still_tells_outliers():
    """Gross errors that had to be kept must not make the background vanish."""
    X, y, _ = make_mlrc(600, 3, 3, noise=0.1, corruption=0.06, random_state=5)
    fit = MixedLinearRegression(keep=0.95, random_state=0).fit(X, y)
    assert np.mean(fit.assign(X, y) != fit.labels_) < 0.05
    assert 0.04 < fit.flag(X, y).mean() < 0.1


@pytest.mark.parametrize("keep", [0.9, 0.8, 0.7])
def test_new_labels_are_those_of_the_fit(keep):
    X, y, _ = make_mlrc(600, 3, 3, noise=0.1, corruption=0.06, random_state=5)
    fit = MixedLinearRegression(keep=keep, random_state=0).fit(X, y)
    assert np.mean(fit.assign(X, y) != fit.labels_) < 0.02
    assert np.mean(fit.assign(X, y) == -1) == pytest.approx(1 - keep, abs=0.01)
