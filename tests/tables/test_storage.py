"""Tables in a bucket of a real S3 server and behind a web server, both on this machine."""

import io
import socket
import subprocess
import sys
import threading
import urllib.request
from contextlib import suppress

import boto3
import numpy as np
import pandas as pd
import pytest
import s3fs

from regimix import MixedLinearRegression, scan_parquet
from regimix.errors import DataError
from tests.tables.servers import serving

pytestmark = pytest.mark.usefixtures("searched_once")

SECRET = "a-word-that-nobody-may-read"
BUCKET = "s3://tables/rows"
PARTS, PART_ROWS = 3, 400
FITS = pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")


def whole_table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((PARTS * PART_ROWS, 3))
    coef = np.array([[1.0, 2.0, -1.0], [-2.0, 0.5, 1.5]])[rng.integers(0, 2, len(X))]
    y = (X * coef).sum(axis=1) + 0.1 * rng.standard_normal(len(X))
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)


def files():
    table = whole_table()
    for part in range(PARTS):
        content = io.BytesIO()
        rows = table.iloc[part * PART_ROWS : (part + 1) * PART_ROWS]
        rows.to_parquet(content, row_group_size=200)
        yield f"part{part}.parquet", content.getvalue()


class Line:
    """A connection to a server that may be cut: each time after so many bytes of answers."""

    def __init__(self, address):
        self.address, self.cuts, self.after = address, 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        with suppress(OSError):
            while True:
                asking = self.listener.accept()[0]
                answering = socket.create_connection(self.address)
                for pair in ((asking, answering, False), (answering, asking, True)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source, sink, answers):
        carried = 0
        with suppress(OSError):
            while data := source.recv(1024):
                carried += len(data)
                if answers and self.cuts > 0 and carried > self.after:
                    self.cuts -= 1
                    break
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@pytest.fixture(scope="module")
def server():
    with serving("s3") as port:
        yield "127.0.0.1", port


@pytest.fixture
def line(server, monkeypatch):
    """A bucket with a table, reached through a line that may be cut."""
    line = Line(server)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", line.url)
    client = boto3.client("s3")
    client.create_bucket(Bucket="tables")
    for name, content in files():
        client.put_object(Bucket="tables", Key=f"rows/{name}", Body=content)
    s3fs.S3FileSystem.clear_instance_cache()
    yield line
    line.listener.close()
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture(scope="module")
def expected():
    table = whole_table()
    return MixedLinearRegression(random_state=0).fit(table[["a", "b", "c"]], table["y"])


def same_answer(fit, expected):
    np.testing.assert_allclose(fit.coef_, expected.coef_, rtol=1e-6)
    np.testing.assert_array_equal(fit.labels_, expected.labels_)


def fitted(address):
    return MixedLinearRegression(random_state=0).fit(scan_parquet(address, "y"))


@pytest.mark.parametrize("address", [BUCKET, f"{BUCKET}/*.parquet"])
def test_a_bucket_is_read_as_a_folder_is(line, expected, address):
    same_answer(fitted(address), expected)


def test_a_connection_that_breaks_once_is_made_again(line, expected):
    table = scan_parquet(BUCKET, "y")
    line.after, line.cuts = 1500, 1  # in the middle of some rows
    same_answer(MixedLinearRegression(random_state=0).fit(table), expected)
    assert line.cuts == 0


def test_a_connection_that_is_lost_is_an_error_that_names_the_file(line, monkeypatch):
    # How often s3fs tries again, each time after a longer pause, is up to s3fs.
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3fs.S3FileSystem.clear_instance_cache()
    table = scan_parquet(BUCKET, "y")
    line.cuts = 10**6
    with pytest.raises(DataError, match=r"cannot read .*part\d\.parquet") as error:
        MixedLinearRegression(random_state=0).fit(table)
    assert SECRET not in str(error.value)


def check_keys_after(line, n_calls):
    """Let the server take any key for so many calls, and then none: it was told of none."""
    asked = urllib.request.Request(
        f"{line.url}/moto-api/reset-auth",
        data=str(n_calls).encode(),
        headers={"Content-Type": "text/plain"},
    )
    with urllib.request.urlopen(asked) as answer:
        assert answer.status == 200


def test_a_wrong_key_is_said_to_be_one(line):
    check_keys_after(line, 0)
    try:
        with pytest.raises(DataError, match="Access Key") as error:
            scan_parquet(BUCKET, "y")
    finally:
        check_keys_after(line, 10**6)
    assert SECRET not in str(error.value)


@pytest.mark.slow
def test_credentials_are_nowhere_in_what_comes_out(line, tmp_path):
    model, page, labels = (tmp_path / name for name in ("m.regimix", "m.html", "labels"))
    outputs = ["--model", model, "--report", page, "--labels", labels]
    command = [sys.executable, "-m", "regimix", "fit", BUCKET, "--target", "y", *outputs]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
    written = [path.read_bytes() for path in (model, page, *labels.iterdir())]
    for text in (done.stdout, done.stderr, *(content.decode("latin-1") for content in written)):
        assert SECRET not in text
        assert "AKIAEXAMPLE" not in text
    assert "2 linear regimes" in done.stdout


# --- a web server ---------------------------------------------------------------------------------


def test_a_file_behind_a_web_server(tmp_path, expected):
    whole_table().to_parquet(tmp_path / "rows.parquet", row_group_size=200)
    with serving("pages", tmp_path) as port:
        address = f"http://127.0.0.1:{port}"
        same_answer(fitted(f"{address}/rows.parquet"), expected)
        for name, why in (("nothing", "no such file"), ("broken", "500")):
            with pytest.raises(DataError, match=rf"{name}\.parquet'.*{why}"):
                scan_parquet(f"{address}/{name}.parquet", "y")
