"""The rows that a report shows carry the labels of the fit where they are its rows."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from regimix import MixedLinearRegression, report, scan_parquet
from regimix.errors import DataError
from regimix.report import rows as rows_module
from regimix.report.rows import read_rows
from regimix.synth import make_mlrc
from tests.tables.parquets import mixed_frame, write_files

pytestmark = pytest.mark.usefixtures("searched_once")


@pytest.mark.filterwarnings("ignore::regimix.errors.EvidenceWarning")  # outliers need a place
@pytest.mark.filterwarnings("ignore::regimix.errors.RivalWarning")  # of outliers=False
@pytest.mark.parametrize("keep_rows", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"outliers": 0.2},
        {"outliers": False, "n_components": 2},
        {"search": "partition", "n_components": 2},
        {"search": "net", "n_components": 2},
    ],
)
def test_rows_of_the_fit_keep_their_labels(options, keep_rows):
    X, y, _ = make_mlrc(300, 2, 2, noise=0.2, corruption=0.05, random_state=0)
    fit = MixedLinearRegression(random_state=0, keep_rows=keep_rows, **options).fit(X, y)
    rows = read_rows(fit.mixture_, X, y, None)
    assert rows.fitted
    np.testing.assert_array_equal(rows.labels, fit.labels_)
    others = read_rows(fit.mixture_, X[::-1], y[::-1], None)
    assert not others.fitted
    np.testing.assert_array_equal(others.labels, fit.assign(X[::-1], y[::-1]))


def test_other_rows_than_those_of_the_fit_are_not_taken_for_them():
    """As many, of the same law, in one regime and without an outlier."""
    X, y, _ = make_mlrc(300, 2, 1, noise=0.2, random_state=0)
    mixture = MixedLinearRegression(n_components=1, random_state=0).fit(X, y).mixture_
    assert read_rows(mixture, X, y, None).fitted
    assert read_rows(mixture, X.astype(np.float32), y.astype(np.float32), None).fitted
    other, response, _ = make_mlrc(300, 2, 1, noise=0.2, random_state=1)
    assert not read_rows(mixture, other, response, None).fitted
    assert not read_rows(mixture, X, y + 1, None).fitted


# --- tables in parts ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scanned(tmp_path_factory):
    """A model, and 6,000 rows in three files, some of them with missing values."""
    frame = mixed_frame()
    folder = write_files(tmp_path_factory.mktemp("rows"), frame)
    table = scan_parquet(folder, "y", drop=["id", "same"], key="id")
    model = MixedLinearRegression(random_state=0).fit(table)
    complete = frame.filter(
        pl.all_horizontal(pl.col(*table.names, "y").cast(pl.Float64).is_finite())
    )
    return model.mixture_, table, complete


def as_arrays(frame, names):
    X = frame.select(pl.col(*names).cast(pl.Float64)).to_numpy()
    return X, frame["y"].to_numpy()


def test_few_rows_of_a_table_in_parts_are_all_shown(scanned):
    mixture, table, frame = scanned
    rows = read_rows(mixture, table, None, None)
    X, y = as_arrays(frame, table.names)
    np.testing.assert_array_equal(rows.X, X)
    np.testing.assert_array_equal(rows.y, y)
    assert list(rows.keys) == frame["id"].to_list()
    assert rows.fitted
    assert rows.of == rows.n == frame.height
    labels = mixture.assign(X, y)
    np.testing.assert_array_equal(rows.labels, labels)
    assert rows.counts.tolist() == np.bincount(labels % 4, minlength=4).tolist()


def test_many_rows_are_drawn_whatever_the_batches(scanned, monkeypatch):
    mixture, table, frame = scanned
    monkeypatch.setattr(rows_module, "MOST_NUMBERS", 500 * (len(table.names) + 4))
    whole = read_rows(mixture, table, None, None)
    monkeypatch.setattr(rows_module, "BATCH_NUMBERS", 137 * len(table.names))
    rows = read_rows(mixture, table, None, None)
    assert rows.n == 500
    assert rows.of == frame.height
    assert list(rows.keys) == list(whole.keys)
    np.testing.assert_array_equal(rows.counts, whole.counts)
    # Each is the row that its key names; all thirds of the table are drawn from alike.
    place = {name: i for i, name in enumerate(frame["id"])}
    drawn = np.array([place[key] for key in rows.keys])
    X, y = as_arrays(frame, table.names)
    np.testing.assert_array_equal(rows.X, X[drawn])
    np.testing.assert_array_equal(rows.y, y[drawn])
    thirds = np.histogram(drawn, bins=3, range=(0, frame.height))[0]
    assert (np.abs(thirds - 500 / 3) < 60).all()  # over five standard deviations
    assert rows.fitted


def test_without_a_key_column_rows_have_their_numbers_in_the_files(scanned, tmp_path):
    mixture, frame = scanned[0], mixed_frame()
    unnamed = scan_parquet(write_files(tmp_path / "rows", frame), "y", drop=["id", "same"])
    rows = read_rows(mixture, unnamed, None, None)
    numbers = np.array(rows.keys) - 1
    np.testing.assert_array_equal(rows.y, frame["y"].to_numpy()[numbers])
    assert not np.array_equal(numbers, np.arange(rows.n))  # some rows are left out


def test_the_page_of_a_table_in_parts_says_what_was_drawn(scanned, monkeypatch):
    mixture, table, frame = scanned
    monkeypatch.setattr(rows_module, "MOST_NUMBERS", 500 * (len(table.names) + 4))
    page = report.render(mixture, table)
    total = mixture.label_counts[-1]
    assert f"Of the {frame.height} rows that were read, {total} (" in page
    shown = (
        f"500 of {frame.height} rows are on this page, from an excerpt of 500 that was drawn at "
    )
    assert f"{shown}random; of the excerpt all " in page
    assert "which kept an excerpt" not in page
    assert "not the" not in page.partition("<h2")[0]
    other = report.render(replace(mixture, n_rows=mixture.n_rows + 1), table)
    assert f"This page shows 500 rows, drawn at random from {frame.height}, not the" in other


def test_what_a_table_in_parts_brings_is_not_passed_again(scanned, tmp_path):
    mixture, table, frame = scanned
    with pytest.raises(DataError, match="brings its response and its keys; got y as well"):
        read_rows(mixture, table, frame["y"], None)
    with pytest.raises(DataError, match="got keys as well"):
        read_rows(mixture, table, None, frame["id"])
    folder = write_files(tmp_path / "rows", frame)
    with pytest.raises(DataError, match="was fitted to x0"):
        read_rows(mixture, scan_parquet(folder, "y", features=["x1", "x0"]), None, None)


def test_shares_of_a_table_in_parts_are_asked_for_in_parts(scanned):
    mixture, table, frame = scanned
    X, y = as_arrays(frame, table.names)

    def shares(X):
        first = 0.5 + 0.49 * np.tanh(X[:, [0]])
        return np.hstack([first, (1 - first) / 2, (1 - first) / 2])

    rows = read_rows(mixture, table, None, None, shares)
    np.testing.assert_array_equal(rows.labels, mixture.assign(X, y, shares(X)))
    assert rows.counts.tolist() == np.bincount(rows.labels % 4, minlength=4).tolist()
    assert rows.counts.tolist() != list(mixture.label_counts)
