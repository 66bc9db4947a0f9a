"""Tables in parts at the door: the same units, the same checks, whatever the cut."""

import time
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regimix.data.problem import Frame, Problem
from regimix.engines.base import Nothing, combine
from regimix.engines.partition import open_parts
from regimix.engines.parts import LocalParts, PartTable, PassStopped, RawRows
from regimix.errors import DataError
from tests.engines.cutting import cut_anywhere, pieces, table_in_parts

seeds = st.integers(0, 2**32 - 1)
some = settings(max_examples=60, deadline=None)
weightings = st.sampled_from([None, "ones", "whole", "tenths", "real", "large"])


def odd_table(rng, n, d, weighting):
    """Columns of very different sizes, a constant one, a rare one; weights of every kind."""
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-4, 5, d) + rng.integers(-3, 4, d)
    X[:, rng.integers(d)] = 7.0
    X[:, rng.integers(d)] = rng.random(n) < 0.02
    y = 1e3 * rng.standard_normal(n) + 50
    weights = {
        None: lambda: None,
        "ones": lambda: np.ones(n),
        "whole": lambda: rng.integers(0, 4, n).astype(float),
        "tenths": lambda: 0.1 * rng.integers(0, 4, n),
        "real": lambda: rng.exponential(size=n) * (rng.random(n) < 0.7),
        "large": lambda: 2.0**40 * rng.integers(0, 9, n),
    }[weighting]()
    if weights is not None:
        weights[:2] = 1.0
    return X, y, weights


def same_frame(frame, problem):
    for field in fields(Frame):
        if field.name == "feature_names":
            continue
        one, other = getattr(frame, field.name), getattr(problem, field.name)
        if field.name == "mass":
            assert one == pytest.approx(other, rel=1e-12)
        else:
            np.testing.assert_array_equal(one, other, err_msg=field.name)


@some
@given(seeds, st.integers(2, 60), st.integers(1, 4), st.integers(1, 9), weightings, st.booleans())
# One row carries nearly all the weight: the others vary all the same.
@example(seed=420, n=3, d=3, n_parts=1, weighting="large", fit_intercept=True)
# A quartile lies between two rows, and weights are rounded another way in parts.
@example(seed=3, n=7, d=1, n_parts=2, weighting="tenths", fit_intercept=True)
@example(seed=274, n=6, d=1, n_parts=3, weighting="tenths", fit_intercept=True)
def test_units_and_counts_are_those_of_the_table_in_memory(
    seed, n, d, n_parts, weighting, fit_intercept
):
    rng = np.random.default_rng(seed)
    X, y, weights = odd_table(rng, n, d, weighting)
    ends = cut_anywhere(rng, n, n_parts)
    frame = table_in_parts(ends, X, y, weights, fit_intercept=fit_intercept).problem
    same_frame(frame, Problem.from_arrays(X, y, weights, fit_intercept=fit_intercept))


@pytest.mark.parametrize("weighting", [None, "whole", "real"])
def test_a_large_table_is_judged_by_the_same_evenly_spaced_rows(weighting):
    """Beyond 4096 rows units come from some of them, and beyond 65536 draws from the response."""
    rng = np.random.default_rng(8)
    X, y, weights = odd_table(rng, 100_000, 3, weighting)
    engine = table_in_parts(cut_anywhere(rng, 100_000, 7), X, y, weights)
    same_frame(engine.problem, Problem.from_arrays(X, y, weights))
    assert engine.problem.distinct_response
    assert engine.parts.n_passes == 2


def test_parts_of_other_number_types_are_read_as_what_they_are():
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 9, (50, 2)), rng.integers(0, 9, 50)
    engine = open_parts(
        LocalParts(lambda: iter(pieces([0, 20, 50], X.astype(np.float32), y))), ("a", "b")
    )
    same_frame(engine.problem, Problem.from_arrays(X, y))
    assert engine.problem.feature_names == ("a", "b")


# --- what is refused ------------------------------------------------------------------------------


def refused(parts, kind=DataError, names=("a", "b"), **options):
    with pytest.raises(kind) as error:
        open_parts(LocalParts(lambda: iter(parts)), names, **options)
    return str(error.value)


