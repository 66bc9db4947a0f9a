"""Tables in Parquet that are read in parts: the same rows, the same fit, in bounded pieces."""

import io
import os
import subprocess
import sys

import fsspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFile
from hypothesis import given
from hypothesis import strategies as st

from regimix import MixedLinearRegression, TrimmedRegressor, scan_parquet, tables
from regimix.engines import parquet as engine_parquet
from regimix.engines.parquet import Span, _fingerprint, mark_of
from regimix.errors import DataError, DataKindError, MissingExtraError, ParameterError
from regimix.tables import parquet
from regimix.tables.parquet import Footer, _held, cut_into_parts
from tests.tables.parquets import mixed_frame, write_files

pytestmark = pytest.mark.usefixtures("searched_once")

FRAME = mixed_frame()


@pytest.fixture
def rows(tmp_path):
    return write_files(tmp_path / "rows", FRAME)


@pytest.fixture
def small_parts(monkeypatch):
    """Cut even small tables into many parts, and these into many pieces."""
    monkeypatch.setattr(parquet, "SMALLEST_PART", 50_000)
    monkeypatch.setattr(parquet, "PIECE_BYTES", 20_000)


def read_all(table):
    """Read all rows of a table in parts."""
    pieces = [piece for reader in table.readers for piece in reader()]
    weighted = pieces[0].weights is not None
    return (
        np.concatenate([piece.X for piece in pieces]),
        np.concatenate([piece.y for piece in pieces]),
        np.concatenate([piece.weights for piece in pieces]) if weighted else None,
    )


# --- the same rows --------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_parts")
def test_the_rows_are_those_of_the_table_in_memory(rows):
    table = scan_parquet(rows, "y", drop=["id"])
    data = tables.read(rows, target="y", drop=["id"])
    X, y, _ = read_all(table)
    assert table.names == data.feature_names
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, data.y)
    assert X.flags.c_contiguous
    assert table.n_read == data.n_read > len(y)
    assert set(table.notes) <= set(data.notes)
    assert table.recipe == data.recipe
    assert len(table.readers) > 3


@pytest.mark.usefixtures("small_parts")
def test_weights_and_features_are_chosen_by_name(rows):
    table = scan_parquet(str(rows / "*.parquet"), "x0", ["x2", "whole"], weights="x3")
    frame = FRAME.filter(
        pl.all_horizontal(pl.col("x0", "x2", "whole", "x3").cast(pl.Float64).is_finite())
    )
    X, y, weights = read_all(table)
    np.testing.assert_array_equal(X, frame.select("x2", "whole").to_numpy())
    np.testing.assert_array_equal(y, frame["x0"])
    np.testing.assert_array_equal(weights, frame["x3"])


@pytest.mark.usefixtures("small_parts")
def test_a_row_group_larger_than_a_piece_is_read_in_pieces(tmp_path):
    FRAME.write_parquet(tmp_path / "one.parquet", row_group_size=10**6)
    (reader,) = scan_parquet(tmp_path / "one.parquet", "y").readers
    sizes = [piece.n_rows for piece in reader()]
    most = parquet.PIECE_BYTES // (8 * 7)
    assert max(sizes) == most
    assert len(sizes) > 10
    assert set(sizes[:-1]) == {most}


def test_on_a_cluster_a_part_is_one_piece(rows):
    (reader,) = scan_parquet(rows, "y", on_cluster=True).readers
    assert len(list(reader())) == 1


def test_only_what_is_needed_is_read(rows, monkeypatch):
    asked = []
    batches = Span.batches

    def spy(self, columns, *args, **options):
        asked.append(columns)
        return batches(self, columns, *args, **options)

    monkeypatch.setattr(Span, "batches", spy)
    read_all(scan_parquet(rows, "y", ["x1"]))
    assert asked == [["x1", "y"]] * 3


@pytest.mark.parametrize("kind", [pl.Float32, pl.Int16, pl.Boolean, pl.Float64, pl.Int64])
def test_numbers_take_no_more_room_than_they_need(tmp_path, kind):
    frame = pl.DataFrame({"x": pl.Series([0, 1, 1, 0]).cast(kind), "y": [1.0, 2.0, 3.0, 4.0]})
    frame.write_parquet(tmp_path / "t.parquet")
    X, y, _ = read_all(scan_parquet(tmp_path / "t.parquet", "y"))
    assert X.dtype == (np.float64 if kind in (pl.Float64, pl.Int64) else np.float32)
    assert X.ravel().tolist() == [0, 1, 1, 0]
    assert y.dtype == np.float64


