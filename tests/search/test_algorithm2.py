"""Algorithm 2: what is accepted, what is removed, when it stops, and that jobs do not matter."""

from types import SimpleNamespace

import numpy as np
import pytest

from regimix import global_ilts
from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.engines.selection import Choice
from regimix.errors import ParameterError
from regimix.model.labelling import Taken
from regimix.search import algorithm2 as module
from regimix.search.algorithm2 import Peeling
from regimix.search.net import net_source
from regimix.search.single import Starts
from regimix.synth import make_mlrc
from regimix.trimmed.gradient import GradientSolver
from regimix.trimmed.ilts import concentrate, kept_mass

EXACT = 1e-5


def peel(*args, **options):
    return Peeling(*args, **options).run()


class Given:
    """Starts in the order in which they are given, whatever the seed."""

    def __init__(self, thetas):
        self.thetas = np.atleast_2d(np.asarray(thetas, float))
        self.seeds = []

    @property
    def size(self):
        return len(self.thetas)

    def draw(self, seed, first, count):
        part = self.thetas[first : first + count]
        self.seeds.append(seed)
        return Starts(part, ("given",) * len(part))


def mixture(seed, m=2, d=20, f=20, *, fit_intercept=False, weights=None, **options):
    X, y, truth = make_mlrc(d * m * f, d, m, random_state=seed, norms=1.0, **options)
    engine = MemoryEngine(Problem.from_arrays(X, y, weights, fit_intercept=fit_intercept))
    return engine, truth


def errors(engine, truth, found):
    """Distance of each true component from the nearest one found."""
    if not found.accepted:
        return np.full(len(truth.coef), np.inf)
    coef, intercept = engine.problem.to_user(np.stack([a.theta for a in found.accepted]))
    ours = np.column_stack([intercept, coef])
    true = np.column_stack([truth.intercept, truth.coef])
    return np.array([np.linalg.norm(ours - t, axis=1).min() for t in true])


def labels_of(engine, found):
    """The component that took each row, -1 for the rows that are left."""
    return engine.map_rows(Taken(tuple(accepted.near for accepted in found.accepted)))


def lines(counts, slopes=(1.0, -1.0, 3.0)):
    """Rows on lines through the origin, so many on each, in standardised units."""
    x = np.concatenate([1.0 + np.arange(count) / count for count in counts])
    label = np.repeat(np.arange(len(counts)), counts)
    y = x * np.asarray(slopes)[label]
    return MemoryEngine(Problem.from_standardised(x[:, None], y)), label


def test_single_starts_of_two_clean_components_nearly_always_arrive():
    arrived = []
    for seed in range(6):
        engine, truth = mixture(seed)
        thetas = net_source(engine, 2, subspace="svd", seed=seed).draw(seed, 0, 16).thetas
        runs, _ = concentrate(engine, thetas, kept_mass(0.45, engine.problem))
        coef, _ = engine.problem.to_user(np.stack([run.theta for run in runs]))
        arrived += [np.linalg.norm(truth.coef - c, axis=1).min() < EXACT for c in coef]
    assert np.mean(arrived) > 0.85


@pytest.mark.parametrize("corruption", [0.0, 0.1])
@pytest.mark.parametrize(("m", "tau"), [(2, 0.42), (3, 0.28)])
def test_all_components_of_easy_mixtures_are_found(m, tau, corruption):
    for seed in range(2):
        engine, truth = mixture(seed, m, corruption_ratio=corruption)
        found = peel(engine, net_source(engine, m, seed=seed), tolerance=1e-4, taus=[tau] * m)
        assert found.stopped == "all found"
        assert errors(engine, truth, found).max() < EXACT
        # Exact rows fit exactly: the rows removed are those of the components.
        np.testing.assert_array_equal(labels_of(engine, found) == -1, truth.corrupted)
        np.testing.assert_allclose(sum(a.share for a in found.accepted), 1 - truth.corrupted.mean())


def test_nothing_given_but_the_tolerance():
    for seed in range(2):
        engine, truth = mixture(seed, 2, 6, 60, corruption_ratio=0.2)
        found = peel(engine, net_source(engine, 2, seed=seed), tolerance=1e-4, seed=seed)
        assert len(found.accepted) == 2
        assert found.stopped == "none accepted"
        assert errors(engine, truth, found).max() < EXACT
        # The footnote to Algorithm 2: the share is found within a factor c.
        for accepted in found.accepted:
            assert module.SHARE_RATIO * accepted.share <= accepted.tau <= accepted.share


def test_intercepts_of_their_own():
    engine, truth = mixture(1, 2, 5, 60, fit_intercept=True, intercepts=[-1.0, 1.0])
    found = peel(engine, net_source(engine, 2), tolerance=1e-4, n_components=2)
    assert found.stopped == "all found"
    assert errors(engine, truth, found).max() < EXACT


