"""Where labels are written: at any address, but never over the table or beside another one."""

import shutil
from dataclasses import replace

import fsspec
import pytest

from regimix import MixedLinearRegression, scan_parquet, tables
from regimix.errors import DataError, MissingExtraError
from regimix.paths import canonical, is_within, reach
from regimix.tables import parquet, write
from regimix.tables.write import are_label_columns
from tests.tables.parquets import contents, mixed_frame, write_files

pytestmark = pytest.mark.usefixtures("searched_once")

FRAME = mixed_frame(900)


@pytest.fixture
def memory():
    """The files of "memory://", which are gone afterwards."""
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


@pytest.fixture(scope="module")
def mixture():
    data = tables.from_frame(FRAME, target="y", drop=["id"])
    return MixedLinearRegression(random_state=0).fit(data.frame(), data.target()).mixture_


@pytest.fixture
def rows(tmp_path, memory):
    """The same files in a folder and at memory://rows."""
    folder = write_files(tmp_path / "rows", FRAME, group_rows=100)
    for path in folder.iterdir():
        memory.pipe_file(f"/rows/{path.name}", path.read_bytes())
    return folder


@pytest.fixture(params=["memory", "file", "path"])
def place(request, rows):
    """Say what a place beside the table is called: by an address of two kinds, or by a path."""
    start = {"memory": "memory://", "file": f"file://{rows.parent}/", "path": f"{rows.parent}/"}
    return lambda name: start[request.param] + name


def everything(rows, memory):
    """All that is stored, byte for byte."""
    return contents(rows.parent), {path: memory.cat(path) for path in memory.find("/")}


@pytest.mark.parametrize("small", [False, True], ids=["files are whole", "files are cut"])
@pytest.mark.parametrize("source", ["rows", "rows/", "rows/*.parquet", "rows/part.1.parquet"])
@pytest.mark.parametrize("target", ["rows", "rows/", "rows//"])
def test_the_table_itself_is_never_written_over(
    rows, memory, mixture, place, monkeypatch, source, target, small
):
    if small:
        monkeypatch.setattr(parquet, "SMALLEST_PART", 10_000)
    table = scan_parquet(place(source), "y")
    spans = [span for reader in table.readers for span in reader.spans]
    assert (len(spans) > len({span.path for span in spans})) is small
    before = everything(rows, memory)
    with pytest.raises(DataError, match=r"where the table itself is|none of the files"):
        tables.write_label_parts(place(target), table, mixture)
    assert everything(rows, memory) == before


@pytest.mark.parametrize("target", ["./rows", "labels/../rows"])
def test_nor_by_a_detour(rows, memory, mixture, place, target):
    before = everything(rows, memory)
    with pytest.raises(DataError, match="where the table itself is"):
        tables.write_label_parts(place(target), scan_parquet(place("rows/*.parquet"), "y"), mixture)
    assert everything(rows, memory) == before


def test_nor_under_another_name(rows, mixture):
    before = contents(rows)
    address, link = f"file://{rows}", rows.parent / "link"
    link.symlink_to(rows)
    for source, target in (
        (address, rows),
        (rows, address),
        (rows, link),
        (link, f"local://{rows}"),
    ):
        with pytest.raises(DataError, match="where the table itself is"):
            tables.write_label_parts(target, scan_parquet(source, "y"), mixture)
    out = rows.parent / "out"
    out.mkdir()
    (out / "part.1.parquet").symlink_to(rows / "part.1.parquet")
    with pytest.raises(DataError, match="where the table itself is"):
        tables.write_label_parts(out, scan_parquet(rows, "y"), mixture)
    assert contents(rows) == before


def test_below_the_table_it_would_be_read_next_time(rows, memory, mixture, place):
    before = everything(rows, memory)
    with pytest.raises(DataError, match="where the table itself is"):
        tables.write_label_parts(place("rows/labels"), scan_parquet(place("rows"), "y"), mixture)
    assert everything(rows, memory) == before


@pytest.mark.parametrize("name", ["older.parquet", "below/older.pq"])
def test_a_folder_with_other_tables_is_refused(rows, memory, mixture, place, name):
    memory.pipe_file(f"/out/{name}", b"")
    (rows.parent / "out" / name).parent.mkdir(parents=True)
    (rows.parent / "out" / name).touch()
    before = everything(rows, memory)
    with pytest.raises(DataError, match=f"holds '{name}', which is none of the files"):
        tables.write_label_parts(place("out"), scan_parquet(rows, "y"), mixture)
    assert everything(rows, memory) == before


def test_data_under_the_names_of_labels_is_never_replaced(rows, memory, mixture, place):
    for path in rows.iterdir():
        memory.pipe_file(f"/backup/{path.name}", path.read_bytes())
    shutil.copytree(rows, rows.parent / "backup")
    before = everything(rows, memory)
    table = scan_parquet(place("rows"), "y")
    with pytest.raises(DataError, match=r"holds 'part\.0\.parquet', which would be replaced"):
        tables.write_label_parts(place("backup/"), table, mixture)
    assert everything(rows, memory) == before


