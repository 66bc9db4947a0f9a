"""EM on all rows: it ends near where endless rounds end, and makes no round that does not pay."""

from dataclasses import replace

import numpy as np
import pytest

from regimix import MixedLinearRegression
from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.engines.parts import PassStopped
from regimix.errors import ConvergenceWarning
from regimix.model import polish as module
from regimix.model.blocks import Law, mixture_sums
from regimix.model.numbers import MODEL
from regimix.model.polish import maximised, polish
from regimix.result import fit as fit_module


def table(seed, n=20_000, d=4, m=3, noise=0.1, outliers=0.1):
    rng = np.random.default_rng(seed)
    coef = rng.standard_normal((m, d)) * 2
    label = rng.integers(m, size=n)
    X = rng.standard_normal((n, d))
    y = np.einsum("nd,nd->n", X, coef[label]) + noise * rng.standard_normal(n)
    wrong = rng.random(n) < outliers
    y[wrong] = rng.uniform(-20, 20, np.count_nonzero(wrong))
    problem = Problem.from_arrays(X, y)
    scale = np.full(m, noise / problem.target_scale)
    flat = float(np.log(problem.target_scale / 40))
    law = Law(problem.from_user(coef, np.zeros(m)), scale, np.full(m, 0.9 / m), flat)
    return MemoryEngine(problem), law


def endless(engine, law, rounds=400):
    for _ in range(rounds):
        law = maximised(law, mixture_sums(engine, law), engine.problem.mass)
    return law


def errors(engine, law, found):
    """Distance of coefficients from those of a law, in units of their standard errors."""
    sums = mixture_sums(engine, law).sums
    apart = []
    for j, known in enumerate(sums):
        root = np.linalg.cholesky(known.gram) / law.scale[j]
        apart.append(np.linalg.norm(root.T @ (found.thetas[j] - law.thetas[j])))
    return np.array(apart) / np.sqrt(law.thetas.shape[1])


def moved(engine, law, size, seed=0):
    """Put coefficients so many standard errors off: as a fit to fewer rows is."""
    rng = np.random.default_rng(seed)
    sums = mixture_sums(engine, law).sums
    steps = [
        law.scale[j] * np.linalg.solve(np.linalg.cholesky(known.gram).T, rng.standard_normal(5))
        for j, known in enumerate(sums)
    ]
    return replace(law, thetas=law.thetas + size * np.stack(steps), scale=law.scale * 1.02)


@pytest.mark.parametrize("noise", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_coefficients_end_within_a_part_of_their_errors(noise, seed):
    engine, truth = table(seed, noise=noise)
    end = endless(engine, truth)
    found = polish(engine, moved(engine, end, 5.0, seed)).law
    assert errors(engine, end, found).max() < 0.25


def test_clear_components_take_one_round_and_know_it(monkeypatch):
    engine, truth = table(3, noise=0.02, outliers=0.02)
    end = endless(engine, truth, 30)
    passes = []
    counted = module.mixture_sums

    def counting(*args, **options):
        passes.append(1)
        return counted(*args, **options)

    monkeypatch.setattr(module, "mixture_sums", counting)
    found = polish(engine, moved(engine, end, 3.0))
    assert len(passes) == 1
    assert errors(engine, end, found.law).max() < 0.1


def test_the_likelihood_does_not_fall_whatever_is_leapt(monkeypatch):
    engine, truth = table(4, n=4000, noise=1.5)
    law = moved(engine, truth, 20.0)
    for rounds in range(1, 15):
        monkeypatch.setattr(module, "MODEL", replace(MODEL, rounds=rounds))
        found = polish(engine, law).law
        assert mixture_sums(engine, found).log_gain >= mixture_sums(engine, law).log_gain - 1e-6
    # A leap that goes far too far is taken back.
    bent = module._bent
    monkeypatch.setattr(module, "_bent", lambda point, *rest: bent(point * 1.5, *rest))
    monkeypatch.setattr(module, "MODEL", replace(MODEL, rounds=20))
    found = polish(engine, law).law
    assert mixture_sums(engine, found).log_gain >= mixture_sums(engine, law).log_gain - 1e-6


def test_sums_are_those_at_the_law_that_is_returned():
    engine, truth = table(5)
    found = polish(engine, moved(engine, endless(engine, truth, 50), 2.0))
    again = mixture_sums(engine, found.law, with_doubt=True)
    np.testing.assert_allclose(found.sums.square, again.square, rtol=0.02)
    for mine, fresh in zip(found.sums.sums, again.sums, strict=True):
        np.testing.assert_allclose(mine.gram, fresh.gram, rtol=0.02, atol=0.02 * fresh.gram.max())
    np.testing.assert_allclose(found.sums.shared_doubt, again.shared_doubt, rtol=0.1, atol=20.0)


def test_a_pass_that_is_stopped_leaves_what_was_found(monkeypatch):
    engine, truth = table(6, noise=1.0)
    real, passes = module.mixture_sums, []

    def stopping(*args, **options):
        passes.append(1)
        if len(passes) == 3:
            raise PassStopped("time_limit")
        return real(*args, **options)

    start = moved(engine, truth, 10.0)
    monkeypatch.setattr(module, "mixture_sums", stopping)
    found = polish(engine, start)
    assert found.stopped == "time_limit"
    assert mixture_sums(engine, found.law).log_gain > mixture_sums(engine, start).log_gain


def test_rounds_are_noted_and_tables_too_wide_for_doubt_are_polished_too(monkeypatch):
    engine, truth = table(7, noise=1.0)
    noted = []
    whole = polish(engine, moved(engine, truth, 5.0), note=noted.append)
    assert [begun.step for begun in noted] == list(range(len(noted)))
    for begun in noted:
        # From any of its rounds the rest is the same again.
        again = polish(engine, begun)
        np.testing.assert_array_equal(again.law.thetas, whole.law.thetas)
        np.testing.assert_array_equal(again.sums.square, whole.sums.square)
    monkeypatch.setattr(module, "MODEL", replace(MODEL, largest_sums=1))
    plain = polish(engine, moved(engine, truth, 5.0))
    assert plain.sums is None
    assert errors(engine, whole.law, plain.law).max() < 0.1


def test_rounds_that_run_out_are_told(monkeypatch):
    """Noise as wide as the distance of the regimes: EM needs many rounds."""
    engine, law = table(0, n=2000, d=1, m=2, noise=2.0, outliers=0.0)
    far = replace(law, thetas=law.thetas + 0.3)
    monkeypatch.setattr(module, "MODEL", replace(MODEL, rounds=2))
    assert not polish(engine, far).settled
    monkeypatch.setattr(module, "MODEL", replace(MODEL, rounds=10_000))
    assert polish(engine, far).settled


@pytest.mark.parametrize("outliers", [0, 20])
def test_a_fit_whose_rounds_ran_out_says_so(monkeypatch, outliers):
    """Rounds on all rows; or, where there are no outliers, those that end the search."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 1))
    y = np.where(rng.random(400) < 0.5, X[:, 0], 3 - X[:, 0]) + 0.8 * rng.standard_normal(400)
    y[:outliers] += rng.uniform(20, 40, outliers)
    # The search itself ends where next to nothing is left to gain: there the limit is moved.
    at, limit = (module, {"rounds": 1}) if outliers else (fit_module, {"polish_left": -1.0})
    monkeypatch.setattr(at, "MODEL", replace(MODEL, **limit))
    with pytest.warns(ConvergenceWarning, match="ran out of rounds"):
        fit = MixedLinearRegression(2, random_state=0).fit(X, y)
    assert not fit.mixture_.settled