def test_the_share_asked_for_is_of_the_original_rows():
    engine, label = lines([60, 40])
    # 40 of 100 rows are needed both times; of the 40 rows left, 0.4 would be 16.
    found = peel(engine, Given([[1.1], [-1.1]]), tolerance=1e-6, taus=[0.4, 0.4])
    assert found.stopped == "all found"
    np.testing.assert_array_equal(labels_of(engine, found), label)
    assert [a.share for a in found.accepted] == [0.6, 0.4]
    found = peel(engine, Given([[1.1], [-1.1]]), tolerance=1e-6, taus=[0.4, 0.41])
    assert found.stopped == "none accepted"
    assert [r.component for r in found.rejected] == [1]
    assert found.rejected[0].reason == "only 40 rows are left"
    np.testing.assert_array_equal(labels_of(engine, found) == -1, label == 1)


def test_the_floor_of_the_share_is_needed_not_one_row_more():
    engine, _ = lines([61, 40])
    start = Given([[1.0]])
    assert peel(engine, start, tolerance=1e-6, taus=[61.9 / 101]).stopped == "all found"
    assert peel(engine, start, tolerance=1e-6, taus=[62.1 / 101]).stopped == "none accepted"


def test_the_tolerance_is_strict():
    x = np.ones((10, 1))
    y = np.where(np.arange(10) < 9, 0.0, 1.0)
    y[:2] = [0.5, -0.5]  # nine rows of mean zero, the two farthest at a distance of one half
    engine = MemoryEngine(Problem.from_standardised(x, y))
    at = peel(engine, Given([[0.0]]), tolerance=0.5, taus=[0.9])
    assert not at.accepted
    assert at.rejected[0].nearest == 0.5
    assert at.rejected[0].needed == 9
    above = peel(engine, Given([[0.0]]), tolerance=np.nextafter(0.5, 1), taus=[0.9])
    assert labels_of(engine, above).tolist() == [0] * 9 + [-1]
    inside = peel(engine, Given([[0.0]]), tolerance=0.5, taus=[0.7])
    assert labels_of(engine, inside).tolist() == [-1] * 2 + [0] * 7 + [-1]


def test_a_component_without_an_accepted_start_removes_nothing_and_is_reported():
    engine, label = lines([50, 30, 20])
    found = peel(
        engine, Given([[1.1], [-1.2], [2.9]]), tolerance=1e-6, taus=[0.55, 0.45, 0.28, 0.15]
    )
    assert [r.component for r in found.rejected] == [0]
    first = found.rejected[0]
    assert first.n_tried == 3
    assert first.needed == 55
    assert 1e-6 < first.nearest < np.inf
    assert first.reason == "every start was tried"
    assert found.stopped == "none accepted"
    np.testing.assert_array_equal(labels_of(engine, found), label)


def test_the_first_start_in_order_is_taken():
    engine, label = lines([50, 50])
    found = peel(engine, Given([[9.0], [-1.1], [1.1]]), tolerance=1e-6, taus=[0.5])
    taken = found.accepted[0]
    assert taken.source == "given"
    component = label[labels_of(engine, found) == 0]
    assert component.min() == component.max()
    assert taken.start + 1 == found.n_starts


@pytest.mark.parametrize("max_starts", [20, 3])
def test_the_answer_does_not_depend_on_jobs(max_starts):
    engine, _ = mixture(3, 3, 6, 20, corruption_ratio=0.3)
    source = net_source(engine, 3)
    seen = []
    runs = [
        peel(
            engine,
            source,
            tolerance=1e-4,
            n_jobs=jobs,
            max_starts=max_starts,
            seed=5,
            callback=lambda _, n_tried: seen.append(n_tried),
        )
        for jobs in (1, 2, 3)
    ]
    one = runs[0]
    for other in runs[1:]:
        assert other.rejected == one.rejected
        assert (other.stopped, other.n_starts) == (one.stopped, one.n_starts)
        for a, b in zip(one.accepted, other.accepted, strict=True):
            np.testing.assert_array_equal(a.theta, b.theta)
            assert (a.start, a.tau, a.share) == (b.start, b.tau, b.share)
        np.testing.assert_array_equal(labels_of(engine, one), labels_of(engine, other))
    assert len(seen) % 3 == 0


def test_every_search_has_an_order_of_its_own_that_the_seed_decides():
    engine, _ = lines([50, 30, 20])
    orders = []
    for seed in (1, 1, 2):
        starts = Given([[9.0]])
        peel(engine, starts, tolerance=1e-9, taus=[0.9, 0.9, 0.8], seed=seed)
        assert len(set(starts.seeds)) == 3
        orders.append(starts.seeds)
    assert orders[0] == orders[1]
    assert not set(orders[0]) & set(orders[2])


def test_other_solvers_do_too():
    engine, truth = mixture(0, 2, 5, 60)

    def make_solver(problem, n_starts, mass):
        return GradientSolver(problem, n_starts, mass, inner="cg")

    source = net_source(engine, 2)
    found = peel(engine, source, tolerance=1e-4, taus=[0.4, 0.4], make_solver=make_solver)
    assert found.stopped == "all found"
    assert errors(engine, truth, found).max() < 1e-3


