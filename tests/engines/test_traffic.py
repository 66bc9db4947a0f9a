"""What goes between the driver and a cluster, counted at its sockets: sums, and one bounded draw.

The cluster runs in processes of its own, so that every byte that this process sends or receives is
the driver's. The same numbers stand in docs/scale.rst.
"""

import dask
import dask.array as da
import numpy as np
import pytest
from tornado.iostream import IOStream

from regimix.data.problem import STANDARDISE_ROWS
from regimix.engines import dask as dask_engine
from regimix.engines.dask import dask_rows
from regimix.engines.partition import BINS, MOST_CANDIDATES, UNEVEN, open_parts
from regimix.engines.selection import residual_sizes
from regimix.model.blocks import Law, mixture_sums
from regimix.result.fit import SEARCH_ROWS, fit_mixture
from regimix.search.settings import Settings
from tests.engines.clusters import far_cluster

NUMBER = 8
# What Dask says of each pass and of each task, whatever the task: measured, with room.
PASS_IN, PART_IN = 800, 230
PASS_OUT, PART_OUT = 2_000, 700
# What else Dask says in a pass.
TALK = 5_000
# Seconds: longer than any test. What is said at regular intervals grows with the time that a
# machine takes, and is nobody's traffic: the client's heartbeats, and looks at the workers.
NEVER = 3_600


class Meter:
    """Counts the bytes that go through the sockets of this process."""

    def __init__(self):
        self.received = self.sent = 0

    def __enter__(self):
        self._patch = pytest.MonkeyPatch()
        read, write = IOStream.read_from_fd, IOStream.write_to_fd

        def counted_read(stream, buffer):
            count = read(stream, buffer)
            self.received += count or 0
            return count

        def counted_write(stream, data):
            count = write(stream, data)
            self.sent += count or 0
            return count

        self._patch.setattr(IOStream, "read_from_fd", counted_read)
        self._patch.setattr(IOStream, "write_to_fd", counted_write)
        return self

    def __exit__(self, *error):
        self._patch.undo()


def made_block(n_rows, n_features, block_info=None):
    """Rows of two regimes; workers make them, nobody sends them."""
    rng = np.random.default_rng([7, block_info[None]["chunk-location"][0]])
    X = rng.standard_normal((n_rows, n_features))
    coef = np.random.default_rng(1).standard_normal((2, n_features))
    y = (X * coef[rng.integers(0, 2, n_rows)]).sum(axis=1) + 0.1 * rng.standard_normal(n_rows)
    return np.column_stack([X, y])


def made_table(n_rows, n_features, n_parts):
    rows = n_rows // n_parts
    chunks = ((rows,) * n_parts, (n_features + 1,))
    both = da.map_blocks(made_block, rows, n_features, chunks=chunks, dtype=float)
    return both[:, :n_features], both[:, n_features]


@pytest.fixture(scope="module", autouse=True)
def client():
    intervals = ("heartbeat", "scheduler-info-interval")
    quiet = {f"distributed.client.{name}": f"{NEVER}s" for name in intervals}
    with pytest.MonkeyPatch.context() as patch, dask.config.set(quiet), far_cluster() as client:
        patch.setattr(dask_engine, "LOOK", NEVER)
        yield client


# --- the cost model -------------------------------------------------------------------------------


def round_received(p, n_components, n_parts):
    """A round of EM: a Gram matrix, its doubt, a moment, a size and a square for each component."""
    return NUMBER * n_components * (2 * p**2 + p + 2) + PASS_IN + PART_IN * n_parts


def round_sent(p, n_components, n_parts):
    """The coefficients, the units of the columns, and a task for each part."""
    return NUMBER * (n_components * p + 3 * p) + PASS_OUT + PART_OUT * n_parts


def door_received(d, n_parts):
    """Two passes: extents of each part, and some rows with response and weight."""
    extents = 2 * NUMBER * (d + 1) * n_parts
    return extents + NUMBER * STANDARDISE_ROWS * (d + 2) + 2 * (PASS_IN + PART_IN * n_parts)