def test_decimals_are_numbers(tmp_path):
    frame = pl.DataFrame({"x": ["1.25", "2.50", "3.75"], "y": [1.0, 2.0, 3.0]})
    frame = frame.with_columns(pl.col("x").cast(pl.Decimal(10, 2)))
    frame.write_parquet(tmp_path / "t.parquet")
    X, _, _ = read_all(scan_parquet(tmp_path / "t.parquet", "y"))
    assert X.ravel().tolist() == [1.25, 2.5, 3.75]


def test_an_address_that_fsspec_knows(tmp_path):
    write_files(tmp_path / "rows", FRAME)
    memory = fsspec.filesystem("memory")
    for path in (tmp_path / "rows").iterdir():
        memory.pipe_file(f"/scanned/{path.name}", path.read_bytes())
    memory.pipe_file("/scanned/_SUCCESS", b"")
    here = read_all(scan_parquet(tmp_path / "rows", "y"))
    for source in ("memory://scanned", "memory://scanned/*.parquet"):
        there = scan_parquet(source, "y")
        assert there.n_read == FRAME.height
        np.testing.assert_array_equal(read_all(there)[0], here[0])
    with pytest.raises(DataError, match="no Parquet file at 'memory://nowhere/"):
        scan_parquet("memory://nowhere/*.parquet", "y")


# --- the same fit ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("settings", [{}, {"outliers": 0.1, "n_components": 3}])
def test_the_fit_is_that_of_the_table_in_memory(rows, settings):
    data = tables.read(rows, target="y", drop=["id"])
    here = MixedLinearRegression(random_state=0, **settings).fit(data.frame(), data.target())
    parts = MixedLinearRegression(random_state=0, **settings)
    parts.fit(scan_parquet(rows, "y", memory="8MB"))
    np.testing.assert_array_equal(parts.labels_, here.labels_)
    np.testing.assert_allclose(parts.coef_, here.coef_, rtol=0, atol=1e-9)
    assert parts.mixture_.target_name == "y"
    assert parts.mixture_.feature_names == data.feature_names


@pytest.mark.usefixtures("small_parts")
def test_one_regime_too(rows):
    data = tables.read(rows, target="y", drop=["id"])
    here = TrimmedRegressor(keep=0.5, random_state=0).fit(data.frame(), data.target())
    parts = TrimmedRegressor(keep=0.5, random_state=0).fit(scan_parquet(rows, "y"))
    np.testing.assert_array_equal(parts.inlier_mask_, here.inlier_mask_)
    np.testing.assert_allclose(parts.coef_, here.coef_, rtol=0, atol=1e-9)


def test_a_table_brings_its_own_response(rows):
    with pytest.raises(DataError, match="brings its own response"):
        MixedLinearRegression().fit(scan_parquet(rows, "y"), np.zeros(6000))


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        ({"target": "id"}, DataKindError, "'id' cannot be the target: it holds text"),
        ({"target": "Y"}, DataError, r"no column 'Y' \(the target\). Did you mean 'y'"),
        ({"features": ["id"]}, DataKindError, "'id' cannot be a feature: it holds text"),
        ({"features": ["x9"]}, DataError, r"no column 'x9' \(a feature\)"),
        ({"features": ["y"]}, DataError, "'y' cannot be a feature: it is the target"),
        ({"features": "x0"}, ParameterError, "features must be a list of column names"),
        ({"weights": "id"}, DataKindError, "'id' cannot be the weights"),
        ({"missing": "ignore"}, ParameterError, "missing must be one of 'drop', 'error'"),
        ({"memory": "much"}, ParameterError, "memory must be a number of bytes such as 2e9"),
        ({"memory": "1.2.3GB"}, ParameterError, "memory must be a number of bytes such as 2e9"),
        ({"memory": 10}, ParameterError, "memory must be at least 8MB"),
        ({"drop": ["x0", "x1", "x2", "x3", "whole", "flag"]}, DataError, "can be a feature; 'id'"),
    ],
)
def test_what_cannot_be_used_is_said(rows, how, kind, words):
    with pytest.raises(kind, match=words):
        scan_parquet(rows, **{"target": "y", **how})


