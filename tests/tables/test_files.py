"""Tables from files of every kind, and what is said of those that cannot be read."""

import gzip
import io
import sys
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from regimix import MixedLinearRegression, save, tables
from regimix.datasets import load_tone
from regimix.errors import DataError, MissingExtraError, ParameterError

pytestmark = pytest.mark.usefixtures("searched_once")

FRAME = pl.DataFrame(
    {
        "x": [1.0, 2.5, -3.0, 4.0],
        "n": [1, 2, 3, 5],
        "colour": ["red", "blue", "red", "red"],
        "y": [0.5, 1.5, 2.5, 3.5],
    }
)


def written(frame, kind):
    """Write a frame as bytes of a kind."""
    buffer = io.BytesIO()
    {
        "csv": frame.write_csv,
        "tsv": lambda target: frame.write_csv(target, separator="\t"),
        "parquet": frame.write_parquet,
        "arrow": frame.write_ipc,
        "stream": frame.write_ipc_stream,
        "jsonl": frame.write_ndjson,
    }[kind](buffer)
    return buffer.getvalue()


def check(data):
    """The numbers of FRAME, whatever way they came."""
    assert data.feature_names == ("x", "n", "colour=blue")
    assert data.X.tolist() == [[1.0, 1, 0], [2.5, 2, 1], [-3.0, 3, 0], [4.0, 5, 0]]
    assert data.X.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert data.y.tolist() == [0.5, 1.5, 2.5, 3.5]
    assert data.keys.tolist() == [1, 2, 3, 4]
    assert (data.n_read, data.n_dropped) == (4, 0)


NAMES = {
    "a.csv": "csv",
    "a.CSV": "csv",
    "a.txt": "csv",
    "a.tsv": "tsv",
    "a.tab": "tsv",
    "a.parquet": "parquet",
    "a.pq": "parquet",
    "a.arrow": "arrow",
    "a.feather": "arrow",
    "a.ipc": "arrow",
    "a.arrows": "stream",
    "a.jsonl": "jsonl",
    "a.ndjson": "jsonl",
    "a": "csv",
    "b": "parquet",
    "c": "arrow",
    "d": "jsonl",
    "e": "stream",
    "a.dat": "tsv",
    "odd [name]*.csv": "csv",
}


@pytest.mark.parametrize(("name", "kind"), NAMES.items())
def test_every_kind_of_file(tmp_path, name, kind):
    path = tmp_path / name
    path.write_bytes(written(FRAME, kind))
    check(tables.read(path, target="y"))
    check(tables.read(str(path), target="y"))


@pytest.mark.parametrize("name", ["a.csv.gz", "a.tsv.gz", "a.jsonl.gz", "a.csv", "a"])
def test_text_may_be_compressed(tmp_path, name):
    path = tmp_path / name
    kind = name.split(".")[1] if "." in name else "csv"
    path.write_bytes(gzip.compress(written(FRAME, kind)))
    check(tables.read(path, target="y"))


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "arrow", "stream", "jsonl"])
@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(monkeypatch, kind, packed):
    data = written(FRAME, kind)
    if packed and kind in ("csv", "tsv", "jsonl"):
        data = gzip.compress(data)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    read = tables.read("-", target="y")
    check(read)
    assert read.source == "standard input"


def test_standard_input_may_be_empty(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO()))
    with pytest.raises(DataError, match="standard input is empty"):
        tables.read("-", target="y")


def test_the_format_may_be_said(tmp_path):
    path = tmp_path / "a.dat"
    path.write_bytes(written(FRAME, "jsonl"))
    check(tables.read(path, target="y", file_format="jsonl"))
    with pytest.raises(ParameterError, match="file_format must be one of csv, tsv"):
        tables.read(path, target="y", file_format="xlsx")


def test_a_folder_and_a_pattern_are_one_table_in_order_of_names(tmp_path):
    folder = tmp_path / "table"
    (folder / "deep").mkdir(parents=True)
    for place, name in enumerate(["part.2", "part.10", "part.1", "deep/part.1"]):
        (folder / f"{name}.parquet").write_bytes(written(FRAME[place : place + 1], "parquet"))
    (folder / "_SUCCESS").write_bytes(b"")
    (folder / ".part.1.parquet.crc").write_bytes(b"x")
    read = tables.read(folder, target="y")
    assert read.y.tolist() == [3.5, 2.5, 0.5, 1.5]
    assert read.keys.tolist() == [1, 2, 3, 4]
    assert tables.read(f"{folder}/part.*.parquet", target="y").y.tolist() == [2.5, 0.5, 1.5]
    (folder / "a.csv").write_bytes(written(FRAME[:2], "csv"))
    (folder / "b.csv").write_bytes(written(FRAME[2:], "csv"))
    check(tables.read(f"{folder}/?.csv", target="y"))


