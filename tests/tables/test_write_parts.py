"""Labels that are written part by part: those of the fit, in whole files, the same every time."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from regimix import MixedLinearRegression, scan_parquet, tables
from regimix.engines.parquet import ParquetReader
from regimix.errors import DataError, DataKindError, StoppedError
from regimix.tables import parquet, write
from tests.engines.clusters import small_cluster
from tests.tables.parquets import DeadlyReader, contents, mixed_frame, write_files

pytestmark = pytest.mark.usefixtures("searched_once")

FRAME = mixed_frame()


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Cut even small tables into parts, and files into row groups."""
    monkeypatch.setattr(parquet, "SMALLEST_PART", 50_000)
    monkeypatch.setattr(write, "GROUP_ROWS", 300)


@pytest.fixture
def rows(tmp_path):
    return write_files(tmp_path / "rows", FRAME)


@pytest.fixture(scope="module")
def fitted():
    """The fit of the table in memory, of all rows that can be used."""
    data = tables.from_frame(FRAME, target="y", drop=["id"])
    return data, MixedLinearRegression(random_state=0).fit(data.frame(), data.target())


@pytest.fixture
def table(rows):
    return scan_parquet(rows, "y")


@pytest.fixture(scope="module")
def cluster():
    with small_cluster() as client:
        yield client


def read_back(folder):
    files = sorted(folder.rglob("*.parquet"))
    return pl.concat(pl.read_parquet(file) for file in files)


def test_there_is_a_row_for_each_and_it_says_what_it_says_in_memory(rows, table, fitted, tmp_path):
    data, fit = fitted
    files = tables.write_label_parts(tmp_path / "out", table, fit.mixture_, labels=fit.labels_)
    written = read_back(tmp_path / "out")
    assert written["row"].to_list() == list(range(1, FRAME.height + 1))
    tables.write_labels(tmp_path / "memory.parquet", data, fit.mixture_, labels=fit.labels_)
    memory = pl.read_parquet(tmp_path / "memory.parquet")
    assert memory["row"].to_list() == written["row"].to_list()
    expected = memory.filter(pl.col("left_out") == "").drop("left_out")
    used = written.filter(pl.col("row").is_in(expected["row"].implode()))
    assert_frame_equal(used, expected, check_exact=False, abs_tol=1e-12)
    np.testing.assert_array_equal(used["regime"], fit.labels_)
    dropped = written.filter(~pl.col("row").is_in(expected["row"].implode()))
    assert dropped.drop("row").null_count().row(0) == (dropped.height,) * (dropped.width - 1)
    assert sum(file.n_dropped for file in files) == dropped.height == data.n_dropped > 0
    assert sum(file.n_outliers for file in files) == np.count_nonzero(fit.labels_ < 0)
    assert sum(file.n_rows for file in files) == FRAME.height


def test_files_are_called_as_those_that_were_read(rows, table, fitted, tmp_path):
    tables.write_label_parts(tmp_path / "out", table, fitted[1].mixture_)
    groups = {span.output: span.n_rows for reader in table.readers for span in reader.spans}
    assert {"part.0.0.parquet", "part.2.2.parquet"} < set(groups)  # larger than a part: cut
    assert set(contents(tmp_path / "out")) == set(groups)
    for name, count in groups.items():
        assert pl.read_parquet(tmp_path / "out" / name).height == count


def test_a_key_names_the_rows(rows, fitted, tmp_path):
    keyed = scan_parquet(rows, "y", key="id")
    tables.write_label_parts(tmp_path / "out", keyed, fitted[1].mixture_)
    assert read_back(tmp_path / "out")["id"].to_list() == FRAME["id"].to_list()


class BrokenError(Exception):
    pass