def test_missing_values_are_refused_where_that_was_asked_for(rows):
    with pytest.raises(DataError, match=r"infinite value in row groups .*part\.0\.parquet"):
        read_all(scan_parquet(rows, "y", missing="error"))


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (lambda f: f.drop("x3"), DataError, "part.2.parquet' has no column 'x3', but .*part.0"),
        (lambda f: f.with_columns(z=1), DataError, "part.0.parquet' has no column 'z', but .*2.p"),
        (
            lambda f: f.with_columns(pl.col("x2").cast(pl.String)),
            DataKindError,
            "'x2' holds text in .*part.2.parquet', but numbers in .*part.0.parquet'",
        ),
    ],
)
def test_a_file_that_differs_is_named(rows, change, kind, words):
    path = rows / "part.2.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    with pytest.raises(kind, match=words):
        scan_parquet(rows, "y")


def test_wider_numbers_in_some_files_do_no_harm(rows):
    before = read_all(scan_parquet(rows, "y"))[0]
    path = rows / "part.2.parquet"
    pl.read_parquet(path).with_columns(pl.col("whole").cast(pl.Float64)).write_parquet(path)
    np.testing.assert_array_equal(read_all(scan_parquet(rows, "y"))[0], before)


def test_a_damaged_file_is_named(rows):
    path = rows / "part.1.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    with pytest.raises(DataError, match=r"part\.1\.parquet' cannot be read as Parquet"):
        scan_parquet(rows, "y")
    path.write_bytes(whole[:4] + bytes(4000) + whole[4004:])  # the footer is whole
    table = scan_parquet(rows, "y")
    with pytest.raises(DataError, match=r"cannot read row groups 0 to 3 of '.*part.1.parquet'"):
        MixedLinearRegression().fit(table)


def test_a_file_that_goes_away_or_changes_is_named(rows):
    table = scan_parquet(rows, "y")
    path = rows / "part.1.parquet"
    pl.read_parquet(path)[:-1].write_parquet(path)
    with pytest.raises(DataError, match=r"part\.1\.parquet' has changed since"):
        read_all(table)
    path.unlink()
    with pytest.raises(DataError, match=r"cannot read row groups .*part\.1\.parquet': there is"):
        read_all(table)


def test_a_file_of_as_many_rows_is_another_one(rows):
    table = scan_parquet(rows, "y")
    there = scan_parquet(rows, "y", on_cluster=True)
    path = rows / "part.1.parquet"
    frame = pl.read_parquet(path)
    frame.with_columns(pl.col("x0") + 1).write_parquet(path, row_group_size=500)
    for opened in (table, there):
        with pytest.raises(DataError, match=r"part\.1\.parquet' has changed since"):
            read_all(opened)
    assert len(read_all(scan_parquet(rows, "y"))[1]) > 5000


def test_copies_of_a_file_are_as_good_on_a_cluster(rows):
    table = scan_parquet(rows, "y")
    there = scan_parquet(rows, "y", on_cluster=True)
    path = rows / "part.1.parquet"
    written = path.stat().st_mtime_ns
    os.utime(path, ns=(written + 10**9, written + 10**9))
    read_all(there)
    with pytest.raises(DataError, match=r"part\.1\.parquet' has changed since"):
        read_all(table)


def test_an_object_that_was_replaced_is_named(tmp_path):
    memory = fsspec.filesystem("memory")
    write_files(tmp_path / "rows", FRAME, n_files=1)
    whole = (tmp_path / "rows" / "part.0.parquet").read_bytes()
    memory.pipe_file("/replaced/a.parquet", whole)
    table = scan_parquet("memory://replaced", "y")
    read_all(table)
    memory.pipe_file("/replaced/a.parquet", whole)
    with pytest.raises(DataError, match=r"replaced/a\.parquet' has changed since"):
        read_all(table)


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ({"ETag": "1", "LastModified": "noon"}, {"ETag": "1", "LastModified": "12:00"}, True),
        ({"ETag": "1"}, {"ETag": "2"}, False),
        ({"etag": "W/1"}, {"etag": "W/2"}, True),
        ({"generation": 5}, {"generation": 6}, False),
        ({"mtime": 5.0}, {"mtime": 6.0}, False),
        ({"mtime": 5.0}, {}, True),
        ({}, {}, True),
    ],
)
def test_what_file_systems_tell_is_compared(before, after, same):
    file = io.BytesIO(b"PAR1" + b"footer" + (6).to_bytes(4, "little") + b"PAR1")
    other = io.BytesIO(b"PAR1" + b"Footer" + (6).to_bytes(4, "little") + b"PAR1")
    footer, another = _fingerprint(file), _fingerprint(other)
    assert mark_of(before, footer).is_same(mark_of(after, footer)) is same
    assert not mark_of(before, footer).is_same(mark_of(before, another))