def test_folders_may_hold_a_column(tmp_path):
    for year in (2023, 2024):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        (folder / "a.parquet").write_bytes(written(FRAME, "parquet"))
    read = tables.read(tmp_path, target="y")
    assert "year" in read.feature_names
    assert read.X[:, read.feature_names.index("year")].tolist() == [2023] * 4 + [2024] * 4


# --- text that is not plain -----------------------------------------------------------------------


def from_text(tmp_path, text, **options):
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return tables.read(path, **({"target": "y"} | options))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found(tmp_path, separator):
    text = "x,n,colour,y\n1,1,red,0.5\n2.5,2,blue,1.5\n-3,3,red,2.5\n4,5,red,3.5\n"
    check(from_text(tmp_path, text.replace(",", separator)))


def test_a_separator_in_a_quoted_name_does_not_count(tmp_path):
    read = from_text(tmp_path, '"a,b;c;d;e",y\n1,2\n2,3\n')
    assert read.feature_names == ("a,b;c;d;e",)


def test_decimal_commas_are_found_and_said(tmp_path):
    read = from_text(tmp_path, "x;y\n1,5;2\n-2,25;3,5\n")
    assert read.X.ravel().tolist() == [1.5, -2.25]
    assert "decimal comma" in read.notes[0]
    assert from_text(tmp_path, "x;y\n1.5;2\n2.5;3\n").notes == ()


def test_a_file_without_a_header_is_said(tmp_path):
    read = from_text(tmp_path, "1,2\n3,4\n5,6\n", target="column_2")
    assert read.y.tolist() == [2, 4, 6]
    assert "holds only numbers" in read.notes[0]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_that_say_so_themselves(tmp_path, encoding):
    read = from_text(tmp_path, "höhe,y\n1,2\n2,3\n".encode(encoding))
    assert read.feature_names == ("höhe",)


def test_other_encodings_are_asked_for(tmp_path):
    text = "höhe,art,y\n1,süß,2\n2,b,3\n3,b,3\n".encode("latin-1")
    with pytest.raises(DataError, match=r"is not utf-8: line 1 holds the byte 0xf6.*'latin-1'"):
        from_text(tmp_path, text)
    with pytest.raises(DataError, match="is not utf-8: line 3 holds the byte 0xfc"):
        from_text(
            tmp_path, text.replace("ö".encode("latin-1"), b"oe").replace(b"\n1", b"\n0,b,1\n1")
        )
    read = from_text(tmp_path, text, encoding="latin-1")
    assert read.feature_names == ("höhe", "art=süß")
    with pytest.raises(ParameterError, match="encoding must be one that Python knows"):
        from_text(tmp_path, text, encoding="klingon")


def test_windows_line_ends_blanks_and_marks_of_missing_cells(tmp_path):
    read = from_text(tmp_path, "x , y\r\n 1, 2\r\nNA, 3\r\n\t3 ,4\r\n,5\r\n")
    assert read.feature_names == ("x",)
    assert read.X.ravel().tolist() == [1, 3]
    assert read.keys.tolist() == [1, 3]


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_table_of_many_columns(tmp_path, separator):
    names = [f"a column with a long näme {i}" for i in range(2500)]
    assert len(separator.join(names)) > 1 << 16
    rows = [separator.join(str(i * (row + 1)) for i in range(2500)) for row in range(2)]
    text = "\n".join([separator.join(names), *rows])
    read = from_text(tmp_path, text, target=names[1], features=names[2:])
    assert read.feature_names == tuple(names[2:])
    assert read.X[1, -1] == 2499 * 2


def test_a_header_longer_than_any_should_be(tmp_path):
    """Nothing is found out from it, and nothing breaks."""
    name = "ä" * (1 << 20)
    read = from_text(tmp_path, f"{name},y\n1,2\n3,5\n")
    assert read.feature_names == (name,)


