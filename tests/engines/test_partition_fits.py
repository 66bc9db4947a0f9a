"""Whole fits of tables in parts are those of memory, and take few passes."""

from dataclasses import replace

import numpy as np
import pytest

from regimix.data.problem import Problem
from regimix.engines import partition as cut
from regimix.engines.memory import MemoryEngine
from regimix.result.fit import fit_mixture
from regimix.search.settings import Settings
from regimix.search.single import find_single
from regimix.synth import make_mlrc
from regimix.trimmed.gradient import solver_maker
from tests.engines.cutting import cut_anywhere, table_in_parts, weights_of

pytestmark = pytest.mark.usefixtures("searched_once")


def regimes(seed, n=3_000, d=3, m=3, *, noise=0.1, corruption=0.1):
    data = make_mlrc(n, d, m, noise=noise, corruption=corruption, random_state=seed)
    return np.asarray(data.X), np.asarray(data.y)


def both_fits(X, y, weights=None, *, n_parts=5, **parameters):
    """Fit in memory and in parts, and compare everything."""
    rng = np.random.default_rng(7)
    read = Settings.read(random_state=1, keep_rows=True, **parameters)
    memory = MemoryEngine(Problem.from_arrays(X, y, weights))
    parts = table_in_parts(cut_anywhere(rng, len(y), n_parts), X, y, weights)
    one, other = fit_mixture(memory, read), fit_mixture(parts, read)
    assert one.n_components == other.n_components
    for name in ("coef", "intercept", "weights", "scale"):
        # The tables here are of size one: what is smaller than that by nine digits is rounding.
        np.testing.assert_allclose(
            getattr(other, name), getattr(one, name), rtol=1e-9, atol=1e-9, err_msg=name
        )
    np.testing.assert_array_equal(one.labels, other.labels)
    for name in ("X", "y", "labels", "numbers"):
        np.testing.assert_array_equal(getattr(one.excerpt, name), getattr(other.excerpt, name))
    if weights is not None:
        np.testing.assert_allclose(one.excerpt.weights, other.excerpt.weights, rtol=1e-12)
    assert one.excerpt.complete == other.excerpt.complete
    errors = (fit.inference.standard_error for fit in (one, other))
    np.testing.assert_allclose(*errors, rtol=1e-6)
    assert one.evidence == pytest.approx(other.evidence, nan_ok=True)
    return one, parts


@pytest.mark.parametrize("weighting", [None, "whole", "real"])
@pytest.mark.parametrize("parameters", [{}, {"outliers": 0.2}], ids=["default", "trimmed"])
def test_a_fit_in_parts_is_the_fit_in_memory(weighting, parameters):
    X, y = regimes(3)
    weights = weights_of(np.random.default_rng(1), len(y), weighting)
    fit, _ = both_fits(X, y, weights, **parameters)
    assert fit.n_components >= 2


@pytest.mark.parametrize("weighting", [None, "real"])
def test_a_plain_fit_in_parts_is_that_in_memory(weighting):
    X, y = regimes(3, n=900, d=2, m=2)
    weights = weights_of(np.random.default_rng(1), len(y), weighting)
    both_fits(X, y, weights, n_components=2, search="partition")


@pytest.mark.parametrize("weighting", [None, "real"])
def test_a_fit_without_noise_is_exact_in_parts_too(weighting):
    X, y = regimes(4, noise=0.0)
    weights = weights_of(np.random.default_rng(1), len(y), weighting)
    fit, _ = both_fits(X, y, weights)
    assert fit.scale.max() < 1e-6
    # A few outliers of large weight are not many rows on one plane.
    assert fit.n_components == 3


def test_residuals_of_rounding_alone_are_too_many_to_be_handed_over(monkeypatch):
    """Without noise, most residuals lie within the floor and no two of them are equal."""
    monkeypatch.setattr(cut, "MOST_CANDIDATES", 8)
    monkeypatch.setattr(cut, "FEWEST_CANDIDATES", 4)
    X, y = regimes(4, n=1_500, m=2, noise=0.0)
    fit, parts = both_fits(X, y)
    assert fit.scale.max() < 1e-6
    assert parts.parts.n_passes < 80


def test_the_net_is_the_same_in_parts():
    X, y = regimes(5, n=600, d=2, m=2, noise=0.0)
    both_fits(X, y, search="net", n_components=2, max_starts=12)


def test_repeated_rows_make_the_same_fit():
    rng = np.random.default_rng(6)
    X = rng.integers(0, 6, (4_000, 2)).astype(float)
    y = np.where(rng.random(4_000) < 0.5, X @ [1.0, 2.0], X @ [-2.0, 1.0] + 3)
    y += rng.integers(-1, 2, 4_000) / 10
    both_fits(X, y, outliers=0.1)
    both_fits(X, y)