@pytest.mark.parametrize("kind", ["file", "address"])
def test_a_file_is_read_in_bounded_requests(tmp_path, monkeypatch, kind):
    n_rows = 1_000_000
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=n_rows) for name in ("x0", "x1", "x2", "y")}
    path = tmp_path / "one.parquet"
    pl.DataFrame(columns).write_parquet(path, row_group_size=n_rows, compression="uncompressed")
    monkeypatch.setattr(engine_parquet, "REMOTE_BUFFER_BYTES", 100_000)
    source = str(path)
    if kind == "address":
        source = "memory://bounded.parquet"
        fsspec.filesystem("memory").pipe_file(source, path.read_bytes())
    sizes = []
    read = MemoryFile.read
    monkeypatch.setattr(MemoryFile, "read", lambda self, n=-1: sizes.append(n) or read(self, n))
    table = scan_parquet(source, "y", memory="8MB")
    before = pa.total_allocated_bytes()
    most = 0
    for batch in table.readers[0].spans[0].batches(list(columns), 10_000):
        most = max(most, pa.total_allocated_bytes() - before)
        del batch
    # The file has 32 MB, a column of it 8 MB: neither is ever there as it is in the file.
    assert 0 < most < 12_000_000
    if kind == "address":
        assert max(sizes) < 2_000_000
        assert len(sizes) > 40


def test_there_must_be_something(tmp_path):
    FRAME[:0].write_parquet(tmp_path / "empty.parquet")
    with pytest.raises(DataError, match="no rows"):
        scan_parquet(tmp_path / "empty.parquet", "y")
    with pytest.raises(DataError, match="no file matches"):
        scan_parquet(tmp_path / "*.pq", "y")


def test_an_empty_file_among_others_does_no_harm(rows):
    before = read_all(scan_parquet(rows, "y"))
    FRAME[:0].write_parquet(rows / "part.00.parquet")
    for old, new in zip(before[:2], read_all(scan_parquet(rows, "y"))[:2], strict=True):
        np.testing.assert_array_equal(new, old)


def test_without_pyarrow_one_sentence_says_how_to_get_it(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"need pyarrow.*regimix\[dask\]"):
        scan_parquet(rows, "y")


def test_opening_a_table_loads_neither_polars_nor_dask(rows):
    code = (
        "import sys, regimix; regimix.scan_parquet(sys.argv[1], 'y'); "
        "print({'polars', 'dask', 'sklearn'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code, str(rows)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


# --- parts ----------------------------------------------------------------------------------------

FILES = st.lists(st.lists(st.integers(1, 9), max_size=6), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("table", "part", "count"),
    [
        (10**6, 32_000_000, 1),
        (10**9, 62_500_000, 16),
        (2 * 10**9, 125_000_000, 16),
        (256 * 10**9, 128_000_000, 2000),
        (4 * 10**12, 2_000_000_000, 2000),
        (10**14, 4_000_000_000, 25_000),
    ],
)
def test_parts_grow_with_the_table(table, part, count):
    assert parquet.part_bytes(table) == part
    assert -(-table // part) == count


@given(files=FILES, part_rows=st.integers(1, 30))
def test_parts_hold_every_row_once_and_cut_no_file_without_need(files, part_rows):
    footers = [
        Footer(f"/{i}", str(i), f"{i}.parquet", {}, tuple(groups), {})
        for i, groups in enumerate(files)
    ]
    parts = cut_into_parts(footers, part_rows)
    spans = [span for part in parts for span in part]
    seen = [(span.path, group) for span in spans for group in range(span.first, span.stop)]
    assert seen == [(f"/{i}", g) for i, groups in enumerate(files) for g in range(len(groups))]
    ends = np.cumsum([span.n_rows for span in spans])
    assert [span.first_row for span in spans] == [0, *ends[:-1].tolist()]
    assert len({span.output for span in spans}) == len(spans)
    for part in parts:
        groups = sum(span.stop - span.first for span in part)
        assert groups <= 1 or sum(span.n_rows for span in part) <= part_rows
    for i, groups in enumerate(files):
        mine = [span for span in spans if span.path == f"/{i}"]
        assert (len(mine) == 1) == (sum(groups) <= part_rows or len(groups) <= 1)


def test_files_of_the_same_name_in_several_folders(tmp_path):
    for year in ("2023", "2024"):
        write_files(tmp_path / "rows" / year, FRAME[:200], n_files=1)
    table = scan_parquet(tmp_path / "rows", "y")
    outputs = [span.output for reader in table.readers for span in reader.spans]
    assert outputs == ["2023/part.0.parquet", "2024/part.0.parquet"]


def test_columns_in_names_of_folders_are_not_left_out_in_silence(tmp_path):
    for year in (2023, 2024):
        write_files(tmp_path / "rows" / f"year={year}", FRAME[:200], n_files=1)
    table = scan_parquet(tmp_path / "rows", "y")
    assert "Column 'year' is left out: it stands in names of folders." in table.notes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (2**30, 2**30),
        (1e9, 10**9),
        ("9000000", 9 * 10**6),
        ("1e9", 10**9),
        ("1e+9", 10**9),
        ("2e3 MB", 2 * 10**9),
        ("2GB", 2 * 10**9),
        ("1.5 gb", 1.5e9),
        ("64MiB", 2**26),
        ("8000k", 8e6),
    ],
)
def test_sizes_are_read_as_people_write_them(text, size):
    assert parquet.read_size(text) == size