def test_types_may_change_after_many_rows(tmp_path):
    rows = "".join(f"{i},{i}\n" for i in range(10_500))
    read = from_text(tmp_path, f"x,y\n{rows}0.5,1\n")
    assert read.X[-1, 0] == 0.5
    assert read.n_rows == 10_501


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("x,y\n", "no rows"),
        ("x,y\n1,2\n3,4,5\n", r"2 columns, but 3 cells in line 3; put text that holds ','"),
        ("x,x,y\n1,2,3\n", "more than one column named 'x'"),
        ('x,y\n1,"2\n3,4\n', "cannot be read as separated values"),
    ],
)
def test_csv_that_cannot_be_read(tmp_path, text, reason):
    with pytest.raises(DataError, match=reason):
        from_text(tmp_path, text)


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.parquet", b"", "is empty"),
        ("a.parquet", b"PAR1 is not enough PAR1", "cannot be read as parquet"),
        ("a.parquet", gzip.compress(written(FRAME, "parquet"), mtime=0), "compressed inside"),
        ("a.parquet", written(FRAME, "csv"), "cannot be read as parquet"),
        ("a.arrow", b"ARROW1\0\0 and then nothing ARROW1", "cannot be read as arrow"),
        ("a.arrow", written(FRAME, "arrow")[:200], "cannot be read as arrow"),
        ("a.feather", b"FEA1 from long ago", "cannot be read as arrow"),
        ("a.jsonl", b'{"y": 1}\n{"y": ', "cannot be read as JSON lines"),
        ("a.csv.gz", gzip.compress(written(FRAME, "csv"), mtime=0)[:30], "damaged or cut off"),
        ("a.csv.gz", b"\x1f\x8b garbage that is not compressed", "damaged or cut off"),
    ],
)
def test_damaged_files(tmp_path, name, data, reason):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DataError, match=reason):
        tables.read(path, target="y")


def test_models_archives_and_other_bytes_are_called_what_they_are(tmp_path):
    tone, model = load_tone(), tmp_path / "m.csv"
    save(MixedLinearRegression(n_components=1).fit(tone.X, tone.y), tmp_path / "m.regimix")
    model.write_bytes((tmp_path / "m.regimix").read_bytes())
    for path in (model, tmp_path / "m.regimix"):
        with pytest.raises(DataError, match="is a model that regimix has written, not a table"):
            tables.read(path, target="y")
    sheet = tmp_path / "sheet.xlsx"
    sheet.write_bytes(b"PK\x03\x04" + bytes(60))
    with pytest.raises(DataError, match="or a spreadsheet"):
        tables.read(sheet, target="y", encoding="latin-1")
    noise = tmp_path / "noise.csv"
    noise.write_bytes(bytes(range(256)) * 4)
    with pytest.raises(DataError, match="holds binary data, not text"):
        tables.read(noise, target="y")


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "data.csv").write_text("x,y\n1,2\n")
    with pytest.raises(DataError, match=r"no file '.*dato\.csv'. Did you mean 'data\.csv'\?"):
        tables.read(tmp_path / "dato.csv", target="y")
    with pytest.raises(DataError, match=r"no file '.*data\.tsv'. Did you mean 'data\.csv'\?"):
        tables.read(tmp_path / "data.tsv", target="y")
    (tmp_path / "iris.csv").write_text("x,y\n1,2\n")
    with pytest.raises(DataError, match=r"no file '.*tips\.csv'. Check the path\."):
        tables.read(tmp_path / "tips.csv", target="y")
    (tmp_path / "iris.csv").unlink()
    with pytest.raises(DataError, match="There is no folder"):
        tables.read(tmp_path / "nowhere" / "data.csv", target="y")
    with pytest.raises(DataError, match="no file matches"):
        tables.read(f"{tmp_path}/*.parquet", target="y")
    with pytest.raises(DataError, match=r"holds no parquet file, but data\.csv.*/\*\.csv"):
        tables.read(tmp_path, target="y")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty' holds no parquet file; check the path"):
        tables.read(tmp_path / "empty", target="y")


def test_files_that_do_not_fit_together(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("z,y\n1,2\n")
    with pytest.raises(DataError, match="cannot be read as one table"):
        tables.read(f"{tmp_path}/*.csv", target="y")


def test_a_query_is_for_databases(tmp_path):
    with pytest.raises(ParameterError, match="query is for databases"):
        tables.read(tmp_path / "a.csv", target="y", query="select 1")


def test_without_polars_one_sentence_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    sentence = r"tables need polars, which is not installed: pip install 'regimix\[cli\]'"
    with pytest.raises(MissingExtraError, match=sentence):
        tables.read(tmp_path / "a.csv", target="y")
    with pytest.raises(MissingExtraError, match=sentence):
        tables.write_table(tmp_path / "a.csv", {"x": [1]})