@pytest.mark.parametrize("share", [None, 0.7])
@pytest.mark.parametrize("solver", ["exact", "gradient", "cg"])
def test_the_best_single_component_is_that_of_memory(solver, share):
    X, y = regimes(6, n=8_000, m=1, corruption=0.3)
    rng = np.random.default_rng(2)
    weights = None if solver == "gradient" else rng.integers(0, 3, len(y)).astype(float)
    memory = MemoryEngine(Problem.from_arrays(X, y, weights))
    parts = table_in_parts(cut_anywhere(rng, len(y), 5), X, y, weights)
    mass = None if share is None else np.floor(share * memory.problem.mass)
    one, other = (
        find_single(
            engine,
            mass,
            given=None,
            n_starts=8,
            seed=3,
            max_iter=300,
            tol=0.0,
            make_solver=solver_maker(solver),
        )
        for engine in (memory, parts)
    )
    np.testing.assert_allclose(one.run.theta, other.run.theta, rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(one.follower.kept(0)[0], other.follower.kept(0)[0])
    assert one.run.n_iter == other.run.n_iter
    assert one.evidence == other.evidence or one.evidence == pytest.approx(other.evidence)


# --- counted work ---------------------------------------------------------------------------------


def test_a_default_fit_of_an_easy_table_makes_few_passes():
    """Two at the door, one draw, EM until it gains nothing, errors, labels."""
    X, y = regimes(9, n=60_000, d=4, m=3)
    rng = np.random.default_rng(0)
    parts = table_in_parts(cut_anywhere(rng, len(y), 6), X, y)
    assert parts.parts.n_passes == 2
    fit = fit_mixture(parts, Settings.read(random_state=0))
    assert fit.n_components == 3
    # 1 draw, at most 10 rounds of EM (a few here), 1 for errors, 1 for labels.
    assert parts.parts.n_passes - 2 <= 8


def test_no_fit_hands_over_more_than_the_bounded_draw(monkeypatch):
    X, y = regimes(9, n=60_000, d=4, m=3)
    parts = table_in_parts([0, 20_000, 60_000], X, y)
    sizes = []
    fold = parts.parts.fold

    def counted(*args):
        found = fold(*args)
        sizes.append(numbers_in(found))
        return found

    monkeypatch.setattr(parts.parts, "fold", counted)
    fit_mixture(parts, Settings.read(random_state=0, keep_rows=True))
    limit = 250_000 // 8  # the excerpt: the largest draw a fit of four features asks for
    row = 4 + 1 + 1 + 4  # features, response, weight, and what names the row
    assert max(sizes) <= 1.2 * limit * row
    assert sorted(sizes)[-2] <= 3 * 2 * 5 * 6 + 100  # sums, and their doubt, of three components


def numbers_in(found):
    """Count the numbers in what a pass returns."""
    if isinstance(found, np.ndarray):
        return found.size
    if isinstance(found, (list, tuple)):
        return sum(numbers_in(item) for item in found)
    if hasattr(found, "__dataclass_fields__"):
        return sum(numbers_in(value) for value in vars(found).values())
    return 1


def test_a_fit_changes_nothing_that_it_is_given():
    X, y = regimes(9, n=2_000)
    weights = np.full(len(y), 0.5)
    copies = X.copy(), y.copy(), weights.copy()
    engine = table_in_parts([0, 700, 2_000], X, y, weights)
    fit_mixture(engine, replace(Settings.read(random_state=0), outliers=0.2))
    for now, before in zip((X, y, weights), copies, strict=True):
        np.testing.assert_array_equal(now, before)


# --- ends that come too soon ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole():
    return fit_mixture(table_in_parts([0, 1000, 3000], *regimes(4)), Settings.read(random_state=0))


def stopped_after(engine, passes):
    """Let a user stop the passes over a table, after so many more."""
    begun = engine.parts.n_passes
    engine.parts.watch = lambda done, total: engine.parts.n_passes - begun >= passes


@pytest.mark.parametrize(
    "parameters",
    [{"outliers": 0.1}, {"search": "partition"}, {"search": "net", "tolerance": 0.5}],
    ids=str,
)
@pytest.mark.parametrize("passes", [2, 3])
def test_whoever_stops_a_pass_has_the_best_so_far(parameters, passes, whole):
    X, y = regimes(4)
    engine = table_in_parts([0, 1000, 3000], X, y)
    options = {"n_components": 3, **parameters}
    stopped_after(engine, passes)
    fit = fit_mixture(engine, Settings.read(random_state=0, **options))
    assert fit.stopped == "callback"
    assert fit.labels.size == len(y)
    if parameters.get("search") != "net":
        assert fit.n_components == whole.n_components == 3


def test_a_time_limit_within_the_last_passes_leaves_what_was_found():
    X, y = regimes(5)
    engine = table_in_parts([0, 1500, 3000], X, y)
    engine.draw(50_000, 0)  # the search needs no pass any more
    engine.parts.deadline = 0.0
    fit = fit_mixture(engine, Settings.read(random_state=0, outliers=0.1))
    assert fit.stopped == "time_limit"
    assert fit.inference is None
    assert fit.n_components == 3


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e305])
def test_the_unit_of_weights_does_not_matter(unit):
    X, y = regimes(6)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    both_fits(X, y, weights * unit)