def test_a_table_is_told_in_a_line(tmp_path):
    source = str(write_files(tmp_path / "rows", FRAME[:90], n_files=2))
    told = repr(scan_parquet(source, "y", features=["x0", "x1"]))
    assert told == (f"ParquetTable({source!r}: 90 rows, 2 features (x0, x1), target 'y', 1 part)")
    write_files(tmp_path / "rows", FRAME[:90].with_columns(x9=pl.col("x0") + 1), n_files=2)
    told = repr(scan_parquet(source, "y", on_cluster=True))
    assert "7 features (x0, x1, x2, x3, whole, flag, ...)" in told
    assert told.endswith("1 part on a cluster)")


def test_a_model_is_no_recipe(tmp_path):
    folder = write_files(tmp_path / "rows", FRAME[:90], n_files=1)
    with pytest.raises(ParameterError, match=r"type object.*table\.recipe, or"):
        tables.scan_like(folder, object())


def write_columns(path, columns, names, **options):
    pq.write_table(
        pa.Table.from_arrays([pa.array(c) for c in columns], names=names), path, **options
    )
    return path


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = write_columns(tmp_path / "t.parquet", [[1.0, 2.0]] * 3, ["x", "x", "y"])
    with pytest.raises(DataError, match=r"t\.parquet' has more than one column named 'x'"):
        scan_parquet(path, "y")


def test_columns_without_name_or_values_are_left_out(tmp_path):
    blank = pa.array([None, None], pa.float64())
    path = write_columns(
        tmp_path / "t.parquet", [[1, 2], blank, [3.0, 4.0], [5.0, 6.0]], ["", "blank", "x", "y"]
    )
    table = scan_parquet(path, "y")
    assert table.names == ("x",)
    assert "Column 'blank' is left out: it has no values." in table.notes
    assert any("Column '' is left out: it has no name" in note for note in table.notes)
    with pytest.raises(DataKindError, match="'blank' cannot be a feature: it has no values"):
        scan_parquet(path, "y", ["blank"])


def test_without_statistics_a_column_is_used(tmp_path):
    columns = [[1.0, 1.0], [3.0, 4.0]]
    path = write_columns(tmp_path / "t.parquet", columns, ["x", "y"], write_statistics=False)
    assert scan_parquet(path, "y").names == ("x",)
    path = write_columns(tmp_path / "t.parquet", columns, ["x", "y"])
    with pytest.raises(DataError, match="'x' is the same in all rows"):
        scan_parquet(path, "y")


def test_pieces_of_a_file_take_no_name_of_another_one():
    footers = [
        Footer("/a", "a", "a.parquet", {}, (5, 5), {}),
        Footer("/b", "b", "a.0.parquet", {}, (1,), {}),
    ]
    spans = [span for part in cut_into_parts(footers, 5) for span in part]
    assert [span.output for span in spans] == ["a.0_.parquet", "a.1.parquet", "a.0.parquet"]


def test_types_are_named_as_people_know_them():
    kinds = {
        pa.string(): "text",
        pa.dictionary(pa.int8(), pa.string()): "categories",
        pa.timestamp("us"): "timestamp values",
        pa.list_(pa.float64()): "list values",
    }
    assert {kind: _held(kind) for kind in kinds} == kinds
