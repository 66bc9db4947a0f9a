"""The bundled data: complete, as published, and fresh at every load."""

import builtins
import re

import numpy as np
import pytest

from regimix import MixedLinearRegression
from regimix.datasets import Dataset, load_calls, load_penguins, load_tone
from regimix.errors import MissingExtraError, ParameterError

LOADERS = [load_calls, load_penguins, load_tone]


@pytest.mark.parametrize(
    ("load", "rows", "target"),
    [(load_calls, 24, "Calls"), (load_penguins, 342, "bill_depth_mm"), (load_tone, 150, "tuned")],
)
def test_a_dataset_is_complete(load, rows, target):
    data = load()
    assert isinstance(data, Dataset)
    assert data.X.shape == (rows, 1)
    assert data.y.shape == (rows,)
    assert data.X.dtype == data.y.dtype == np.float64
    assert np.isfinite(data.X).all()
    assert np.isfinite(data.y).all()
    assert len(data.feature_names) == 1
    assert len(set(data.row_names)) == len(data.row_names) == rows
    assert data.target_name == target
    assert data.description.endswith(".")
    assert all(column.shape == (rows,) for column in data.others.values())


@pytest.mark.parametrize("load", LOADERS)
def test_every_load_returns_arrays_of_its_own(load):
    first = load()
    first.X[:] = 0
    first.y[:] = 0
    assert load().X.any()
    assert load().y.any()


@pytest.mark.parametrize("load", LOADERS)
def test_a_frame_holds_every_column_under_its_name(load):
    data = load()
    frame = data.frame
    assert list(frame.columns) == [*data.feature_names, data.target_name, *data.others]
    assert list(frame.index) == list(data.row_names)
    np.testing.assert_array_equal(data.features.to_numpy(), data.X)
    np.testing.assert_array_equal(data.target.to_numpy(), data.y)
    frame.iloc[:, 0] = 0.0
    assert data.X.any()


def test_a_fit_to_the_frame_prints_the_names():
    tone = load_tone()
    fit = MixedLinearRegression(random_state=0).fit(tone.features, tone.target)
    assert fit.mixture_.equation(0) in str(fit.mixture_)
    assert re.search(r"tuned = 1\.92\d* \+ 0\.03\d+ stretchratio", str(fit.mixture_))


def test_without_pandas_the_arrays_are_named(monkeypatch):
    tone, load = load_tone(), builtins.__import__

    def without_pandas(name, *rest):
        if name == "pandas":
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(MissingExtraError, match="pip install pandas"):
        _ = tone.frame


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


def test_penguins_that_were_not_measured_are_left_out():
    penguins = load_penguins()
    missing = {str(number) for number in range(1, 345)} - set(penguins.row_names)
    assert missing == {"4", "272"}
    names, counts = np.unique(penguins.others["species"], return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == {
        "Adelie": 151,
        "Chinstrap": 68,
        "Gentoo": 123,
    }
    assert np.count_nonzero(penguins.others["sex"] == "") == 9
    assert set(penguins.others["year"].tolist()) == {2007, 2008, 2009}


def test_bills_get_deeper_with_length_within_every_species_but_not_over_all():
    penguins = load_penguins()

    def slope(rows):
        return np.polyfit(penguins.X[rows, 0], penguins.y[rows], 1)[0]

    species = penguins.others["species"]
    assert all(0.15 < slope(species == name) < 0.25 for name in np.unique(species))
    assert slope(species != "") < 0


def test_penguins_with_other_features():
    names = ("bill_length_mm", "flipper_length_mm", "body_mass_g")
    penguins = load_penguins(features=names)
    assert penguins.X.shape == (342, 3)
    assert penguins.feature_names == names
    assert set(penguins.others) == {"species", "island", "sex", "year"}
    assert penguins.X[0].tolist() == [39.1, 181.0, 3750.0]
    assert load_penguins(features="body_mass_g").feature_names == ("body_mass_g",)
    for wrong in ((), ("species",), ("bill_depth_mm",), ("body_mass_g", "body_mass_g")):
        with pytest.raises(ParameterError, match="features must be one or more of"):
            load_penguins(features=wrong)


def test_a_data_set_prints_as_a_few_lines():
    text = repr(load_penguins())
    assert text.startswith("Dataset of 342 rows and 1 feature\n")
    assert "target   bill_depth_mm: 13.1 to 21.5" in text
    assert "beside   species, island, flipper_length_mm, body_mass_g, sex, year" in text
    assert len(text.splitlines()) < 10
    assert all(len(line) <= 80 for line in text.splitlines())