def test_weights_are_copies():
    rng = np.random.default_rng(0)
    X, y, _ = make_mlrc(200, 3, 2, norms=1.0, corruption=0.1, random_state=0)
    times = rng.integers(0, 4, 200)
    short = MemoryEngine(Problem.from_arrays(X, y, times, fit_intercept=False))
    long_X, long_y = np.repeat(X, times, axis=0), np.repeat(y, times)
    long = MemoryEngine(Problem.from_arrays(long_X, long_y, fit_intercept=False))
    starts = Given(rng.standard_normal((20, 3)) / 2)
    a = peel(short, starts, tolerance=1e-5, taus=[0.35, 0.35])
    b = peel(long, starts, tolerance=1e-5, taus=[0.35, 0.35])
    assert a.stopped == b.stopped == "all found"
    for one, other in zip(a.accepted, b.accepted, strict=True):
        np.testing.assert_allclose(one.theta, other.theta, rtol=1e-9)
        np.testing.assert_allclose(one.share, other.share)
    labels = labels_of(short, a)
    np.testing.assert_array_equal(np.repeat(labels, times), labels_of(long, b))
    assert (labels[times == 0] == -1).all()


def test_max_starts_is_reported():
    engine, _ = lines([50, 30, 20])
    found = peel(engine, Given([[1.1]] * 40), tolerance=1e-9, taus=[0.7], max_starts=12)
    assert found.stopped == "max_starts"
    assert found.n_starts == found.rejected[0].n_tried == 12
    assert found.rejected[0].reason == "max_starts: 12 of 40 starts were tried"


def test_time_is_looked_at_after_every_round_of_every_start(monkeypatch):
    """A batch of starts may take minutes; what was accepted before is kept."""
    engine, label = lines([50, 30, 20])
    rounds, clock, takes = [], [0.0], module.ExactSolver.take
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    class Slow(Given):
        def draw(self, seed, first, count):
            clock[0] += 1.0
            return super().draw(seed, first, count)

    def take(solver, *given):
        rounds.append(clock[0])
        return takes(solver, *given)

    monkeypatch.setattr(module.ExactSolver, "take", take)
    options = {"tolerance": 1e-6, "taus": [0.5, 0.4, 0.1], "time_limit": 1.5}
    found = peel(engine, Slow([[1.1]] * 40), **options)
    assert found.stopped == "time_limit"
    np.testing.assert_array_equal(labels_of(engine, found) == -1, label != 0)
    assert rounds.count(1.0) > module.BATCH
    assert rounds.count(2.0) == 1
    assert found.rejected[0].reason == "time_limit: 0 of 40 starts were tried"


def test_a_true_answer_of_the_callback_stops():
    engine, label = lines([50, 30, 20])
    states = []

    def callback(found, n_tried):
        states.append((len(found.accepted), n_tried))
        return len(states) == 2

    options = {"tolerance": 1e-6, "taus": [0.5, 0.4, 0.1], "callback": callback}
    found = peel(engine, Given([[1.1]] * 40), **options)
    assert found.stopped == "callback"
    assert states == [(1, 8), (1, 16)]
    np.testing.assert_array_equal(labels_of(engine, found) == -1, label != 0)
    assert found.n_starts == 17


def test_an_interrupt_keeps_what_was_found():
    engine, _ = lines([50, 30, 20])

    def interrupt(found, _):
        if found.accepted:
            raise KeyboardInterrupt

    found = peel(engine, Given([[1.1]] * 40), tolerance=1e-9, taus=[0.5, 0.4], callback=interrupt)
    assert found.stopped == "interrupted"
    assert len(found.accepted) == 1


def test_the_table_is_never_copied():
    engine, _ = mixture(0, 2, 5, 60)
    first = Choice(np.arange(engine.problem.n_rows) < 10, 0.0)
    taken = engine.without(first)
    assert taken.problem.X is engine.problem.X
    assert taken.problem.y is engine.problem.y
    assert taken.problem.mass == engine.problem.mass - 10
    assert taken.problem.center is engine.problem.center


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 0.0}, "tolerance must be a positive number; got 0.0"),
        ({"max_starts": 0}, "max_starts must be None or a whole number from 1; got 0"),
        ({"n_components": 0}, 'n_components must be "auto" or a whole number from 1; got 0'),
        ({"shares": [0.5, 0.2], "n_components": 3}, "one for each of the 3 components"),
        ({"shares": [0.5, 1.2]}, "one number above 0 and at most 1 for each component"),
    ],
)
def test_wrong_settings_are_refused(options, message):
    X, y, _ = make_mlrc(50, 2, 2, random_state=0)
    with pytest.raises(ParameterError, match=message):
        global_ilts(X, y, search="net", **options)


def test_a_net_too_large_to_walk_is_refused():
    engine, _ = mixture(0, 2, 20, 20)
    with pytest.raises(ParameterError, match="granularity of"):
        net_source(engine, 12, granularity=0.05)


@pytest.mark.parametrize("chunk_rows", [-1, 0, 1.5, True])
def test_chunks_have_rows(chunk_rows):
    X = np.arange(20.0)[:, None]
    with pytest.raises(ParameterError, match="chunk_rows must be a whole number from 1"):
        global_ilts(X, X[:, 0], chunk_rows=chunk_rows)