@pytest.fixture
def four():
    """Four parts of a sound table."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 2)), rng.standard_normal(40)
    return pieces([0, 10, 20, 30, 40], X, y, np.ones(40))


@pytest.mark.parametrize("where", ["X", "y", "weights"])
@pytest.mark.parametrize("what", [np.nan, np.inf])
def test_a_number_that_is_none_is_refused_with_its_part(four, where, what):
    getattr(four[2], where)[3] = what
    assert "part 2" in refused(four)


def test_a_negative_weight_is_refused_with_its_part(four):
    four[1].weights[4] = -1
    message = refused(four)
    assert "part 1" in message
    assert "sample_weight" in message


@pytest.mark.parametrize("columns", [1, 3])
def test_other_columns_are_refused_with_their_part(four, columns):
    four[3] = RawRows(np.zeros((10, columns)), four[3].y, four[3].weights)
    message = refused(four)
    assert "part 3" in message
    assert f"(10, {columns})" in message


@pytest.mark.parametrize("where", ["y", "weights"])
def test_a_column_of_another_length_is_refused_with_its_part(four, where):
    short = {"y": four[1].y, "weights": four[1].weights} | {where: np.ones(9)}
    four[1] = RawRows(four[1].X, **short)
    assert "part 1" in refused(four)


def test_no_response_is_refused(four):
    four[0] = RawRows(four[0].X, None)
    assert "part 0" in refused(four)


@pytest.mark.parametrize("lengths", [[], [0], [0, 0, 0], [0, 1, 0]])
def test_a_table_without_rows_is_refused(lengths):
    parts = [RawRows(np.ones((k, 2)), np.ones(k)) for k in lengths]
    message = refused(parts)
    assert f"{len(lengths)} part(s)" in message


def test_weights_that_are_all_zero_are_refused(four):
    for part in four:
        part.weights[:] = 0
    assert "nothing beside the largest, in all rows but 0" in refused(four)


def test_weights_that_are_nothing_beside_others_are_refused_by_name(four):
    four[0].weights[:] = 1e-300
    four[1].weights[:] = 1e300
    assert "sample_weight goes from 1e-300 to 1e+300" in refused(four)


def test_a_placeholder_is_refused_by_the_name_of_its_column(four):
    four[1].X[0, 1] = 1e300
    assert "'b'" in refused(four)


# --- the parts themselves -------------------------------------------------------------------------


def test_what_parts_say_is_added_in_their_order(four):
    parts = LocalParts(lambda: iter(four))
    said = parts.fold(lambda rows, part: ([part], float(rows.X.sum()), (1, np.ones(2))))
    assert said[0] == [0, 1, 2, 3]
    assert said[1] == pytest.approx(sum(float(rows.X.sum()) for rows in four))
    assert said[2][0] == 4
    np.testing.assert_array_equal(said[2][1], [4, 4])
    assert parts.n_passes == 1


def test_nothing_is_added_to_nothing():
    assert combine(Nothing(), 3) == combine(3, Nothing()) == 3
    assert isinstance(combine(Nothing(), Nothing()), Nothing)
    assert combine((1, None, [1]), (2, None, [3])) == (3, None, [1, 3])


def test_what_parts_say_of_rows_is_put_together(four):
    parts = LocalParts(lambda: iter(four))
    said = parts.map_rows(lambda rows, part: rows.y, (10,) * 4, np.dtype(float))
    np.testing.assert_array_equal(said, np.concatenate([rows.y for rows in four]))


def test_a_watcher_sees_every_part_and_may_stop_a_pass(four):
    parts, seen = LocalParts(lambda: iter(four)), []
    parts.watch = lambda done, total: seen.append((done, total))
    parts.fold(lambda rows, part: 0)
    parts.fold(lambda rows, part: 0)
    assert seen == [(i, None) for i in range(1, 5)] + [(i, 4) for i in range(1, 5)]
    parts.watch = lambda done, total: done == 2
    with pytest.raises(PassStopped) as stopped:
        parts.fold(lambda rows, part: 0)
    assert stopped.value.reason == "callback"
    assert parts.n_passes == 2


def test_a_deadline_stops_a_pass_but_not_the_last_one(four):
    parts = LocalParts(lambda: iter(four))
    parts.deadline = time.monotonic() - 1
    with pytest.raises(PassStopped) as stopped:
        parts.fold(lambda rows, part: 0)
    assert stopped.value.reason == "time_limit"
    # The answer is there: labelling the rows is not given up.
    labels = parts.map_rows(lambda rows, part: rows.y, (10,) * 4, np.dtype(float))
    assert labels.size == 40
    with pytest.raises(PassStopped):
        parts.fold(lambda rows, part: 0)


def test_readers_may_read_in_pieces(four):
    table = PartTable(
        ("a", "b"), "y", (lambda: iter(four[:3]), lambda: iter(four[3:])), ("one", "two")
    )
    parts = table.local_parts()
    assert parts.fold(lambda rows, part: [part]) == [0, 1, 2, 3]


def test_no_more_than_two_parts_are_in_memory():
    """The one that is worked on, and the next."""
    alive, most = [0], [0]

    class Counted(RawRows):
        def __del__(self):
            alive[0] -= 1

    def read():
        for _ in range(12):
            alive[0] += 1
            most[0] = max(most[0], alive[0])
            yield Counted(np.zeros((3, 1)), np.zeros(3))

    LocalParts(read).fold(lambda rows, part: rows.n_rows)
    assert most[0] <= 3  # a generator holds on to what it yielded last
    assert alive[0] == 0