def draw_received(d):
    """Rows with response and weight, and four numbers that say which rows they are."""
    rows = SEARCH_ROWS + 8 * SEARCH_ROWS**0.5
    return NUMBER * rows * (d + 6)


def cut_received(n_parts):
    """The most that a pass of a selection hands over: values, row numbers, weights; and bins."""
    handed = 3 * NUMBER * UNEVEN * MOST_CANDIDATES
    return handed + NUMBER * BINS + PASS_IN + (PART_IN + 8 * NUMBER) * n_parts


@pytest.mark.parametrize(("d", "n_components", "n_parts"), [(3, 2, 32), (40, 5, 4), (40, 2, 16)])
def test_a_round_costs_what_the_model_says(d, n_components, n_parts):
    law = Law(
        np.zeros((n_components, d + 1)), np.ones(n_components), np.full(n_components, 0.1), -3
    )
    with dask_rows(*made_table(32 * 150, d, n_parts)) as (names, parts):
        engine = open_parts(parts, names)
        mixture_sums(engine, law, with_doubt=True)
        rounds = 3
        with Meter() as meter:
            for _ in range(rounds):
                mixture_sums(engine, law, with_doubt=True)
        received, sent = meter.received / rounds, meter.sent / rounds
    # Dask puts small messages together where it has no time to send them one by one: what it adds
    # may be less than the model says, and what is ours may not.
    p = d + 1
    own = NUMBER * n_components * (2 * p**2 + p)
    assert own < received <= 1.2 * round_received(p, n_components, n_parts) + TALK
    own = NUMBER * n_components * p
    assert own < sent <= 1.2 * round_sent(p, n_components, n_parts) + TALK


@pytest.fixture(scope="module")
def fits(client):
    """A default fit of a table and of one four times as long: what was received and sent."""
    d, n_parts, counted = 10, 8, {}
    for n_rows in (200_000, 800_000):
        with Meter() as meter, dask_rows(*made_table(n_rows, d, n_parts)) as (names, parts):
            engine = open_parts(parts, names)
            fit = fit_mixture(engine, Settings.read(random_state=0))
            assert fit.n_components == 2
            counted[n_rows] = meter.received, meter.sent, parts.n_passes
    return counted


def test_a_fit_receives_a_bounded_draw_and_sums(fits):
    d, n_parts = 10, 8
    for received, sent, n_passes in fits.values():
        # Two passes at the door, one draw; every other pass is a round, or asks less.
        rounds = n_passes - 3
        assert 1 <= rounds <= 8
        bound = door_received(d, n_parts) + draw_received(d)
        bound += rounds * round_received(d + 1, 2, n_parts)
        assert received <= 1.05 * bound + TALK * n_passes
        places = NUMBER * STANDARDISE_ROWS
        assert sent <= 1.2 * (places + n_passes * round_sent(d + 1, 2, n_parts)) + TALK * n_passes


def test_nothing_grows_with_the_rows(fits):
    (few, few_sent, few_passes), (many, many_sent, many_passes) = fits.values()
    spare = TALK * abs(many_passes - few_passes) + TALK * 4
    assert many <= 1.03 * few + spare
    assert many_sent <= 1.03 * few_sent + spare
    assert many < 800_000 * 11 * NUMBER / 15


def test_a_selection_hands_over_no_more_than_the_bound():
    theta = np.zeros(4)
    for n_rows in (40_000, 640_000):
        with dask_rows(*made_table(n_rows, 3, 4)) as (names, parts):
            engine = open_parts(parts, names)
            engine.predicting()
            before = parts.n_passes
            with Meter() as meter:
                engine.choose(residual_sizes, (theta,), n_rows * 0.6)
            passes = parts.n_passes - before
        assert passes <= 2
        assert meter.received <= passes * cut_received(4)
        # A window of a few percent of the rows, not the rows.
        assert meter.received <= 0.1 * n_rows * 24 + passes * NUMBER * BINS + TALK
