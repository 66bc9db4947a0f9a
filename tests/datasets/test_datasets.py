"""The bundled data: complete, as published, and fresh at every load."""

import numpy as np
import pytest

from regimix.datasets import Dataset, load_calls, load_tone


@pytest.mark.parametrize(("load", "rows"), [(load_calls, 24), (load_tone, 150)])
def test_a_dataset_is_complete(load, rows):
    data = load()
    assert isinstance(data, Dataset)
    assert data.X.shape == (rows, 1)
    assert data.y.shape == (rows,)
    assert data.X.dtype == data.y.dtype == np.float64
    assert np.isfinite(data.X).all()
    assert np.isfinite(data.y).all()
    assert len(data.feature_names) == 1
    assert len(set(data.row_names)) == rows
    assert data.target_name in {"Calls", "tuned"}
    assert data.description.endswith(".")


@pytest.mark.parametrize("load", [load_calls, load_tone])
def test_every_load_returns_arrays_of_its_own(load):
    first = load()
    first.X[:] = 0
    first.y[:] = 0
    assert load().X.any()
    assert load().y.any()


def test_calls_are_named_by_year_and_jump_where_the_units_change():
    calls = load_calls()
    assert calls.row_names == tuple(str(year) for year in range(1950, 1974))
    np.testing.assert_array_equal(calls.X[:, 0], np.arange(50, 74))
    other_units = [calls.row_names[i] for i in np.flatnonzero(calls.y > 10)]
    assert other_units == ["1964", "1965", "1966", "1967", "1968", "1969"]


def test_tone_has_the_two_known_regimes():
    tone = load_tone()
    ratio = tone.X[:, 0]
    follows_the_overtones = np.abs(tone.y - ratio) < 0.1
    stays_at_the_octave = np.abs(tone.y - 2) < 0.1
    assert follows_the_overtones.sum() > 30
    assert stays_at_the_octave.sum() > 60