@pytest.mark.parametrize("last", [1, 2, 4])
def test_work_that_broke_off_can_be_done_again(table, fitted, tmp_path, monkeypatch, last):
    mixture = fitted[1].mixture_
    tables.write_label_parts(tmp_path / "whole", table, mixture)
    calls = []
    whole = ParquetReader.labelled

    def breaks(self, span, batch_rows):
        for batch in whole(self, span, batch_rows):
            calls.append(span)
            if len(calls) == 5 * last:
                raise BrokenError
            yield batch

    monkeypatch.setattr(ParquetReader, "labelled", breaks)
    with pytest.raises(BrokenError):
        tables.write_label_parts(tmp_path / "out", table, mixture)
    # What is there is whole, and nothing else is.
    assert contents(tmp_path / "out").items() < contents(tmp_path / "whole").items()
    (tmp_path / "out" / ".part.2.2.parquet.0123456789ab.part").write_bytes(b"of a killed process")
    tables.write_label_parts(tmp_path / "out", table, mixture)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_workers_write_the_same_files_even_if_one_is_killed(rows, cluster, fitted, tmp_path):
    here = scan_parquet(rows, "y")
    there = scan_parquet(rows, "y", on_cluster=True)
    fit = MixedLinearRegression(random_state=0).fit(there)
    np.testing.assert_array_equal(fit.labels_.compute(), fitted[1].labels_)
    np.testing.assert_allclose(fit.coef_, fitted[1].coef_, rtol=0, atol=1e-9)
    local = MixedLinearRegression(random_state=0).fit(here)
    mixture = local.mixture_
    tables.write_label_parts(tmp_path / "here", here, mixture, labels=local.labels_)
    seen = []
    deadly = [
        DeadlyReader(**vars(reader), mark=str(tmp_path / "killed")) if i == 4 else reader
        for i, reader in enumerate(there.readers)
    ]
    files = tables.write_label_parts(
        tmp_path / "there",
        replace(there, readers=tuple(deadly)),
        mixture,
        labels=fit.labels_,
        watch=lambda done, total: seen.append((done, total)),
    )
    assert (tmp_path / "killed").exists()
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert sum(file.n_rows for file in files) == FRAME.height
    assert seen[-1] == (len(there.readers),) * 2