def test_nor_is_a_damaged_file_or_one_among_labels(rows, mixture):
    table, out = scan_parquet(rows, "y"), rows.parent / "out"
    tables.write_label_parts(out, table, mixture)
    for body in (b"", b"PAR1 and no more", (rows / "part.2.parquet").read_bytes()):
        (out / "part.2.parquet").write_bytes(body)
        before = contents(rows.parent)
        with pytest.raises(DataError, match=r"'part\.2\.parquet', which would be replaced"):
            tables.write_label_parts(out, table, mixture)
        assert contents(rows.parent) == before


@pytest.mark.parametrize("target", ["required", "optional"])
@pytest.mark.parametrize("names", [{}, {"x0": "regime", "y": "prediction"}])
def test_labels_are_told_by_their_columns(rows, mixture, target, names):
    """Where columns of the table have the names of ours, too; of few or many components."""
    frame = FRAME.drop("y") if target == "optional" and not names else FRAME
    table = write_files(rows.parent / "named", frame.rename(names))
    recipe = scan_parquet(rows, "y").recipe
    columns = [replace(c, name=names.get(c.name, c.name)) for c in recipe.columns]
    recipe = replace(recipe, target=names.get("y", "y"), columns=tuple(columns), key="id")
    opened = tables.scan_like(table, recipe, target=target)
    for _ in range(2):
        tables.write_label_parts(rows.parent / "out", opened, mixture)
    assert not are_label_columns(frame.columns)
    assert not are_label_columns(["x", "prediction"])
    assert not are_label_columns(["x", "y", "regime", "prediction"])


@pytest.mark.parametrize("pattern", ["rows/*.parquet", "rows/part.?.parquet", "**/part.*.parquet"])
def test_nor_below_the_folders_of_a_pattern(rows, memory, mixture, place, pattern):
    before = everything(rows, memory)
    with pytest.raises(DataError, match="where the table itself is"):
        tables.write_label_parts(place("rows/labels"), scan_parquet(place(pattern), "y"), mixture)
    assert everything(rows, memory) == before


def test_beside_a_file_there_is_room(rows, mixture, place):
    table = scan_parquet(place("rows/part.1.parquet"), "y")
    written = tables.write_label_parts(place("rows/labels"), table, mixture)
    assert [file.n_rows for file in written] == [300]


def test_a_file_is_no_folder(rows, memory, mixture, place):
    memory.pipe_file("/out", b"")
    (rows.parent / "out").touch()
    with pytest.raises(DataError, match="out' is a file, and a folder is needed"):
        tables.write_label_parts(place("out"), scan_parquet(rows, "y"), mixture)


def test_wherever_they_are_written_files_are_the_same(rows, memory, mixture, place, monkeypatch):
    monkeypatch.setattr(write, "GROUP_ROWS", 100)
    table = scan_parquet(place("rows"), "y")
    tables.write_label_parts(rows.parent / "expected", table, mixture)
    for _ in range(2):  # what is there is replaced
        tables.write_label_parts(place("out/"), table, mixture)
        tables.write_label_parts(place("out"), table, mixture)
    names = set(contents(rows.parent / "expected"))
    assert names == {f"part.{i}.parquet" for i in range(3)}
    system, folder = reach(place("out")) if "://" in place("") else reach(f"file://{place('out')}")
    assert {path.removeprefix(f"{folder}/") for path in system.find(folder)} == names
    for name in names:
        assert system.cat(f"{folder}/{name}") == (rows.parent / "expected" / name).read_bytes()


# --- names of places ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("memory://a/b", "memory:///a/b"),
        ("memory:///a//b/", "memory:///a/b"),
        ("memory://a/c/../b", "memory:///a/b"),
        ("simplecache::memory://a/b", "memory:///a/b"),
        ("memory://", "memory:///"),
        ("file:///a/c/../b", "/a/b"),
        ("local:///a/b/", "/a/b"),
        ("/a//b", "/a/b"),
    ],
)
def test_a_place_has_one_name(address, name):
    assert canonical(address) == name


def test_what_is_within():
    assert is_within("/a/b", "/a")
    assert is_within("/a", "/a")
    assert is_within("memory:///a", "memory:///")
    assert not is_within("/ab", "/a")
    assert not is_within("/a", "/a/b")


@pytest.mark.parametrize(
    ("address", "package"), [("s3://b/rows", "s3fs"), ("simplecache::gs://b/rows", "gcsfs")]
)
def test_a_package_that_is_missing_is_named(monkeypatch, address, package):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(MissingExtraError, match=f"{address}.*pip install {package}$"):
        scan_parquet(address, "y")


def test_an_address_that_leads_nowhere_is_told():
    with pytest.raises(DataError, match=r"'ham://spam' cannot be looked at: .*Check the address"):
        scan_parquet("ham://spam", "y")