def test_a_worker_names_the_file_it_cannot_read(rows, cluster, fitted, tmp_path):
    del cluster
    there = scan_parquet(rows, "y", on_cluster=True)
    (rows / "part.1.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    with pytest.raises(DataError, match=r"cannot read row group \d of '.*part\.1\.parquet'"):
        tables.write_label_parts(tmp_path / "out", there, fitted[1].mixture_)


# --- rows that the fit has not seen ---------------------------------------------------------------


@pytest.mark.parametrize("target", ["there", "blank in some rows", "absent"])
def test_new_rows_are_predicted_as_in_memory(tmp_path, fitted, target):
    data, fit = fitted
    new = {
        "there": mixed_frame(900),
        "blank in some rows": mixed_frame(900, gaps=False).with_columns(
            y=pl.when(pl.int_range(900) % 3 == 0).then(None).otherwise("y")
        ),
        "absent": mixed_frame(900).drop("y"),
    }[target]
    source = write_files(tmp_path / "new", new)
    opened = tables.scan_like(source, data.recipe, target="optional")
    files = tables.write_label_parts(tmp_path / "out", opened, fit.mixture_)
    memory = tables.read_like(source, data.recipe, target="optional")
    expected = pl.DataFrame(
        {name: _blank(v) for name, v in tables.label_columns(memory, fit.mixture_).items()}
    )
    written = read_back(tmp_path / "out")
    used = written.filter(pl.col("row").is_in(expected["row"].implode()))
    assert_frame_equal(used.select(expected.columns), expected, abs_tol=1e-12)
    each = {f"prediction_{j}" for j in range(fit.n_components_)}
    assert each < set(written.columns)
    unknown = 0 if memory.y is None else np.count_nonzero(~np.isfinite(memory.y))
    assert sum(file.n_unknown for file in files) == unknown


def _blank(values):
    if not isinstance(values, np.ma.MaskedArray):
        return values
    return pl.Series(values.filled(0)).set(pl.Series(np.ma.getmaskarray(values)), None)


def test_a_model_of_text_columns_needs_the_table_in_memory(tmp_path, rows):
    recipe = tables.Recipe("y", (tables.Column("id", "levels", ("a", "b")),))
    with pytest.raises(DataKindError, match="'id' is text to this model"):
        tables.scan_like(rows, recipe)


# --- what is refused ------------------------------------------------------------------------------


def test_a_folder_with_other_tables_is_refused(table, fitted, tmp_path):
    (tmp_path / "out").mkdir()
    FRAME[:5].write_parquet(tmp_path / "out" / "older.parquet")
    with pytest.raises(DataError, match=r"holds 'older\.parquet', which is none of the files"):
        tables.write_label_parts(tmp_path / "out", table, fitted[1].mixture_)


@pytest.mark.parametrize("below", ["", "labels"])
def test_the_table_itself_is_never_written_over(rows, table, fitted, below):
    before = contents(rows)
    with pytest.raises(DataError, match="is where the table itself is"):
        tables.write_label_parts(rows / below, table, fitted[1].mixture_)
    whole = scan_parquet(rows / "*.parquet", "y", ["x0"])
    with pytest.raises(DataError, match=r"is where the table itself is|none of the files"):
        tables.write_label_parts(rows, whole, fitted[1].mixture_)
    assert contents(rows) == before


@pytest.mark.parametrize("change", [1, -1])
def test_workers_refuse_labels_of_another_table(rows, cluster, fitted, tmp_path, change):
    del cluster
    import dask.array as da

    there = scan_parquet(rows, "y", on_cluster=True)
    used = [sum(piece.n_rows for piece in reader()) for reader in there.readers]
    assert len(used) > 2
    mixture = fitted[1].mixture_
    # As many blocks as parts, and as many labels as rows in all: one block has too many of them.
    used[0], used[1] = used[0] + change, used[1] - change
    moved = da.from_array(fitted[1].labels_, chunks=(tuple(used),))
    for labels in (moved, moved.rechunk(-1)):
        with pytest.raises(DataError, match="not as many labels as rows"):
            tables.write_label_parts(tmp_path / "out", there, mixture, labels=labels)


def test_a_last_block_that_is_too_long_is_refused(rows, cluster, fitted, tmp_path):
    del cluster
    import dask.array as da

    there = scan_parquet(rows, "y", on_cluster=True)
    used = [sum(piece.n_rows for piece in reader()) for reader in there.readers]
    used[-1] += 3
    labels = da.from_array(np.append(fitted[1].labels_, [0, 0, 0]), chunks=(tuple(used),))
    with pytest.raises(DataError, match="not as many labels as rows"):
        tables.write_label_parts(tmp_path / "out", there, fitted[1].mixture_, labels=labels)


@pytest.mark.parametrize("on_cluster", [False, True])
def test_who_watches_can_stop_it(rows, cluster, fitted, tmp_path, on_cluster):
    del cluster
    opened = scan_parquet(rows, "y", on_cluster=on_cluster)
    with pytest.raises(StoppedError, match="before all parts were written"):
        tables.write_label_parts(
            tmp_path / "out", opened, fitted[1].mixture_, watch=lambda done, total: True
        )
    # Workers may have been quicker.
    assert on_cluster or len(contents(tmp_path / "out")) == 1


@pytest.mark.parametrize("change", [1, -1])
def test_labels_of_another_table_are_refused(table, fitted, tmp_path, change):
    labels = fitted[1].labels_
    labels = labels[:-1] if change < 0 else np.append(labels, 0)
    with pytest.raises(DataError, match="not as many labels as rows"):
        tables.write_label_parts(tmp_path / "out", table, fitted[1].mixture_, labels=labels)


def test_a_disk_that_is_full_is_named(table, fitted, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(write, "open_atomically", full)
    with pytest.raises(DataError, match=r"part\.0.*cannot be written: No space left on device\."):
        tables.write_label_parts(tmp_path / "out", table, fitted[1].mixture_)
